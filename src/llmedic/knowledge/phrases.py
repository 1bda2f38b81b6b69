"""The small phrases of facts and gaps in Chinese.

Sources and analysis write them in English, which programs may rely on; a report for a reader of Chinese looks them up
here. `{}` stands for what changes (a number, a name, another phrase).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from llmedic.knowledge import load, schema

_FILE = "phrases.yaml"
_MOST_CHARS = 400
"""A longer text is somebody's log, not a phrase of ours."""
_WORD = re.compile("[A-Za-z]{2,}")
_FEW_WORDS = 2
"""A phrase with fewer words of its own ("{} for {}") fits sentences that it does not mean."""
_ENGLISH = re.compile(r"(?<![\w./=-])[a-z]+(?:,? [a-z]+){2,}(?![\w./=-])")
"""Three plain words in a row: a sentence that has no Chinese yet, which no phrase may take to pieces."""


class Phrase(schema.Record, frozen=True):
    """One phrase; its id is the English. The zh may take the changing parts in another order, as {0} and {1}."""

    id: str
    zh: str


def chinese(text: str) -> str:
    """The phrase in Chinese, its parts too; the text itself where none is known."""
    return text if not text or len(text) > _MOST_CHARS else _looked_up(text)


@lru_cache(maxsize=4096)
def _looked_up(text: str) -> str:
    whole = _whole().get(text)
    if whole is not None:
        return whole
    for pattern, zh, is_wide in _patterns():
        if match := pattern.fullmatch(text):
            parts = [chinese(part) for part in match.groups()]
            if not (is_wide and any(map(_ENGLISH.search, parts))):
                return zh.format(*parts)
    return text


@cache
def phrases() -> tuple[Phrase, ...]:
    """Every phrase, in the order in which they are tried."""
    return load.records(_FILE, Phrase)


@cache
def _whole() -> dict[str, str]:
    return {phrase.id: phrase.zh for phrase in phrases() if "{" not in phrase.id}


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str, bool], ...]:
    return tuple(
        (
            re.compile("(.+?)".join(map(re.escape, phrase.id.split("{}"))), re.DOTALL),
            phrase.zh,
            len(_WORD.findall(phrase.id)) < _FEW_WORDS,
        )
        for phrase in phrases()
        if "{" in phrase.id
    )
