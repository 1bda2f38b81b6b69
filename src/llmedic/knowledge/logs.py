"""Finds log patterns by the text they contain, so that a pattern costs nothing until its line is seen.

The files of `data/logs` hold several hundred patterns. Parsing all of them takes longer than a diagnosis of a short
log, so this module reads only the `literal:` line of each record; the record and its regular expression are read
when the literal has been found.

Three conventions of the files, beyond `LogPattern`:
    "=VALUE"     in `sets`, `facts` and `observes` a value with a leading "=" is a constant, not the name of a field
    facts.phase  the line tells which phase of the engine's life begins (see `PHASES`); `facts.frame` tells it from a
                 function name in a traceback, `facts.failed` from a line that says what did not start
    ID-at-WHEN   a variant: what the line ID means in that phase, or for those numbers. It shares ID's literal and is
                 never matched by itself; the reader turns ID into it
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

from llmedic.errors import KnowledgeError
from llmedic.knowledge import load
from llmedic.knowledge.schema import LogPattern

Phase = Literal["load", "profile", "capture", "warmup", "serve"]

PHASES: tuple[Phase, ...] = ("load", "profile", "capture", "warmup", "serve")
"""The life of an engine: weights are read, a worst-case pass is measured, graphs are captured, buffers and kernels
are warmed up, requests are served. `facts.phase` and variants also tell finer ones apart: "profile-mm" (the image
encoder's part), "kv" (the pool is allocated), "after-kv" (it has its size), "sampler", "start" (some part of it)."""

VARIANT = "-at-"

_LITERAL = re.compile(r"^  literal: '((?:[^']|'')+)'$", re.MULTILINE)


@cache
def files() -> tuple[str, ...]:
    """The pattern files, as paths under `knowledge/data`."""
    folder = resources.files("llmedic.knowledge").joinpath("data", "logs")
    return tuple(sorted(f"logs/{entry.name}" for entry in folder.iterdir() if entry.name.endswith(".yaml")))


@cache
def homes() -> Mapping[str, str]:
    """Pattern id -> its file. Raises KnowledgeError when two files have the same id."""
    found: dict[str, str] = {}
    for path in files():
        for key in load.chunks(path):
            if key in found:
                raise KnowledgeError(f"{path}: {key} is in {found[key]} too")
            found[key] = path
    return found


@cache
def literals() -> Mapping[str, tuple[str, ...]]:
    """Literal -> the ids that start from it, variants left out. Raises KnowledgeError when a record has none."""
    found: dict[str, list[str]] = {}
    for key, path in homes().items():
        match = _LITERAL.search(load.chunks(path)[key])
        if match is None:
            raise KnowledgeError(f"{path}: {key}: `literal` must be one line in single quotes")
        if VARIANT not in key:
            found.setdefault(match.group(1).replace("''", "'"), []).append(key)
    return {literal: tuple(keys) for literal, keys in found.items()}


@cache
def pattern(key: str) -> LogPattern | None:
    """The pattern with this id, read alone; None when there is none."""
    path = homes().get(key)
    return None if path is None else load.record(path, key, LogPattern)


@cache
def regex(key: str) -> re.Pattern[str] | None:
    """The compiled expression of a pattern; None when its literal says everything. Raises KnowledgeError."""
    found = pattern(key)
    if found is None or not found.regex:
        return None
    try:
        return re.compile(found.regex)
    except re.error as error:
        raise KnowledgeError(f"{homes()[key]}: {key}: regex: {error}") from error


def patterns() -> tuple[LogPattern, ...]:
    """Every pattern, strictly read and its expression compiled: for checks and reference pages."""
    found = [(path, item) for path in files() for item in load.records(path, LogPattern)]
    if len({item.id for _, item in found}) != len(homes()):
        raise KnowledgeError("logs: two records have the same id")
    for path, item in found:
        regex(item.id)
        if not item.literal.isascii() or (item.regex and not item.example):
            raise KnowledgeError(f"{path}: {item.id}: needs an ASCII literal, and an example for its regex")
    return tuple(item for _, item in found)


def source(key: str) -> str:
    """The text of a pattern's record in its file, without reading it."""
    return load.chunks(homes()[key])[key]
