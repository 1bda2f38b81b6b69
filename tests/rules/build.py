"""Builds evidence for the tests of the judge: what a case file says, and what only live sources can say.

A case is written in the form of a case file, read by the real readers. Further keys stand for what a person cannot
type: `previous`, `lifetime` and `baseline` (observations of those periods), `instances` (observations by replica) and
`flags` (settings by their neutral name).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import yaml

from llmedic.analysis.view import View
from llmedic.collect import casefile, flags, logs
from llmedic.knowledge import flags as known_flags
from llmedic.model.deployment import Flag
from llmedic.model.evidence import Evidence
from llmedic.model.observation import Observation, Period

PERIODS: tuple[Period, ...] = ("previous", "lifetime", "baseline")
EXTRA = (*PERIODS, "instances", "flags")

Case = Mapping[str, object]


def evidence(case: Case) -> Evidence:
    """The evidence that the case describes."""
    body = {key: value for key, value in case.items() if key not in EXTRA}
    raws = casefile.capture("case", yaml.safe_dump(body, allow_unicode=True).encode())
    found = next(casefile.read(raw) for raw in raws if raw.source == "case")
    told = logs.read([raw for raw in raws if raw.source == "logs"])
    typed = flags.read([raw for raw in raws if raw.source == "flags"]).deployment.flags
    settings = (*_settings(case), *typed, *told.deployment.flags)
    return replace(
        found,
        observations=(*found.observations, *told.observations, *_extra_observations(case)),
        events=told.events,
        log_lines=told.log_lines,
        deployment=replace(found.deployment, flags=settings),
    )


def view(case: Case) -> View:
    """The case's evidence as rules see it, with the default settings of its engine."""
    found = evidence(case)
    engine, version = found.deployment.engine, found.deployment.version
    return View(found, lambda name: known_flags.default(name, engine, version))


def merged(base: object, changes: object) -> object:
    """`base` with `changes`: mappings are merged, null takes a key out, anything else replaces."""
    if not isinstance(base, Mapping) or not isinstance(changes, Mapping) or "before" in changes:
        return changes
    kept = {key: value for key, value in base.items() if key not in changes}
    new = {key: merged(base.get(key), value) for key, value in changes.items() if value is not None}
    return kept | new


def _settings(case: Case) -> Iterator[Flag]:
    for name, value in _mapping(case, "flags").items():
        if value is None or isinstance(value, bool | int | float | str):
            yield Flag(name=name, value=value, origin="case")


def _extra_observations(case: Case) -> Iterator[Observation]:
    for period in PERIODS:
        for found in _read(_mapping(case, period)):
            yield replace(found, source="metrics", period=period)
    for instance, values in _mapping(case, "instances").items():
        assert isinstance(values, Mapping)
        for found in _read(values):
            yield replace(found, source="metrics", instance=instance)


def _read(values: Mapping[str, object]) -> tuple[Observation, ...]:
    body = json.dumps({"observations": values}).encode()
    return tuple(found for raw in casefile.capture("case", body) for found in casefile.read(raw).observations)


def _mapping(case: Case, key: str) -> Mapping[str, object]:
    found = case.get(key, {})
    assert isinstance(found, Mapping), f"{key} is a mapping"
    return found
