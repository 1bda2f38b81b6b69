"""One engine over the window: what its counters gained, how its gauges went, what it says since start.

`parts_of` makes the instances of one server from its pages; `joined` makes a server of its data-parallel engines, and
the service of its servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from llmedic.collect.engine import histogram
from llmedic.collect.engine.histogram import Histogram
from llmedic.collect.engine.look import Look, together
from llmedic.knowledge import metrics

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Values by metric id. Names end as in `Observation.instance`.

    gained, rates   counters over the window and per second; empty with a single page
    since_start     counters since the process started
    window, ever    histograms of the window and since start
    window_s        None when unknown
    resets          restarts inside the window; None when it cannot be told
    """

    name: str = ""
    at: float = 0.0
    window_s: float | None = None
    gained: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    since_start: Mapping[str, float] = field(default_factory=dict)
    gauges: Mapping[str, Points] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    window: Mapping[str, Histogram] = field(default_factory=dict)
    ever: Mapping[str, Histogram] = field(default_factory=dict)
    scrapes: Points = ()
    resets: int | None = None


def parts_of(
    name: str, first: Look | None, between: Sequence[Look], last: Look, window_s: float | None, engine: str
) -> list[Instance]:
    """The data-parallel engines of one server, "name#0" and so on; one instance called `name` when there are not two.

    window_s: the time between first and last, None when unknown.
    """
    pages = [page for page in (first, *between, last) if page is not None]
    keys = {part for part in (*last.numbers, *last.histograms) if part}
    if len(keys) < 2:
        return [_instance(name, None, first, pages, last, window_s, engine)]
    return [
        _instance(f"{name}#{part}" if part else f"{name}#", part, first, pages, last, window_s, engine)
        for part in sorted(keys | ({""} & set(last.numbers)), key=_natural)
    ]


def joined(name: str, instances: Sequence[Instance], engine: str) -> Instance:
    """Several engines as one: counts are summed, levels taken at their worst, each as the knowledge files say."""
    if len(instances) == 1:
        return _renamed(instances[0], name)
    how = {metric.id: metric.together for metric in metrics.names(engine).metrics}
    windows = [one.window_s for one in instances if one.window_s is not None]
    resets = [one.resets for one in instances if one.resets is not None]
    return Instance(
        name=name,
        at=max(one.at for one in instances),
        window_s=max(windows) if windows else None,
        gained=_joined_numbers([one.gained for one in instances], how),
        rates=_joined_numbers([one.rates for one in instances], how),
        since_start=_joined_numbers([one.since_start for one in instances], how),
        gauges=_joined_gauges([one.gauges for one in instances], how),
        fixed=_joined_numbers([one.fixed for one in instances], how),
        window=_joined_histograms([one.window for one in instances]),
        ever=_joined_histograms([one.ever for one in instances]),
        scrapes=max((one.scrapes for one in instances), key=lambda points: max((s for _, s in points), default=0.0)),
        resets=sum(resets) if resets else None,
    )


def _renamed(instance: Instance, name: str) -> Instance:
    fields = {key: getattr(instance, key) for key in Instance.__dataclass_fields__}
    return Instance(**{**fields, "name": name})


def _natural(part: str) -> tuple[int, str]:
    return (int(part), "") if part.isdigit() else (-1 if not part else 10**9, part)


