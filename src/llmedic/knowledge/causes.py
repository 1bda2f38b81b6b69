"""The causes that a diagnosis can name: their words, their one change, and what each brings about downstream."""

from __future__ import annotations

from functools import cache

from llmedic import errors
from llmedic.knowledge import load, schema

_FILE = "causes.yaml"

HEALTHY = "healthy"
CANNOT_TELL = "cannot-tell"
SPECIAL = (HEALTHY, CANNOT_TELL)
"""Verdicts that stand where a cause would, without being one."""


def ids() -> tuple[str, ...]:
    """The ids of all causes, in the order of the layers."""
    return tuple(load.chunks(_FILE))


@cache
def cause(cause_id: str) -> schema.CauseText:
    """One cause, read alone (a millisecond, not the whole file). Raises KnowledgeError for an unknown id."""
    found = load.record(_FILE, cause_id, schema.CauseText)
    if found is None:
        raise errors.KnowledgeError(f"{_FILE}: no cause has the id {cause_id}")
    return found


@cache
def causes() -> dict[str, schema.CauseText]:
    """Every cause by its id: for listings, documents and tests."""
    return {item.id: item for item in load.records(_FILE, schema.CauseText)}


@cache
def downstream(cause_id: str) -> frozenset[str]:
    """All causes that this one brings about, directly or through another; none for a special verdict."""
    if cause_id in SPECIAL:
        return frozenset()
    found: set[str] = set()
    pending = list(cause(cause_id).explains)
    while pending:
        following = pending.pop()
        if following not in found:
            found.add(following)
            pending.extend(cause(following).explains)
    return frozenset(found)
