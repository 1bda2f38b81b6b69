"""One measured fact under a vocabulary name, whatever engine or file it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Period = Literal["window", "previous", "lifetime", "baseline"]
"""Which stretch of time a value describes.

window: the one being judged. previous: the one compared with (`--compare-to`). lifetime: since the process
started (never proof of a present fault). baseline: a stored `llmedic.baseline/1`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """A distribution by its quantiles; whatever the source did not give is None.

    `floor` and `cap` tell that a quantile read off a histogram lies in a first or last bucket and is an
    interval: the true value may be anything below `floor` or above `cap`.
    """

    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    count: float | None = None
    floor: float | None = None
    cap: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The same quantity before and after something happened."""

    before: float | Quantiles
    after: float | Quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values over time: (seconds, value), in order of time."""

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("a series needs at least one point")


Value = float | Quantiles | Change | Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A named value with its unit, its origin and the time it is about.

    name      a word of `knowledge/data/vocabulary.yaml`
    unit      the vocabulary's unit, repeated here so that a value can be shown without looking it up
    source    who said so: "metrics", "prometheus", "log", "case", "process", "probe", "ledger", ...
    period    see `Period`
    window_s  length of the stretch in seconds, None for an instant
    at        when it was seen, in Unix seconds, None when the source does not say
    instance  "" for the service as a whole; else the replica, and "#N" for a data-parallel engine in it
    """

    name: str
    value: Value
    unit: str
    source: str
    period: Period = "window"
    window_s: float | None = None
    at: float | None = None
    instance: str = ""
