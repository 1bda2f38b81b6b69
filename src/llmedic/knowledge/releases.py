"""Releases of engines as numbers, so that data files can say since when and until when something is so."""

from __future__ import annotations

import re
from functools import cache

_NUMBERS = re.compile(r"\D{0,40}(\d{1,9}(?:\.\d{1,9}){0,5})", re.ASCII)
"""Bounded, because a version is whatever a server says it is."""


@cache
def numbers(version: str) -> tuple[int, ...]:
    """A release as numbers that can be compared: "v0.8.5.post1" -> (0, 8, 5); () when there are none in it."""
    match = _NUMBERS.match(version)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def lives(version: str, since: str, removed: str) -> bool:
    """Whether `version` lies from `since` up to, not including, `removed`; empty ends are open.

    A version without numbers is taken as a current one.
    """
    here = numbers(version)
    if not here:
        return not removed
    return (not since or here >= numbers(since)) and (not removed or here < numbers(removed))


def within(version: str, since: str, until: str) -> bool:
    """Whether `version` lies from `since` to `until`, which covers its patches ("0.7": 0.7.3 too)."""
    here = numbers(version)
    if not here:
        return not until
    upper = numbers(until)
    return (not since or here >= numbers(since)) and (not until or here[: len(upper)] <= upper)
