"""Numbers within intervals."""

import math

from hypothesis import given
from hypothesis import strategies as st

from llmedic.analysis.ledger import ranges
from llmedic.model.ledger import Range

SIZES = (
    st.lists(st.floats(0, 1e12), min_size=3, max_size=3)
    .map(sorted)
    .map(lambda v: Range(low=v[0], likely=v[1], high=v[2]))
)


@given(st.lists(SIZES, max_size=6))
def test_a_sum_in_quadrature_lies_inside_the_worst_case(sizes: list[Range]) -> None:
    free, worst = ranges.total(sizes), ranges.stacked(sizes)
    assert math.isclose(free.likely, worst.likely)
    slack = 1e-9 * max(worst.high, 1)
    assert worst.low - slack <= free.low <= free.likely <= free.high <= worst.high + slack


@given(SIZES, SIZES)
def test_what_is_left_is_narrower_than_the_worst_case(whole: Range, taken: Range) -> None:
    left = ranges.less(whole, taken)
    assert math.isclose(left.likely, whole.likely - taken.likely, abs_tol=1e-3)
    assert left.high - left.low <= (whole.high - whole.low) + (taken.high - taken.low) + 1e-3


def test_independent_errors_do_not_add_up() -> None:
    one = Range(low=7, likely=10, high=14)
    other = Range(low=6, likely=10, high=13)
    assert ranges.total((one, other)) == Range(low=15, likely=20, high=25)
    assert ranges.stacked((one, other)) == Range(low=13, likely=20, high=27)


def test_the_larger_of_two() -> None:
    assert ranges.larger(Range(low=1, likely=5, high=9), ranges.exact(4)) == Range(low=4, likely=5, high=9)


def test_a_size_in_words() -> None:
    assert ranges.gib(ranges.exact(1.4 * ranges.GIB)) == "1.40 GiB"
    assert ranges.gib(Range(low=0, likely=ranges.GIB, high=2 * ranges.GIB)) == "1.00 (0.00 to 2.00) GiB"


def test_a_size_that_cannot_be_negative_ends_at_zero() -> None:
    assert ranges.at_least_zero(Range(low=-2, likely=-1, high=3)) == Range(low=0, likely=0, high=3)
