"""The names of observations: one schema over every engine and version."""

from __future__ import annotations

from functools import cache

from llmedic.knowledge import load, schema

_FILE = "vocabulary.yaml"


@cache
def words() -> dict[str, schema.Word]:
    """Every word by its name."""
    return {word.name: word for word in load.records(_FILE, schema.Word)}


def names() -> tuple[str, ...]:
    """Every name, in the order of the file, without reading the words."""
    return tuple(load.chunks(_FILE))


@cache
def word(name: str) -> schema.Word | None:
    """One word, read alone; None when the vocabulary does not have it."""
    return load.record(_FILE, name, schema.Word)


def unit(name: str) -> str:
    """The unit of a name; "" when the vocabulary does not have it."""
    found = word(name)
    return found.unit if found else ""
