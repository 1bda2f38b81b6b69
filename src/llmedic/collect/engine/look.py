"""One metrics page in the words of the knowledge files: the first step from text to evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llmedic.collect.engine.histogram import Histogram
from llmedic.knowledge import metrics
from llmedic.model.raw import Raw
from llmedic.wire.exposition import Reader, Series

Sample = tuple[Series, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one page said. Outer keys are the data-parallel part ("" where the page has none), inner the metric's id.

    t          seconds since the window began
    odd        names with values that are not numbers
    bad_lines  lines that could not be read
    """

    t: float
    at: float
    elapsed_s: float
    numbers: Mapping[str, Mapping[str, float]]
    histograms: Mapping[str, Mapping[str, Histogram]]
    infos: Mapping[str, Mapping[str, str]]
    odd: frozenset[str]
    bad_lines: int


def look(raw: Raw, t: float, engine: str, reader: Reader) -> Look:
    """Read one page. Raises AnswerError when it is not one."""
    scrape = reader.read(raw.body)
    page = scrape.by_name()
    numbers: dict[str, dict[str, float]] = {}
    histograms: dict[str, dict[str, Histogram]] = {}
    infos: dict[str, dict[str, str]] = {}
    for metric in metrics.names(engine).metrics:
        if metric.kind == "histogram":
            for part, histogram in _histograms(metric, engine, page).items():
                histograms.setdefault(part, {})[metric.id] = histogram
        elif metric.kind == "info":
            for part, labels in _infos(metric, engine, page).items():
                infos.setdefault(part, {}).update(labels)
        else:
            for part, number in _numbers(metric, engine, page).items():
                numbers.setdefault(part, {})[metric.id] = number * metric.scale
    odd = frozenset(series.name for series, value in scrape.samples if not math.isfinite(value))
    return Look(
        t=t,
        at=raw.at,
        elapsed_s=raw.elapsed_s,
        numbers=numbers,
        histograms=histograms,
        infos=infos,
        odd=odd,
        bad_lines=scrape.bad_lines,
    )


def together(how: str, values: Sequence[float]) -> float:
    """Several readings of one thing as one, as `Metric.together` says."""
    match how:
        case "max":
            return max(values)
        case "min":
            return min(values)
    return sum(values)


def _numbers(metric: metrics.Metric, engine: str, page: Mapping[str, list[Sample]]) -> dict[str, float]:
    family = _family(metric, engine, page)
    found = {
        part: max(together(metric.together, [value for _, value in samples]) for samples in copies.values())
        for part, copies in _apart(_matching(metric, family), engine).items()
    }
    if metric.kind == "counter" and metric.where:
        # The family is there, only nothing has been counted under these labels yet.
        found = dict.fromkeys(_apart(family, engine), 0.0) | found
    return found


def _histograms(metric: metrics.Metric, engine: str, page: Mapping[str, list[Sample]]) -> dict[str, Histogram]:
    for name in metrics.spellings(metric, engine):
        bucket, total, count = (page.get(sample, []) for sample in metrics.samples_of("histogram", name))
        if not count:
            continue
        parts: dict[str, list[Histogram]] = {}
        totals = _apart(_matching(metric, _whole(total, engine)), engine)
        buckets = _apart(_matching(metric, _whole(bucket, engine)), engine)
        for part, copies in _apart(_matching(metric, _whole(count, engine)), engine).items():
            for copy, samples in copies.items():
                edges: dict[float, float] = {}
                for series, value in buckets.get(part, {}).get(copy, []):
                    edge = _edge(series)
                    edges[edge] = edges.get(edge, 0.0) + value
                sum_ = sum(value for _, value in totals.get(part, {}).get(copy, []))
                number = sum(value for _, value in samples)
                parts.setdefault(part, []).append(Histogram(buckets=edges, total=sum_, count=number))
        return {part: max(copies, key=lambda copy: copy.count) for part, copies in parts.items()}
    return {}


def _infos(metric: metrics.Metric, engine: str, page: Mapping[str, list[Sample]]) -> dict[str, dict[str, str]]:
    family = _family(metric, engine, page)
    return {
        series.labels.get(metrics.ENGINES[engine].part, ""): dict(series.labels) for series, value in family if value
    }


def _family(metric: metrics.Metric, engine: str, page: Mapping[str, list[Sample]]) -> list[Sample]:
    """The samples under the newest of the metric's names that the page has."""
    for name in metrics.sample_names(metric, engine):
        finite = [sample for sample in page.get(name, []) if math.isfinite(sample[1])]
        if finite:
            return _whole(finite, engine)
    return []


def _whole(samples: list[Sample], engine: str) -> list[Sample]:
    """Without the parts of a total that the page gives as well."""
    for label in metrics.ENGINES[engine].total_of if engine else ():
        if any(series.labels.get(label) == "" for series, _ in samples):
            samples = [sample for sample in samples if not sample[0].labels.get(label)]
    return samples


def _matching(metric: metrics.Metric, samples: list[Sample]) -> list[Sample]:
    if not metric.where:
        return samples
    return [
        sample
        for sample in samples
        if all(sample[0].labels.get(label) in allowed for label, allowed in metric.where.items())
    ]


def _apart(samples: list[Sample], engine: str) -> dict[str, dict[tuple[str, ...], list[Sample]]]:
    """Samples by data-parallel part, and within it by the worker that repeats them."""
    about = metrics.ENGINES[engine] if engine else metrics.Engine()
    parts: dict[str, dict[tuple[str, ...], list[Sample]]] = {}
    for sample in samples:
        labels = sample[0].labels
        copy = tuple(labels.get(label, "") for label in about.copies)
        parts.setdefault(labels.get(about.part, ""), {}).setdefault(copy, []).append(sample)
    return parts


def _edge(series: Series) -> float:
    try:
        return float(series.labels.get("le", ""))
    except ValueError:
        return math.inf
