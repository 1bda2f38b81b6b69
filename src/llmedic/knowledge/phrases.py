"""The small phrases of facts and gaps in Chinese.

Sources and analysis write them in English, which programs may rely on; a report for a reader of Chinese looks them up
here. `{}` stands for what changes (a number, a name, another phrase).
"""

from __future__ import annotations

import re
from functools import cache

from llmedic.knowledge import load, schema

_FILE = "phrases.yaml"
_MOST_CHARS = 400
"""A longer text is somebody's log, not a phrase of ours."""


class Phrase(schema.Record, frozen=True):
    """One phrase; its id is the English. The zh may take the changing parts in another order, as {0} and {1}."""

    id: str
    zh: str


def chinese(text: str) -> str:
    """The phrase in Chinese, its parts too; the text itself where none is known."""
    if not text or len(text) > _MOST_CHARS:
        return text
    whole = _whole().get(text)
    if whole is not None:
        return whole
    for pattern, zh in _patterns():
        if match := pattern.fullmatch(text):
            return zh.format(*(chinese(part) for part in match.groups()))
    return text


@cache
def phrases() -> tuple[Phrase, ...]:
    """Every phrase, in the order in which they are tried."""
    return load.records(_FILE, Phrase)


@cache
def _whole() -> dict[str, str]:
    return {phrase.id: phrase.zh for phrase in phrases() if "{" not in phrase.id}


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile("(.+?)".join(map(re.escape, phrase.id.split("{}"))), re.DOTALL), phrase.zh)
        for phrase in phrases()
        if "{" in phrase.id
    )
