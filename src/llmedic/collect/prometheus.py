"""Prometheus as a source: what it stored of the engines is put back into the pages that they showed at the time.

    capture  prom+http(s)://host:port/path?selector -> raws
    read     raws of source "prometheus" -> gaps, pure

A series' samples carry the time of the scrape, so the pages at both ends of the window can be rebuilt exactly. They
come out as raws of source "engine", and the one reader of metrics pages judges live servers and stored ones alike.
"""

from __future__ import annotations

import re
import urllib.parse
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import median

from llmedic.errors import AnswerError, CallerError, LLMedicError, UsageError
from llmedic.knowledge import metrics
from llmedic.model.evidence import Evidence, Gap
from llmedic.model.raw import Raw
from llmedic.wire import http, promapi
from llmedic.wire.parallel import run_all

SOURCE = "prometheus"
SCHEMES = ("prom+http://", "prom+https://")

EXACT_UP_TO_S = 1800.0
"""Up to this window every stored sample is fetched; above it, the newest sample at every step."""

_SCRAPE_INTERVAL_S = 60.0  # the longest that is usual: so far before the window its first scrape may lie
_STEPS = 240
_SHORTEST_STEP_S = 15.0
_LOOKS = 60
_GRACE_S = 0.5

# Labels that Prometheus, its operator or its federation add: they name the server and are no part of its page.
# fmt: off
_TARGET_LABELS = frozenset((
    "job", "instance", "pod", "pod_name", "namespace", "container", "endpoint", "service", "node", "cluster", "replica",
    "prometheus", "prometheus_replica", "kubernetes_namespace", "kubernetes_pod_name", "receive", "tenant_id",
    "exported_job", "exported_instance",
))
# fmt: on
_MATCHER = re.compile(
    r"""\s*(?P<label>[a-zA-Z_][a-zA-Z0-9_]*)\s*(?P<how>=~|!~|!=|=)\s*"""
    r"""(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<bare>[^\s,"'{}]+))\s*(?:,|$)"""
)
_EXAMPLE = 'write it as prom+http://HOST:9090?job="vllm",namespace="prod"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to ask, and the label matchers that pick the engines ("" for all)."""

    base: str
    matchers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """A period to fetch, in Unix seconds."""

    period: str
    start: float
    end: float

    @property
    def title(self) -> str:
        return "window" if self.period == "window" else f"{self.period} window"


def capture(
    url: str,
    *,
    access: http.Access = http.ANONYMOUS,
    window_s: float,
    compare_to_s: float | None = None,
    now: float,
    deadline_s: float = 30.0,
) -> tuple[Raw, ...]:
    """Fetch the window that ends at `now` and, with compare_to_s, the one that ended so many seconds earlier.

    A window shorter than the scrape interval grows to one interval. Raises UsageError for a bad target or selector,
    never for what the server does.
    """
    target = parse(url)
    stretches = [_Stretch(period="window", start=now - window_s, end=now)]
    if compare_to_s is not None:
        end = now - compare_to_s
        stretches.append(_Stretch(period="previous", start=end - window_s, end=end))
    tasks = {
        f"{stretch.period} {part}": partial(_fetch, target, access, stretch, names, deadline_s)
        for stretch in stretches
        for part, names in _names(target).items()
    }
    answers = run_all(tasks, deadline_s + _GRACE_S)
    raws: list[Raw] = []
    for stretch in stretches:
        parts = {part: answers[f"{stretch.period} {part}"] for part in _names(target)}
        raws += _raws(target, stretch, parts, now)
    return tuple(raws)


def parse(url: str) -> Target:
    """Take a target apart. Raises UsageError when it is none or its selector is no list of label matchers."""
    if not url.startswith(SCHEMES):
        raise UsageError(f"{url!r} is not a Prometheus target", hint=_EXAMPLE)
    address, _, selector = url.removeprefix("prom+").partition("?")
    base = address.partition("#")[0].rstrip("/")
    base = re.sub(r"/api/v1(?:/query(?:_range)?)?$", "", base)
    text = urllib.parse.unquote(selector).strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    return Target(base=base, matchers=",".join(_matchers(text)))


def read(raws: Iterable[Raw]) -> Evidence:
    """The gaps of this source: what could not be asked, warnings, and what had to be left out.

    Observations come from the raws of source "engine" that `capture` gives beside these.
    """
    gaps = [
        Gap(what=raw.target, why=raw.error, how=raw.hint or f"llmedic diagnose prom+{raw.target}")
        for raw in raws
        if raw.source == SOURCE and raw.error
    ]
    return Evidence(gaps=tuple(dict.fromkeys(gaps)))


