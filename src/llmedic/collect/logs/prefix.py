"""Takes the wrapping off a log line: JSON, container runtimes, colours, times, process names.

Every engine and every runtime puts something else in front of the sentence that matters. The sentence itself is
found by its literal wherever it stands, so this module only needs the time, the process and, for JSON, the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from llmedic.model.numbers import possible
from llmedic.wire import jsontext

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FULL = re.compile(
    r"(?P<y>20\d\d)[-/](?P<m>\d\d)[-/](?P<d>\d\d)(?:[T ]| - )(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d(?:[.,]\d{1,9})?)"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_NO_YEAR = re.compile(r"\b(?P<m>\d\d)-(?P<d>\d\d) (?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d(?:[.,]\d{1,6})?)\b")
_MONTH = re.compile(r"^(?P<mon>[A-Z][a-z]{2}) +(?P<d>\d{1,2}) (?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)\b")
_CLOCK = re.compile(r"^\[(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)")
_KERNEL = re.compile(r"^\[ *(?P<S>\d+\.\d{6})\]")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_PROCESS = re.compile(
    r"\((?P<pid>[A-Z][A-Za-z]\w*(?: \w+=[\w.]+,?)+)\)"  # (EngineCore_DP0 pid=123), (RayWorkerWrapper pid=1, ip=…)
    r"|^\[[^\]]*?(?P<rank>(?:DP\d+ )?(?:PP\d+ )?TP\d+)(?: EP\d+)?\]"  # [2025-11-30 12:00:00 DP0 TP1]
    r"|^(?P<core>EngineCore_\d+|\w+Worker\w*) pid"
    r"|^\[(?P<free>[A-Za-z][^\]]{0,40})\] "  # [client], [pod/x/y]
    r"|^(?P<compose>[\w.-]+-\d+) +\| "
)
_DOCKER_KEYS = ("log", "message", "msg", "text", "MESSAGE")
_TIME_KEYS = ("time", "timestamp", "ts", "asctime", "__REALTIME_TIMESTAMP")
_NOMINAL_YEAR = 1972  # a leap year near the epoch: a log without a year still has an order and differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line without its wrapping. at is in Unix seconds, counted from a nominal year where the log names none."""

    text: str
    at: float | None = None
    process: str = ""


def unwrap(raw: str, year: int = _NOMINAL_YEAR) -> Line:
    """Reads one line; never raises. `year` is the one to assume when the line has a date without a year."""
    text = _COLOURS.sub("", raw).rstrip() if "\x1b" in raw else raw.rstrip()
    at = None
    if text.startswith("{") and text.endswith("}"):
        text, at = _from_json(text)
    head = text[:160]
    if at is None:
        at = _time(head, year)
    return Line(text=text, at=at, process=_process(head))


def _from_json(text: str) -> tuple[str, float | None]:
    try:
        data = msgspec.json.decode(text.encode("utf-8", "replace"))
    except jsontext.NOT_READABLE:
        return text, None
    if not isinstance(data, dict):
        return text, None
    fields = data.get("fields")
    for source in (data, fields if isinstance(fields, Mapping) else {}):
        for key in _DOCKER_KEYS:
            value = source.get(key)
            if isinstance(value, str):
                return value.rstrip(), _json_time(data)
    return text, _json_time(data)


def _json_time(data: Mapping[str, object]) -> float | None:
    for key in _TIME_KEYS:
        value = data.get(key)
        if isinstance(value, str):
            return _time(value, _NOMINAL_YEAR)
        if isinstance(value, int | float) and not isinstance(value, bool) and possible(value):
            return float(value) / 1000 if value > 1e11 else float(value)
    return None


def _time(head: str, year: int) -> float | None:
    if match := _FULL.search(head):
        zone = match["zone"] or "Z"
        return _stamp(int(match["y"]), int(match["m"]), match, zone)
    if match := _NO_YEAR.search(head):
        return _stamp(year, int(match["m"]), match)
    if (match := _MONTH.match(head)) and match["mon"] in _MONTHS:
        return _stamp(year, _MONTHS.index(match["mon"]) + 1, match)
    if match := _CLOCK.match(head):
        return int(match["H"]) * 3600.0 + int(match["M"]) * 60 + int(match["S"])
    if match := _KERNEL.match(head):
        return float(match["S"])
    return None


def _stamp(year: int, month: int, match: re.Match[str], zone: str = "Z") -> float | None:
    seconds = float(match["S"].replace(",", "."))
    try:
        moment = datetime(year, month, int(match["d"]), int(match["H"]), int(match["M"]), tzinfo=UTC)
    except ValueError:
        return None
    offset = 0
    if zone != "Z":
        digits = zone[1:].replace(":", "")
        offset = (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (1 if zone[0] == "+" else -1)
    return moment.timestamp() + seconds - offset


def _process(head: str) -> str:
    match = _PROCESS.search(head)
    return "" if match is None else next(value for value in match.groups() if value is not None).strip()
