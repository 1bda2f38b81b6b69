"""Which way a series goes. Thirds are compared, so that one odd sample decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from llmedic.analysis.view import is_measured
from llmedic.knowledge.conditions import Trend

CONSTANT_SPREAD = 0.02
"""A series is constant when its values differ by at most 2 % of the largest."""
FLAT_CHANGE = 0.10
"""A series is flat when its last third is within 10 % of its first."""
CLEAR_CHANGE = 0.15
"""A series rises or falls when its last third differs from its first by more than 15 % ..."""
SETTLED_SHARE = 0.25
"""A peak is over when the last value, like the first, is below a quarter of it."""

Points = Sequence[tuple[float, float]]


def of(points: Points) -> frozenset[Trend]:
    """Every trend that holds for the series (seconds, value); none for fewer than two points."""
    values = [value for _, value in points if is_measured(value)]
    if len(values) < 2:
        return frozenset()
    low, high = min(values), max(values)
    found: set[Trend] = set()
    if high - low <= CONSTANT_SPREAD * abs(high) and len(values) >= 3:
        found.add("constant")
    third = max(1, len(values) // 3)
    first, last = fmean(values[:third]), fmean(values[-third:])
    scale = max(abs(first), abs(last))
    change = (last - first) / scale if scale else 0.0
    if abs(change) <= FLAT_CHANGE:
        found.add("flat")
    if change > CLEAR_CHANGE:
        found.add("rising")
    if change < -CLEAR_CHANGE:
        found.add("falling")
    if len(values) >= 3 and high > 0 and max(values[0], values[-1]) <= SETTLED_SHARE * high:
        found.add("recovered")
    return frozenset(found)