def _matchers(text: str) -> list[str]:
    found: list[str] = []
    at = 0
    while at < len(text):
        match = _MATCHER.match(text, at)
        if match is None:
            raise UsageError(f"{text[at:]!r} is not a label matcher", hint=_EXAMPLE)
        # A shell takes the quotes off job="vllm": it is clear all the same what was meant.
        value = match["quoted"] or '"' + match["bare"].replace("\\", "\\\\") + '"'
        found.append(f"{match['label']}{match['how']}{value}")
        at = match.end()
    return found


def _names(target: Target) -> dict[str, tuple[str, ...]]:
    """The sample names to ask for: histograms apart, since they are most of the answer."""
    names = {name for engine in metrics.ENGINES for name in metrics.names(engine).samples}
    if not target.matchers:
        # Every other program has a process collector too: without a selector, all of theirs would come along.
        names = {name for name in names if _is_engine(name)}
    buckets = {name for name in names if name.endswith("_bucket")}
    return {"numbers": tuple(sorted(names - buckets)), "buckets": tuple(sorted(buckets))}


def _fetch(
    target: Target, access: http.Access, stretch: _Stretch, names: Sequence[str], deadline_s: float
) -> promapi.Result:
    alternatives = "|".join(names)
    selector = "{" + ",".join(filter(None, (f'__name__=~"{alternatives}"', target.matchers))) + "}"
    window_s = stretch.end - stretch.start
    start = stretch.start - _SCRAPE_INTERVAL_S
    if window_s <= EXACT_UP_TO_S:
        return promapi.samples(target.base, access, selector, start=start, end=stretch.end, deadline_s=deadline_s)
    step_s = max(window_s / _STEPS, _SHORTEST_STEP_S)
    return promapi.at_steps(
        target.base, access, selector, start=stretch.start, end=stretch.end, step_s=step_s, deadline_s=deadline_s
    )


def _raws(target: Target, stretch: _Stretch, parts: Mapping[str, promapi.Result | Exception], now: float) -> list[Raw]:
    shown = http.shown(target.base)
    note = partial(_note, shown, stretch, now)
    said: list[Raw] = []
    series: list[promapi.Series] = []
    for part, result in parts.items():
        if isinstance(result, CallerError):
            raise result
        if isinstance(result, Exception):
            said.append(note(*_explained(result, part)))
            continue
        series += result.series
        said += [note(f"Prometheus warns: {warning}") for warning in result.warnings]
        if result.native_histograms:
            hint = "set always_scrape_classic_histograms: true in the scrape configuration"
            said.append(note(f"{result.native_histograms} native histograms were left out", hint))
    servers = _servers(series)
    if not servers and not said:
        chosen = "{" + target.matchers + "}" if target.matchers else "any job"
        hint = f"see what is there: curl -g '{shown}/api/v1/label/__name__/values'"
        said.append(note(f"no engine's series for {chosen} in the {stretch.title}", hint))
    pages = [raw for name, one in servers.items() for raw in _pages(name, one, stretch, shown)]
    return said + pages


def _explained(failure: Exception, part: str) -> tuple[str, str, int]:
    if isinstance(failure, LLMedicError):
        return failure.message, failure.hint, failure.status if isinstance(failure, AnswerError) else 0
    if isinstance(failure, TimeoutError):
        return f"{part}: {failure}", "ask for a shorter window with --window", 0
    raise failure


def _servers(series: Iterable[promapi.Series]) -> dict[str, list[promapi.Series]]:
    """The series of each engine. One that is scraped or stored twice (two jobs, two Prometheuses) counts once."""
    copies: dict[str, dict[tuple[tuple[str, str], ...], list[promapi.Series]]] = {}
    for one in series:
        if one.points:
            name = one.labels.get("instance") or one.labels.get("pod") or ""
            copy = tuple(sorted((k, v) for k, v in one.labels.items() if k in _TARGET_LABELS))
            copies.setdefault(name, {}).setdefault(copy, []).append(one)
    servers: dict[str, list[promapi.Series]] = {}
    for name, several in sorted(copies.items()):
        # Only an engine's own names make a server of it: a process collector is in every exporter.
        engines = [found for _, found in sorted(several.items()) if any(_is_engine(one.name) for one in found)]
        if engines:
            servers[name] = max(engines, key=len)
    return servers


def _is_engine(name: str) -> bool:
    return any(name.startswith(engine.prefixes) for engine in metrics.ENGINES.values() if engine.prefixes)


