"""Reads Prometheus and OpenMetrics text at about a microsecond per sample.

A diagnosis reads the same page of thousands of series several times and wants a few dozen names of it. So a `Reader`
remembers each `name{labels}` it has taken apart, and with a set of wanted names it hardly looks at the other lines.
One bad line does not spoil a page; a page that is mostly bad is not a metrics page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from llmedic.errors import AnswerError

SUFFIXES = ("", "_total", "_bucket", "_sum", "_count", "_info")
"""What a family's samples are called after the family's name."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A sample's name and labels. One `Reader` gives one object per series, so identity is equality."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """One page: its samples in order, the TYPE of its families, and how many lines could not be read.

    A page need not hold every wanted name. Values may be NaN or infinite.
    """

    samples: tuple[tuple[Series, float], ...]
    types: Mapping[str, str]
    bad_lines: int = 0

    def by_name(self) -> dict[str, list[tuple[Series, float]]]:
        """The samples grouped by their full name ("x_bucket")."""
        grouped: dict[str, list[tuple[Series, float]]] = {}
        for sample in self.samples:
            grouped.setdefault(sample[0].name, []).append(sample)
        return grouped


def sample_names(families: Collection[str]) -> frozenset[str]:
    """Every sample name that these families may use ("x" -> "x", "x_total", "x_bucket", ...)."""
    return frozenset(family + suffix for family in families for suffix in SUFFIXES)


def read(body: bytes, wanted: Collection[str] | None = None) -> Scrape:
    """Read one page. See `Reader`."""
    return Reader(wanted).read(body)


class Reader:
    """Reads pages of the same servers again and again.

    wanted: full sample names to keep, None for all. Not safe to share between threads.
    """

    def __init__(self, wanted: Collection[str] | None = None) -> None:
        self._wanted = None if wanted is None else frozenset(wanted)
        self._spelled: dict[str, Series | str] = {}  # str: unwanted, and what its lines start with
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], Series] = {}

    def read(self, body: bytes) -> Scrape:
        """Take a page apart.

        Raises AnswerError when it is empty, a web page, binary, or otherwise mostly not metrics.
        """
        samples: list[tuple[Series, float]] = []
        types: dict[str, str] = {}
        bad_lines = 0
        recall = self._spelled.get
        skipped = "\n"  # no line holds one
        for line in _text(body).split("\n"):
            if line.startswith(skipped):
                continue
            if line.startswith("#"):
                if line.startswith("# TYPE "):
                    _note_type(line, types)
                continue
            key, _, number = line.rpartition(" ")
            known = recall(key)
            try:
                if isinstance(known, Series) and "_" not in number:
                    samples.append((known, float(number)))
                    continue
                found = known if isinstance(known, str) else self._slowly(line, key)
            except ValueError:
                bad_lines += 1
                continue
            if isinstance(found, str):
                skipped = found
            elif found is not None:
                samples.append(found)
        _check(samples, types, bad_lines)
        return Scrape(samples=tuple(samples), types=types, bad_lines=bad_lines)

    def _slowly(self, line: str, key: str) -> tuple[Series, float] | str | None:
        """A line seen for the first time, or one with a timestamp or an exemplar.

        Returns its sample, or the start of the lines to skip when its name is unwanted, or None for no sample.
        """
        line = line.strip()
        if not line or line[0] == "#":
            return None
        spelled, rest = _split(line)
        value = _value(rest)
        known = self._spelled.get(spelled)
        if isinstance(known, Series):
            return known, value
        name, labels = _take_apart(spelled)
        if self._wanted is None or name in self._wanted:
            identity = (name, tuple(sorted(labels.items())))
            series = self._known.setdefault(identity, Series(name, labels))
            self._spelled[spelled] = series
            return series, value
        if line[0] == "{":
            return None
        self._spelled[key] = line[: len(name) + 1]
        return line[: len(name) + 1]


# Possessive, so that a label of a megabyte is passed over in one step.
_QUOTED = r'"(?:[^"\\]++|\\.)*+"'
_KEY = re.compile(rf"(?:([a-zA-Z_:][a-zA-Z0-9_:]*)\s*)?(?:\{{((?:[^\"}}]++|{_QUOTED})*)\}})?")
_TERM = re.compile(rf"\s*(?:([a-zA-Z_:][a-zA-Z0-9_:]*)|({_QUOTED}))\s*(?:=\s*({_QUOTED})\s*)?(?:,|$)")
_END = re.compile(r"\s*\Z")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}


def _text(body: bytes) -> str:
    start = body[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start:
        raise AnswerError("the metrics page is empty", hint="is the engine still starting?")
    if start.startswith(b"<"):
        raise AnswerError("got a web page, not metrics", hint="is it the engine's own port, and the path /metrics?")
    if b"\0" in body:
        raise AnswerError("got binary data, not metrics text", hint="save it with curl URL/metrics > FILE")
    text = body.decode("utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n") if "\r" in text else text


def _check(samples: list[tuple[Series, float]], types: Mapping[str, str], bad_lines: int) -> None:
    if bad_lines > len(samples) + len(types):
        raise AnswerError("not Prometheus text: most lines cannot be read", hint="is it a metrics page?")


def _note_type(line: str, types: dict[str, str]) -> None:
    words = line.split()
    if len(words) == 4:
        types[words[2].strip('"')] = words[3]


def _split(line: str) -> tuple[str, str]:
    """The `name{labels}` part as spelled, and what follows it."""
    match = _KEY.match(line)
    if match is None or not match.end() or (match.group(1) is None and match.group(2) is None):
        raise ValueError(line)
    return line[: match.end()].rstrip(), line[match.end() :]


def _value(rest: str) -> float:
    """The value of "VALUE [TIMESTAMP] [# EXEMPLAR]"."""
    words = rest.partition("#")[0].split()
    if not 1 <= len(words) <= 2:
        raise ValueError(rest)
    if len(words) == 2:
        _number(words[1])
    return _number(words[0])


def _number(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _take_apart(key: str) -> tuple[str, dict[str, str]]:
    match = _KEY.fullmatch(key)
    if match is None:
        raise ValueError(key)
    name = match.group(1) or ""
    labels: dict[str, str] = {}
    for term, value in _terms(match.group(2) or ""):
        if value is None:
            if name:
                raise ValueError(key)
            name = term
        elif term in labels:
            raise ValueError(key)
        else:
            labels[term] = value
    if not name:
        raise ValueError(key)
    return name, labels


def _terms(text: str) -> Iterator[tuple[str, str | None]]:
    """Label names and values; a lone quoted term is the metric's name (no value)."""
    at = 0
    while not _END.match(text, at):
        match = _TERM.match(text, at)
        if match is None:
            raise ValueError(text)
        bare, quoted, value = match.groups()
        if value is None and quoted is None:
            raise ValueError(text)
        yield bare or _unquoted(quoted), None if value is None else _unquoted(value)
        at = match.end()


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match.group(1), match.group()), inner) if "\\" in inner else inner
