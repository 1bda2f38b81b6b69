"""What was seen, and what was not: the only thing that analysis reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from llmedic.model.deployment import Deployment
from llmedic.model.observation import Observation, Value

Level = Literal["info", "warning", "error", "fatal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Something that could not be seen. Not evaluated is not OK.

    what  the thing ("logs", "gpu clocks", "http://b:8000/metrics")
    why   the reason, in one line
    how   the exact command or flag that would show it
    names vocabulary names that would have come from it, so that rules can say what they miss
    """

    what: str
    why: str
    how: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one line of several alike said: the fields of its pattern, and the process that printed it."""

    fields: Mapping[str, str | float]
    process: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """A line (or a traceback) of a log that a pattern of `knowledge/data/logs` recognised.

    id        the pattern's id
    text      the line, redacted and cut to a sane length
    fields    named groups of the pattern, numbers as floats
    count     how often it was seen; first_at and last_at in Unix seconds where the log has times
    is_echo   a later error that only repeats an earlier one (engine died because a worker died)
    start     in which of the log's starts of a server it was last seen, counted from 0
    readings  its lines of that start, one after the other, where they carry values: ranks, devices and pools print
              one line each, and `fields` are those of the first
    """

    id: str
    level: Level
    text: str
    fields: Mapping[str, str | float] = field(default_factory=dict)
    count: int = 1
    first_at: float | None = None
    last_at: float | None = None
    process: str = ""
    source: str = "log"
    is_echo: bool = False
    start: int = 0
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRow:
    """One row of a comparison that somebody measured: a label and vocabulary values."""

    label: str
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesFact:
    """One leaf of a Kubernetes object: kind, dotted path, value. None means known to be absent."""

    kind: str
    path: str
    value: str | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptoms:
    """What a person ticked: ids of `knowledge/data/symptoms.yaml`."""

    seen: frozenset[str] = frozenset()
    when: frozenset[str] = frozenset()
    not_when: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.seen or self.when or self.not_when)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that the sources found, in the words of the vocabulary, and the gaps they met.

    log_lines counts the log lines that were looked at: zero means that no log was given, so that a line that was
    not found says nothing.
    """

    observations: tuple[Observation, ...] = ()
    events: tuple[LogEvent, ...] = ()
    bench: tuple[BenchRow, ...] = ()
    kubernetes: tuple[KubernetesFact, ...] = ()
    symptoms: Symptoms = field(default_factory=Symptoms)
    deployment: Deployment = field(default_factory=Deployment)
    gaps: tuple[Gap, ...] = ()
    log_lines: int = 0