def _instance(
    name: str,
    part: str | None,
    first: Look | None,
    pages: Sequence[Look],
    last: Look,
    window_s: float | None,
    engine: str,
) -> Instance:
    kinds = {metric.id: metric.kind for metric in metrics.names(engine).metrics}
    now, ever = _numbers(last, part), _histograms(last, part)
    counters = {key: value for key, value in now.items() if kinds[key] == "counter"}
    gained: dict[str, float] = {}
    window: dict[str, Histogram] = {}
    resets = None
    if first is not None:
        before, ever_before = _numbers(first, part), _histograms(first, part)
        restarted = _has_restarted(before, now, kinds)
        base = {} if restarted else before
        gained = {key: _gain(base.get(key, 0.0), value) for key, value in counters.items()}
        window = {
            key: one if restarted or key not in ever_before else one.since(ever_before[key])
            for key, one in ever.items()
        }
        fell = any(counters.get(key, value) < value for key, value in before.items() if key in counters)
        resets = int(restarted or fell)
        window_s = _shortened(window_s, now, last.at) if restarted else window_s
    usable_s = window_s if window_s is not None and window_s > 0 else None
    return Instance(
        name=name,
        at=last.at,
        window_s=usable_s if first is not None else None,
        gained=gained,
        rates={} if usable_s is None else {key: value / usable_s for key, value in gained.items()},
        since_start=counters,
        gauges=_gauges(pages, part, {key for key, kind in kinds.items() if kind == "gauge"}),
        fixed={key: value for key, value in now.items() if kinds[key] == "constant"},
        window=window,
        ever=ever,
        scrapes=tuple((page.t, page.elapsed_s) for page in pages if page.elapsed_s > 0),
        resets=resets,
    )


def _has_restarted(before: Mapping[str, float], now: Mapping[str, float], kinds: Mapping[str, str]) -> bool:
    """A later process start says so; without one, a counter that went down does."""
    if "process_start_s" in before and "process_start_s" in now:
        return now["process_start_s"] > before["process_start_s"] + 1.0
    return any(kinds[key] == "counter" and now.get(key, value) < value for key, value in before.items())


def _gain(before: float, now: float) -> float:
    return now - before if now >= before else now


def _shortened(window_s: float | None, now: Mapping[str, float], at: float) -> float | None:
    """After a restart only the time since then counts."""
    start = now.get("process_start_s")
    if window_s is None or not start or not at:
        return window_s
    return min(window_s, max(at - start, 0.001))


def _numbers(page: Look, part: str | None) -> Mapping[str, float]:
    """One part's numbers; None: of the only part together with what has no part."""
    if part is not None:
        return page.numbers.get(part, {})
    return {key: value for numbers in page.numbers.values() for key, value in numbers.items()}


def _histograms(page: Look, part: str | None) -> Mapping[str, Histogram]:
    if part is not None:
        return page.histograms.get(part, {})
    return {key: value for histograms in page.histograms.values() for key, value in histograms.items()}


def _gauges(pages: Sequence[Look], part: str | None, names: set[str]) -> dict[str, Points]:
    points: dict[str, list[tuple[float, float]]] = {}
    for page in pages:
        for key, value in _numbers(page, part).items():
            if key in names:
                points.setdefault(key, []).append((page.t, value))
    return {key: tuple(values) for key, values in points.items()}


def _joined_numbers(several: Iterable[Mapping[str, float]], how: Mapping[str, str]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for one in several:
        for key, value in one.items():
            values.setdefault(key, []).append(value)
    return {key: together(how[key], found) for key, found in values.items()}


def _joined_histograms(several: Iterable[Mapping[str, Histogram]]) -> dict[str, Histogram]:
    values: dict[str, list[Histogram]] = {}
    for one in several:
        for key, value in one.items():
            values.setdefault(key, []).append(value)
    return {key: histogram.joined(found) for key, found in values.items()}


def _joined_gauges(several: Sequence[Mapping[str, Points]], how: Mapping[str, str]) -> dict[str, Points]:
    """At every moment of the instance that was looked at most often, all instances at their nearest moment."""
    keys = {key: None for one in several for key in one}
    result: dict[str, Points] = {}
    for key in keys:
        series = [one[key] for one in several if key in one]
        moments = [t for t, _ in max(series, key=len)]
        result[key] = tuple((t, together(how[key], [_nearest(points, t) for points in series])) for t in moments)
    return result


def _nearest(points: Points, t: float) -> float:
    return min(points, key=lambda point: abs(point[0] - t))[1]
