from __future__ import annotations

import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.collect.engine.histogram import Histogram, joined, quantiles

EDGES = (0.3, 0.5, 1.0, 2.5, 10.0)
times = st.lists(st.floats(0, 30, allow_nan=False), min_size=1, max_size=60)


def histogram(values: list[float]) -> Histogram:
    buckets = {edge: float(sum(value <= edge for value in values)) for edge in (*EDGES, math.inf)}
    return Histogram(buckets=buckets, total=math.fsum(values), count=float(len(values)))


def exact(values: list[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@given(times)
def test_a_quantile_lies_in_the_bucket_of_the_true_one(values: list[float]) -> None:
    found = quantiles(histogram(values))
    assert found is not None
    for share, value in ((0.5, found.p50), (0.9, found.p90), (0.95, found.p95), (0.99, found.p99)):
        assert value is not None
        true = exact(values, share)
        place = bisect_left(EDGES, true)
        lower = EDGES[place - 1] if place else 0.0
        if place == len(EDGES):
            assert value == EDGES[-1] == found.cap
        else:
            assert lower <= value <= EDGES[place]
        if place == 0:
            assert found.floor == EDGES[0]


@given(times)
def test_the_mean_and_the_count_are_exact(values: list[float]) -> None:
    found = quantiles(histogram(values))
    assert found is not None
    assert found.mean == pytest.approx(math.fsum(values) / len(values))
    assert found.count == len(values)


@given(times)
def test_floor_and_cap_are_set_only_where_a_quantile_needs_them(values: list[float]) -> None:
    found = quantiles(histogram(values))
    assert found is not None
    assert (found.floor is None) == (exact(values, 0.5) > EDGES[0])
    assert (found.cap is None) == (exact(values, 0.99) <= EDGES[-1])


@given(times, times)
def test_the_window_is_what_was_added(before: list[float], after: list[float]) -> None:
    window = histogram(before + after).since(histogram(before))
    assert window.count == len(after)
    assert window.total == pytest.approx(math.fsum(after), abs=1e-6)
    assert window.buckets == histogram(after).buckets


@given(times, times)
def test_a_smaller_histogram_is_a_new_process(before: list[float], after: list[float]) -> None:
    earlier, later = histogram(before + after), histogram(after)
    assert later.since(earlier) == later


@given(times, times)
def test_joining_is_adding(one: list[float], other: list[float]) -> None:
    both = joined([histogram(one), histogram(other)])
    assert both.buckets == histogram(one + other).buckets
    assert both.count == len(one) + len(other)


def test_different_buckets_are_joined_where_they_agree() -> None:
    one = Histogram(buckets={0.1: 1, 1.0: 2, math.inf: 3}, total=3, count=3)
    other = Histogram(buckets={0.2: 1, 1.0: 1, math.inf: 1}, total=1, count=1)
    assert joined([one, other]).buckets == {1.0: 3, math.inf: 4}


def test_queue_times_of_five_milliseconds_do_not_read_as_the_first_bucket() -> None:
    found = quantiles(histogram([0.005] * 100))
    assert found is not None
    assert found.floor == 0.3
    assert found.p50 is not None
    assert found.p50 <= 0.01
    assert found.mean == pytest.approx(0.005)


def test_nothing_counted_is_nothing_known() -> None:
    assert quantiles(Histogram(buckets={1.0: 0, math.inf: 0}, total=0, count=0)) is None


def test_without_buckets_the_mean_is_all_there_is() -> None:
    found = quantiles(Histogram(buckets={}, total=6, count=3))
    assert found is not None
    assert (found.p50, found.mean, found.count) == (None, 2.0, 3)
