"""`--ask` at the terminal: one question a line on standard error, yes, no or not known."""

from __future__ import annotations

from typing import Literal

import click
import pytest
from click.testing import CliRunner

from llmedic.cli import ask


@pytest.mark.parametrize(
    ("lang", "typed", "expected"),
    [
        ("en", "y", "True"),
        ("en", "Yes", "True"),
        ("en", "n", "False"),
        ("en", "", "None"),
        ("en", "?", "None"),
        ("en", "perhaps", "None"),
        ("zh", "是", "True"),
        ("zh", "否", "False"),
        ("zh", "y", "True"),
    ],
)
def test_answers(lang: Literal["en", "zh"], typed: str, expected: str) -> None:
    @click.command()
    def command() -> None:
        click.echo(repr(ask.at_terminal(lang)("Does the queue grow?")))

    result = CliRunner().invoke(command, input=f"{typed}\n")

    assert result.stdout.splitlines()[-1] == expected
    assert f"Does the queue grow? ({ask.CHOICES[lang]})" in result.stderr


def test_nobody_there_to_ask_is_not_known() -> None:
    @click.command()
    def command() -> None:
        click.echo(repr(ask.at_terminal("en")("Does the queue grow?")))

    result = CliRunner().invoke(command, input="")

    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "None"
