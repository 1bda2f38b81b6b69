"""Reads selected log lines into evidence: events, measurements, settings, versions. Pure.

The same function reads a digest of a gigabyte, a bundle, and a few lines that somebody pasted into a ticket.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from llmedic.collect import redact
from llmedic.collect.logs import settings
from llmedic.collect.logs.phase import PhaseTracker, coarse
from llmedic.collect.logs.prefix import Line, unwrap
from llmedic.collect.logs.samples import Samples, flag_of
from llmedic.collect.logs.scan import Scanner
from llmedic.collect.logs.variants import choose, memory_fields
from llmedic.knowledge import logs
from llmedic.knowledge.schema import LogPattern
from llmedic.model.deployment import Deployment, Flag, HardwareFacts
from llmedic.model.evidence import Evidence, LogEvent, Reading
from llmedic.model.numbers import possible

TEXT_CHARS = 600
"""An event's text is for a person to recognise the line, not to keep it."""

NAME_CHARS = 96
"""Of a card's name or a release: none is longer."""

_SCALES = {
    "_pct": ("_ratio", 0.01),
    "_ms": ("_s", 0.001),
    "_mib": ("_gib", 1 / 1024),
    "_bytes": ("_gib", 1 / 2**30),
    "_per10s": ("_per_min", 6.0),
}
_NUMBER = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_TRACEBACK = "Traceback (most recent call last)"
_ERRORS = ("error", "fatal")
_MOST_READINGS = 256
"""Lines of one pattern whose values are all kept: more ranks, devices or pools than a start has."""
_ANY_ERROR = "python-error"
"""The pattern of errors nobody knows: it only speaks when no other does."""


@cache
def scanner() -> Scanner:
    """The automaton over every literal of the library."""
    return Scanner(tuple(logs.literals()))


@cache
def _ids() -> tuple[tuple[str, ...], ...]:
    return tuple(logs.literals().values())


@dataclass(slots=True)
class _Seen:
    """An event while it is being counted."""

    pattern: LogPattern
    line: Line
    fields: dict[str, str | float]
    count: int = 0
    last_at: float | None = None
    base: str = ""
    start: int = 0
    readings: list[Reading] = field(default_factory=list)


