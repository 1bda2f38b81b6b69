"""Engine-neutral names of settings, so that a rule about the sequence cap is written once for every engine."""

from __future__ import annotations

from functools import cache
from typing import Literal

from llmedic.knowledge import load, releases
from llmedic.knowledge.schema import Record

_FILE = "flags.yaml"

Kind = Literal["int", "float", "bool", "text", "json", "size", "secret"]


class Default(Record, frozen=True):
    """A default value and the releases that have it, both ends included; empty ends are open."""

    engine: str
    value: str | float | bool
    since: str = ""
    until: str = ""


class Span(Record, frozen=True):
    """Releases that take a spelling: the first one that does, and the first one after it that does not."""

    since: str = ""
    removed: str = ""


class FlagSpec(Record, frozen=True):
    """One setting.

    spellings  engine -> what a user types, the one to recommend first; engines spell a setting differently in time
    negated    engine -> spellings that set it to false
    nearest    engine -> its setting that comes closest to this one without meaning the same; for advice only
    spans      spelling -> the releases that take it, where not all do
    since      engine -> first release that knows it at all; removed: first release that does not
    """

    name: str
    type: Kind
    spellings: dict[str, tuple[str, ...]]
    negated: dict[str, tuple[str, ...]] = {}
    nearest: dict[str, str] = {}
    defaults: tuple[Default, ...] = ()
    spans: dict[str, Span] = {}
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


def spelling(name: str, engine: str, version: str = "") -> str:
    """What a user types for a setting of this engine and release; its nearest relative where it has none; "" without.

    A setting that can only be switched off gives the spelling that does so. No version: a current one.
    """
    spec = specs().get(name)
    if spec is None:
        return ""
    own = typed(name, engine, version) or typed(name, engine, version, negated=True)
    if own or engine in spec.spellings or engine in spec.negated:
        return own
    near = spec.nearest.get(engine, "")
    found = by_spelling(engine).get(near)
    return near if found and _takes(found[0], engine, near, version) else ""


def typed(name: str, engine: str, version: str = "", *, negated: bool = False) -> str:
    """The setting's own spelling in a release, or the one that sets it to false; "" where the release has none."""
    spec = specs().get(name)
    known = (spec.negated if negated else spec.spellings).get(engine, ()) if spec else ()
    return next((one for one in known if spec and _takes(spec, engine, one, version)), "")


def default(name: str, engine: str, version: str = "") -> str | float | bool | None:
    """The default of a setting in a release; None when it is unknown or depends on the machine or the model."""
    spec = specs().get(name)
    for item in spec.defaults if spec else ():
        if item.engine == engine and releases.within(version, item.since, item.until):
            return item.value
    return None


def exists(name: str, engine: str, version: str = "") -> bool:
    """Whether a release of the engine knows the setting; an unknown release is taken as a current one."""
    return bool(typed(name, engine, version) or typed(name, engine, version, negated=True))


def _takes(spec: FlagSpec, engine: str, spelled: str, version: str) -> bool:
    span = spec.spans.get(spelled, Span())
    whole = releases.lives(version, spec.since.get(engine, ""), spec.removed.get(engine, ""))
    return whole and releases.lives(version, span.since, span.removed)
