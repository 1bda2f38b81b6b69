"""Engine-neutral names of settings, so that a rule about the sequence cap is written once for every engine."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from llmedic.knowledge import load
from llmedic.knowledge.schema import Record

_FILE = "flags.yaml"

Kind = Literal["int", "float", "bool", "text", "json", "size", "secret"]


class Default(Record, frozen=True):
    """A default value and the releases that have it, both ends included; empty ends are open."""

    engine: str
    value: str | float | bool
    since: str = ""
    until: str = ""


class FlagSpec(Record, frozen=True):
    """One setting.

    spellings  engine -> what a user types, the usual one first
    negated    engine -> spellings that set it to false
    nearest    engine -> its setting that comes closest to this one without meaning the same; for advice only
    since      engine -> first release that knows it; removed: first release that does not
    """

    name: str
    type: Kind
    spellings: dict[str, tuple[str, ...]]
    negated: dict[str, tuple[str, ...]] = {}
    nearest: dict[str, str] = {}
    defaults: tuple[Default, ...] = ()
    since: dict[str, str] = {}
    removed: dict[str, str] = {}


@cache
def specs() -> dict[str, FlagSpec]:
    """Every setting by its neutral name."""
    return {spec.name: spec for spec in load.records(_FILE, FlagSpec)}


@cache
def by_spelling(engine: str) -> dict[str, tuple[FlagSpec, bool]]:
    """What can be typed for an engine -> the setting, and whether that spelling means yes (or takes a value)."""
    found: dict[str, tuple[FlagSpec, bool]] = {}
    for spec in specs().values():
        found.update(dict.fromkeys(spec.spellings.get(engine, ()), (spec, True)))
        found.update(dict.fromkeys(spec.negated.get(engine, ()), (spec, False)))
    return found


def neutral(engine: str, key: str) -> str:
    """The neutral name of an engine's own setting, given with dashes or underscores; `key` itself when unknown."""
    spelled = "--" + key.lstrip("-").replace("_", "-")
    table = by_spelling(engine)
    found = table.get(key) or table.get(spelled)
    return found[0].name if found else key.lstrip("-").replace("-", "_")


def spelling(name: str, engine: str) -> str:
    """What a user types for a setting of this engine; its nearest relative where it has none; "" without one."""
    spec = specs().get(name)
    if spec is None:
        return ""
    typed = spec.spellings.get(engine) or spec.negated.get(engine)
    return typed[0] if typed else spec.nearest.get(engine, "")


def default(name: str, engine: str, version: str = "") -> str | float | bool | None:
    """The default of a setting in a release; None when it is unknown or depends on the machine or the model."""
    spec = specs().get(name)
    for item in spec.defaults if spec else ():
        if item.engine == engine and _within(version, item.since, item.until):
            return item.value
    return None


def exists(name: str, engine: str, version: str = "") -> bool:
    """Whether a release of the engine knows the setting; an unknown release is taken as a current one."""
    spec = specs().get(name)
    if spec is None or not (spec.spellings.get(engine) or spec.negated.get(engine)):
        return False
    since, removed = spec.since.get(engine, ""), spec.removed.get(engine, "")
    if not version:
        return not removed
    return (not since or key(version) >= key(since)) and (not removed or key(version) < key(removed))


def key(version: str) -> tuple[int, ...]:
    """A release as numbers that can be compared: "0.8.5.post1" -> (0, 8, 5)."""
    match = re.match(r"\D*(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def _within(version: str, since: str, until: str) -> bool:
    if not version:
        return not until
    number = key(version)
    upper = key(until)
    return (not since or number >= key(since)) and (not until or number[: len(upper)] <= upper)
