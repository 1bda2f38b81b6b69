"""The direction of a series, and that no odd sample or number breaks it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.analysis import trends

numbers = st.floats(min_value=0, max_value=1e9, allow_nan=False)


def of(*values: float) -> frozenset[str]:
    return frozenset(trends.of([(30.0 * i, value) for i, value in enumerate(values)]))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), set()),
        ((5,), set()),
        ((5, 5), {"flat"}),
        ((5, 5, 5), {"constant", "flat"}),
        ((0, 0, 0), {"constant", "flat"}),
        ((50, 50.9, 50), {"constant", "flat"}),
        ((50, 52, 50), {"flat"}),
        ((10, 10, 11), {"flat"}),
        ((10, 10, 11.5), set()),
        ((10, 11, 12), {"rising"}),
        ((12, 11, 10), {"falling"}),
        ((0, 1), {"rising"}),
        ((0, 40, 0), {"flat", "recovered"}),
        ((10, 40, 10), {"recovered", "flat"}),
        ((10, 40, 11), {"flat"}),
    ],
)
def test_a_series_goes(values: tuple[float, ...], expected: set[str]) -> None:
    assert of(*values) == expected


def test_one_odd_sample_decides_nothing() -> None:
    assert "rising" not in of(10, 10, 10, 10, 10, 10, 10, 10, 14)


@given(st.lists(numbers, max_size=30))
def test_a_direction_is_one_direction(values: list[float]) -> None:
    assert len(of(*values) & {"rising", "falling", "flat"}) <= 1


@given(st.lists(numbers, min_size=2, max_size=30))
def test_backwards_it_goes_the_other_way(values: list[float]) -> None:
    swapped = {"rising": "falling", "falling": "rising"}

    assert of(*reversed(values)) == {swapped.get(trend, trend) for trend in of(*values)}


@given(st.lists(st.floats(), max_size=10))
def test_any_number_is_survived(values: list[float]) -> None:
    assert of(*values) <= {"rising", "falling", "flat", "constant", "recovered"}
