"""What the terminal can show."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from llmedic.cli import screen


class Terminal:
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("columns", "width"), [(40, 60), (80, 80), (90, 90), (300, 100)])
def test_the_width_is_one_that_is_read_easily(monkeypatch: pytest.MonkeyPatch, columns: int, width: int) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(shutil, "get_terminal_size", lambda fallback: os.terminal_size((columns, 24)))

    assert screen.width() == width


def test_a_pipe_has_eighty_columns_and_no_colour() -> None:
    assert (screen.width(), screen.colour()) == (80, False)


@pytest.mark.parametrize(
    ("name", "value", "colour"), [("NO_COLOR", "", False), ("TERM", "dumb", False), ("TERM", "xterm", True)]
)
def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, colour: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)

    assert screen.colour() is colour