def _pages(name: str, series: Sequence[promapi.Series], stretch: _Stretch, prometheus: str) -> list[Raw]:
    """The pages of one server: whole ones at both ends, the gauges in between."""
    times = sorted({at for one in series for at, _ in one.points})
    end = times[-1]
    # The newest scrape at or before the window's start; a window shorter than the interval gets one interval.
    before = bisect_right(times, stretch.start) - 1
    begin = times[max(0, before)] if times[max(0, before)] < end or len(times) < 2 else times[-2]
    said = _stale_note(name, times, stretch, prometheus)
    restarted = _hidden_restart(series, begin, end)
    if restarted is not None:
        said.append(_restart_note(name, stretch, prometheus, restarted - begin, end))
        begin = restarted
    meta = {"begun": repr(begin), "window_s": repr(end - begin), "period": stretch.period, "from": prometheus}
    blank = Raw(source="engine", kind="metrics", target=f"http://{name}", status=200)
    pages = [replace(blank, at=end, body=_page(series, end), meta={**meta, "end": "last"})]
    if begin < end:
        pages.insert(0, replace(blank, at=begin, body=_page(series, begin), meta={**meta, "end": "first"}))
    between = [at for at in times if begin < at < end]
    gauges = frozenset().union(*(metrics.names(engine).gauges for engine in metrics.ENGINES))
    levels = [one for one in series if one.name in gauges]
    looks = [
        replace(blank, kind="gauges", at=at, body=_page(levels, at), meta=meta) for at in _thinned(between, _LOOKS)
    ]
    return [*said, *sorted((*pages, *looks), key=lambda raw: raw.at)]


def _page(series: Iterable[promapi.Series], at: float) -> bytes:
    lines = []
    for one in series:
        position = bisect_right(one.points, (at, float("inf"))) - 1
        if position >= 0 and one.points[position][0] == at:
            lines.append(f"{one.name}{_labels(one.labels)} {one.points[position][1]!r}")
    return "".join(f"{line}\n" for line in sorted(lines)).encode()


def _labels(labels: Mapping[str, str]) -> str:
    own = sorted((k, v) for k, v in labels.items() if k != "__name__" and k not in _TARGET_LABELS)
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in own) + "}" if own else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _thinned(times: Sequence[float], most: int) -> Sequence[float]:
    return times if len(times) <= most else [times[number * len(times) // most] for number in range(most)]


def _hidden_restart(series: Iterable[promapi.Series], begin: float, end: float) -> float | None:
    """The first scrape after a restart that the two ends alone would not show, None without one.

    A later process start, or a counter that is lower at the end, is seen by whoever compares the two pages. A server
    that does not tell its start and has counted past its old values since is not.
    """
    fell: float | None = None
    for one in series:
        if one.name == "process_start_time_seconds":
            return None
        if not one.name.endswith(("_total", "_count")):
            continue
        inside = [point for point in one.points if begin <= point[0] <= end]
        falls = [later[0] for earlier, later in pairwise(inside) if later[1] < earlier[1]]
        if falls and inside[-1][1] < inside[0][1]:
            return None
        if falls and falls[-1] < end:
            fell = max(fell or 0.0, falls[-1])
    return fell


def _stale_note(name: str, times: Sequence[float], stretch: _Stretch, prometheus: str) -> list[Raw]:
    """Says that a server was not scraped to the end: it went away, or Prometheus lost it."""
    interval_s = median(later - earlier for earlier, later in pairwise(times)) if len(times) > 1 else _SCRAPE_INTERVAL_S
    silent_s = stretch.end - times[-1]
    if silent_s <= 2.5 * interval_s:
        return []
    why = f"{name} was last scraped {silent_s:.0f} s before the end of the {stretch.title}"
    return [_note(prometheus, stretch, times[-1], why, f"is it down? llmedic diagnose http://{name}")]


def _restart_note(name: str, stretch: _Stretch, prometheus: str, lost_s: float, at: float) -> Raw:
    why = f"{name} restarted: {lost_s:.0f} s before it are not part of the {stretch.title}"
    return _note(prometheus, stretch, at, why, "ask for the time before it with --compare-to")


def _note(prometheus: str, stretch: _Stretch, at: float, error: str, hint: str = "", status: int = 0) -> Raw:
    return Raw(
        source=SOURCE,
        kind="answer",
        target=prometheus,
        at=at,
        status=status,
        error=error,
        hint=hint,
        meta={"period": stretch.period},
    )