@dataclass(slots=True)
class Reader:
    """Reads lines in order; `evidence` closes the books."""

    source: str = "log"
    year: int = 1972
    _phase: PhaseTracker = field(default_factory=PhaseTracker)
    _failed: str = ""
    _start: int = 0
    _loaded: bool = False
    _stale: bool = False
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _facts: dict[str, str | float] = field(default_factory=dict)
    _flags: dict[str, Flag] = field(default_factory=dict)
    _samples: Samples = field(init=False)

    def __post_init__(self) -> None:
        self._samples = Samples(self.source)

    def feed(self, raw: bytes) -> None:
        """Read one line. Bytes that are not UTF-8 are taken as Latin-1, so nothing is ever lost or raised."""
        found = scanner().every(raw)
        if not found:
            return
        line = unwrap(decode(raw), self.year)
        if _TRACEBACK in line.text:
            self._phase.traceback()
        keys = [key for index in found for key in _ids()[index]]
        patterns = {key: pattern for key in keys if (pattern := logs.pattern(key)) is not None}
        anonymous = patterns.pop(_ANY_ERROR, None)
        named = [self._take(pattern, line) for pattern in patterns.values()]
        if anonymous is not None and not any(named):
            self._take(anonymous, line)

    def dropped(self, counts: Mapping[str, int]) -> None:
        """Add the lines a digest left out, by literal."""
        for literal, count in counts.items():
            for key in logs.literals().get(literal, ()):
                for seen in self._seen.values():
                    if seen.base == key:
                        seen.count += count
                        break

    def evidence(self) -> Evidence:
        """What the lines said, echoes marked."""
        self._settle_start_failures()
        events = [_event(seen, self.source) for seen in self._seen.values()]
        specific = any(event.level in _ERRORS and not self._seen[event.id].pattern.echo for event in events)
        marked = [replace(event, is_echo=specific and self._seen[event.id].pattern.echo) for event in events]
        return Evidence(
            observations=self._samples.observations(),
            events=tuple(sorted(marked, key=lambda event: event.is_echo)),
            deployment=self._deployment(),
        )

    def _take(self, pattern: LogPattern, line: Line) -> bool:
        """Whether the line really is what the pattern describes, and an error."""
        regex = logs.regex(pattern.id)
        match = regex.search(line.text) if regex else None
        if regex and match is None:
            return False
        fields = _fields(match) if match else {}
        if pattern.begins:
            self._begin()
        self._tell(pattern, fields, line)
        if "frame" in pattern.facts:
            return False
        base = pattern.id
        if pattern.level in _ERRORS:
            fields.update({name: size for name, size in memory_fields(line.text).items() if possible(size)})
            phase = self._phase.now
            if phase:
                fields["phase"] = coarse(phase)
            pattern = logs.pattern(choose(base, fields, phase)) or pattern
        self._count(pattern, base, line, fields)
        return pattern.level in _ERRORS

    def _begin(self) -> None:
        """A server starts. The lines that say so come in groups; after a load or a death they are of a new start."""
        if self._loaded:
            self._start += 1
            self._loaded = False
            self._stale = True

    def _tell(self, pattern: LogPattern, fields: Mapping[str, str | float], line: Line) -> None:
        for path, told in pattern.facts.items():
            value = told[1:] if told.startswith("=") else fields.get(told)
            if path == "phase":
                self._phase.mark(str(value))
            elif path == "frame":
                self._phase.frame(str(value))
            elif path == "failed":
                self._failed = str(value) if self._failed in ("", "start") else self._failed
            elif value is not None:
                self._facts[path] = value
        for name, told in pattern.sets.items():
            flag = flag_of(name, told, fields)
            if flag is not None:
                self._flags[name] = flag
        if pattern.id in settings.DUMPS:
            if self._stale:
                self._flags.clear()  # those of the start before
                self._stale = False
            self._flags.update({flag.name: flag for flag in settings.dumped(pattern.id, line.text)})
        self._samples.take(pattern, fields, line.at)

    def _count(self, pattern: LogPattern, base: str, line: Line, fields: dict[str, str | float]) -> None:
        seen = self._seen.get(pattern.id)
        if seen is None:
            seen = self._seen[pattern.id] = _Seen(pattern=pattern, line=line, fields=fields, base=base)
        seen.count += 1
        seen.last_at = line.at if line.at is not None else seen.last_at
        if pattern.series:
            seen.fields = fields
        if seen.start != self._start:
            seen.start = self._start
            seen.readings.clear()
        if fields and not pattern.series and len(seen.readings) < _MOST_READINGS:
            seen.readings.append(Reading(fields=fields, process=line.process))
        if pattern.level == "fatal" or pattern.facts.get("phase", "=load") != "=load":
            self._loaded = True

    def _settle_start_failures(self) -> None:
        """An out-of-memory line without a phase, with "failed to start" after it, happened while that part started."""
        if not self._failed:
            return
        for key in [key for key, seen in self._seen.items() if seen.base == key and "phase" not in seen.fields]:
            variant = logs.pattern(f"{key}{logs.VARIANT}{self._failed}")
            if variant is not None:
                seen = self._seen.pop(key)
                seen.fields["phase"] = coarse(self._failed)
                seen.pattern = variant
                self._seen[variant.id] = seen

    def _deployment(self) -> Deployment:
        facts = self._facts
        memory, capability = facts.get("hardware.memory_gib"), facts.get("hardware.compute_capability")
        cpus, count = facts.get("hardware.host_cpus"), facts.get("hardware.count")
        return Deployment(
            engine=str(facts.get("engine.name", "")),
            version=_text(facts.get("engine.version", "")),
            flags=tuple(self._flags.values()),
            hardware=HardwareFacts(
                accelerator=_text(facts.get("hardware.accelerator", "")),
                count=int(count) if isinstance(count, float) else None,
                memory_gib=memory if isinstance(memory, float) else None,
                compute_capability=capability if isinstance(capability, float) else None,
                host_cpus=int(cpus) if isinstance(cpus, float) else None,
                interconnect=_text(facts.get("hardware.interconnect", "")),
            ),
        )


def decode(raw: bytes) -> str:
    """The line as text, whatever its encoding."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _event(seen: _Seen, source: str) -> LogEvent:
    return LogEvent(
        id=seen.pattern.id,
        level=seen.pattern.level,
        text=redact.text(seen.line.text)[:TEXT_CHARS],
        fields=seen.fields,
        count=seen.count,
        first_at=seen.line.at,
        last_at=seen.last_at,
        process=seen.line.process,
        source=source,
        start=seen.start,
        readings=tuple(seen.readings),
    )


def _fields(match: re.Match[str]) -> dict[str, str | float]:
    """Named groups; numbers as floats, scaled by the ending of the name (`_SCALES`), impossible ones left out."""
    found: dict[str, str | float] = {}
    for name, value in match.groupdict().items():
        if value is None:
            continue
        if name in ("version", "sha") or not _NUMBER.fullmatch(value):
            found[name] = redact.text(value)
            continue
        number = float(value.replace(",", ""))
        for ending, (unit, scale) in _SCALES.items():
            if name.endswith(ending):
                name, number = name[: -len(ending)] + unit, number * scale
                break
        if possible(number):
            found[name] = number
    return found


def _text(value: str | float) -> str:
    """A name or a release as it may be shown: damage in a log makes them of any length."""
    return f"{value:g}" if isinstance(value, float) else value[:NAME_CHARS]
