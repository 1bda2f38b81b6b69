"""The ten pitfalls of LLM production: faults that a dashboard made for web services does not show."""

from __future__ import annotations

from functools import cache

from llmedic.knowledge import load, schema

_FILE = "pitfalls.yaml"


class Pitfall(schema.Record, frozen=True):
    """One entry to look up and learn from.

    green   why the usual indicators stay green while users complain
    causes  causes of the closed list that this pitfall usually turns out to be
    """

    id: str
    title: schema.Text
    symptom: schema.Text
    green: schema.Text
    evidence: schema.Text
    remedy: schema.Text
    causes: tuple[str, ...]


def ids() -> tuple[str, ...]:
    """The ids of the pitfalls, in the order of the file."""
    return tuple(load.chunks(_FILE))


@cache
def pitfalls() -> dict[str, Pitfall]:
    """Every pitfall by its id."""
    return {item.id: item for item in load.records(_FILE, Pitfall)}
