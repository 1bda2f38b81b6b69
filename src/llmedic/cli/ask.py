"""`--ask`: puts the questions at the terminal. Which ones, and when to stop, is decided in `analysis.interview`."""

from __future__ import annotations

from collections.abc import Callable

import click

from llmedic.app.request import Lang

CHOICES = {"en": "[y]es, [n]o, [?] don't know", "zh": "y 是，n 否，? 不知道"}


def at_terminal(lang: Lang) -> Callable[[str], bool | None]:
    """A function that puts a question on standard error, so that the report alone goes to standard output."""

    def ask(question: str) -> bool | None:
        try:
            reply = click.prompt(f"{question} ({CHOICES[lang]})", default="?", show_default=False, err=True)
        except click.Abort as stop:
            if isinstance(stop.__context__, EOFError):  # nobody there to ask: what is known is judged all the same
                return None
            raise
        first = str(reply).strip().lower()[:1]
        return True if first in ("y", "是") else False if first in ("n", "否") else None

    return ask
