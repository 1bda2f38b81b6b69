"""Bucket counts and the quantiles that can honestly be read off them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from llmedic.model.observation import Quantiles

_QUANTILES: tuple[tuple[Literal["p50", "p90", "p95", "p99"], float], ...] = (
    ("p50", 0.50),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Cumulative counts by upper edge (the last edge is infinity), the sum of the values and their number."""

    buckets: Mapping[float, float]
    total: float
    count: float

    def since(self, earlier: Histogram) -> Histogram:
        """What was added after `earlier`; all of it when the process started anew in between."""
        if self.count < earlier.count or self.total < earlier.total - 1e-9:
            return self
        return Histogram(
            buckets={edge: max(0.0, n - earlier.buckets.get(edge, 0.0)) for edge, n in self.buckets.items()},
            total=max(0.0, self.total - earlier.total),
            count=self.count - earlier.count,
        )

    @property
    def mean(self) -> float | None:
        """The mean, exact; None without values, or with ones that are not of this world."""
        mean = self.total / self.count if self.count > 0 else math.inf
        return mean if math.isfinite(mean) else None


def joined(parts: Iterable[Histogram]) -> Histogram:
    """All values together. Only edges that all share are kept: between releases buckets differ."""
    several = list(parts)
    shared = set.intersection(*(set(part.buckets) for part in several)) if several else set()
    return Histogram(
        buckets={edge: sum(part.buckets[edge] for part in several) for edge in sorted(shared)},
        total=sum(part.total for part in several),
        count=sum(part.count for part in several),
    )


def quantiles(histogram: Histogram) -> Quantiles | None:
    """Quantiles by interpolation in their bucket, the exact mean and the count; None without values.

    A quantile in the first bucket is only known to be below that bucket's edge (`floor`), one beyond the last
    finite edge only to be above it (`cap`). No quantile is put above what the mean allows: at most a share
    1 - q of values that cannot be negative reaches mean / (1 - q).
    """
    mean = histogram.mean
    if mean is None:
        return None
    values: dict[str, float | None] = {}
    finite = sorted(edge for edge in histogram.buckets if math.isfinite(edge))
    floor = cap = None
    for name, share in _QUANTILES if finite else ():
        lower, upper, value = _within(histogram, finite, share * histogram.count)
        if math.isinf(upper):
            cap = finite[-1]
        else:
            value = max(lower, min(value, mean / (1 - share)))
            if lower == 0.0 and upper == finite[0]:
                floor = finite[0]
        values[name] = value
    return Quantiles(
        p50=values.get("p50"),
        p90=values.get("p90"),
        p95=values.get("p95"),
        p99=values.get("p99"),
        mean=mean,
        count=histogram.count,
        floor=floor,
        cap=cap,
    )


def _within(histogram: Histogram, finite: list[float], rank: float) -> tuple[float, float, float]:
    """The edges of the bucket that holds the rank-th value, and the value interpolated between them."""
    lower, below = min(0.0, finite[0]), 0.0
    for edge in finite:
        reached = histogram.buckets[edge]
        if reached >= rank and reached > below:
            return lower, edge, lower + (edge - lower) * (rank - below) / (reached - below)
        lower, below = edge, max(below, reached)
    return finite[-1], math.inf, finite[-1]
