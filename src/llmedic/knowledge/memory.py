"""Figures of memory that were counted in an engine's source or measured on real servers, by release."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import cache

from llmedic import errors
from llmedic.knowledge import load
from llmedic.knowledge.releases import lives
from llmedic.knowledge.schema import Record
from llmedic.model.ledger import Range

FIGURES = "memory.yaml"
RUNNERS = "model_runners.yaml"


class Figure(Record, frozen=True):
    """One figure of one span of releases.

    term    what it is a figure of; since, before: releases that it holds for, empty ends are open
    what    where its parts come from, or what was seen on which machine
    """

    id: str
    term: str
    low: float
    likely: float
    high: float
    unit: str
    what: str
    source: str
    date: datetime.date
    since: str = ""
    before: str = ""


class Runner(Record, frozen=True):
    """The architectures that a span of releases runs on vLLM's second model runner; "*" is all of them.

    dense  models without experts and recurrent layers run there too, whatever their architecture
    """

    id: str
    architectures: tuple[str, ...]
    source: str
    date: datetime.date
    dense: bool = False
    since: str = ""
    before: str = ""


@cache
def figure(term: str, version: str = "") -> Range:
    """The figure of a term for a release ("" is a current one).

    Raises KnowledgeError when no record holds for that release: our data has a hole.
    """
    for one in figures().get(term, ()):
        if lives(version, one.since, one.before):
            return Range(low=one.low, likely=one.likely, high=one.high)
    raise errors.KnowledgeError(f"{FIGURES}: nothing about {term!r} in release {version or 'current'!r}")


@cache
def figures() -> Mapping[str, tuple[Figure, ...]]:
    """Every figure under its term, in the order of the file."""
    found: dict[str, tuple[Figure, ...]] = {}
    for one in load.records(FIGURES, Figure):
        found[one.term] = (*found.get(one.term, ()), one)
    return found


@cache
def second_runner(architecture: str, version: str = "", *, dense: bool = False) -> bool:
    """Whether a release of vLLM runs this architecture on its second model runner when nobody chooses."""
    return any(
        architecture in one.architectures or "*" in one.architectures or (dense and one.dense)
        for one in runners()
        if lives(version, one.since, one.before)
    )


@cache
def runners() -> tuple[Runner, ...]:
    """Every span of releases with a second model runner."""
    return load.records(RUNNERS, Runner)
