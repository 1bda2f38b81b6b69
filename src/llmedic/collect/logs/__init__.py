"""The log source: what the engine, the driver, the kernel and the proxy printed.

`capture` reduces logs of any size to a digest, `read` makes evidence of digests, bundles and pasted text alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime

from llmedic.collect.logs.files import SOURCE, capture, is_log, newest
from llmedic.collect.logs.reader import Reader
from llmedic.model.deployment import Deployment, HardwareFacts
from llmedic.model.evidence import Evidence, Gap
from llmedic.model.raw import Raw

__all__ = ["SOURCE", "capture", "is_log", "newest", "read", "read_text"]

_ANY_YEAR = 1972
_COUNT = re.compile(r"[0-9]{1,15}")


def read(raws: Sequence[Raw]) -> Evidence:
    """Events, measurements, settings and versions of every log; what could not be read is a gap. Pure.

    Each log is read by itself, because a phase or a traceback of one says nothing of another. With several logs an
    event's source is "log:NAME" and its observations have the log's name as their instance.
    """
    readable = [raw for raw in raws if not raw.error]
    parts = [_read_one(raw, alone=len(readable) == 1) for raw in readable]
    gaps = tuple(Gap(what=f"log {raw.target}", why=raw.error, how=raw.hint) for raw in raws if raw.error)
    return _merged(parts, gaps)


def read_text(text: str, source: str = "log") -> Evidence:
    """Evidence of text that somebody pasted: the log or GPU part of a case file."""
    reader = Reader(source=source)
    lines = text.encode("utf-8", "replace").splitlines()
    for line in lines:
        reader.feed(line)
    return replace(reader.evidence(), log_lines=len(lines))


def _read_one(raw: Raw, *, alone: bool) -> Evidence:
    reader = Reader(source="log" if alone or not raw.target else f"log:{raw.target}", year=_year(raw.at))
    lines = raw.body.split(b"\n")
    for line in lines:
        reader.feed(line)
    reader.dropped(_dropped(raw.meta.get("dropped", "")))
    count = raw.meta.get("lines", "")
    gaps = () if "cut" not in raw.meta else (_cut_gap(raw),)
    return replace(reader.evidence(), log_lines=int(count) if _COUNT.fullmatch(count) else len(lines), gaps=gaps)


def _year(at: float) -> int:
    """The year for lines that do not tell theirs; one that has every day, where the log's age is not known."""
    try:
        return datetime.fromtimestamp(at, UTC).year if at else _ANY_YEAR
    except (ValueError, OverflowError, OSError):
        return _ANY_YEAR


def _dropped(text: str) -> dict[str, int]:
    try:
        data = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return {str(key): value for key, value in data.items() if isinstance(value, int)} if isinstance(data, dict) else {}


def _cut_gap(raw: Raw) -> Gap:
    why = "the time for it ran out" if raw.meta["cut"] == "time" else "the compressed file is damaged"
    return Gap(what=f"rest of log {raw.target}", why=why, how=f"llmedic diagnose --log {raw.target}")


def _merged(parts: Sequence[Evidence], gaps: tuple[Gap, ...]) -> Evidence:
    """All logs together; where two tell the same setting, the later log counts."""
    flags = {flag.name: flag for part in parts for flag in part.deployment.flags}
    hardware = HardwareFacts()
    for part in parts:
        said = {item.name: getattr(part.deployment.hardware, item.name) for item in fields(HardwareFacts)}
        hardware = replace(hardware, **{name: value for name, value in said.items() if value not in (None, "")})
    return Evidence(
        observations=tuple(item for part in parts for item in part.observations),
        events=tuple(item for part in parts for item in part.events),
        deployment=Deployment(
            engine=next((part.deployment.engine for part in parts if part.deployment.engine), ""),
            version=next((part.deployment.version for part in parts if part.deployment.version), ""),
            flags=tuple(flags.values()),
            hardware=hardware,
        ),
        gaps=gaps + tuple(gap for part in parts for gap in part.gaps),
        log_lines=sum(part.log_lines for part in parts),
    )
