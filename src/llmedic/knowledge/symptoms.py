"""What a person on call can tick without knowing the cause, and the conditions under which it is seen or not."""

from __future__ import annotations

from functools import cache
from typing import Literal

from llmedic.knowledge import load, schema

_FILE = "symptoms.yaml"

Kind = Literal["symptom", "condition"]


class SymptomText(schema.Record, frozen=True):
    """One entry of the closed list.

    kind      symptom: what is seen (`--symptom`); condition: when it is or is not seen (`--when`, `--not-when`)
    question  how `--ask` asks for it; answered with yes, no or "don't know"
    """

    id: str
    kind: Kind
    text: schema.Text
    question: schema.Text


@cache
def entries() -> dict[str, SymptomText]:
    """Every entry by its id."""
    return {entry.id: entry for entry in load.records(_FILE, SymptomText)}


def ids(kind: Kind) -> tuple[str, ...]:
    """The ids of one kind, in the order of the file."""
    return tuple(entry.id for entry in entries().values() if entry.kind == kind)


@cache
def entry(symptom_id: str) -> SymptomText | None:
    """One entry, read alone; None when the list does not have it."""
    return load.record(_FILE, symptom_id, SymptomText)
