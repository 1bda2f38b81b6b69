"""No more digits than are known, and no number that hides that it is uncertain."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.model.ledger import Range
from llmedic.report.ledger import numbers

GIB = 2**30


def between(low: float, likely: float, high: float, unit: float = 1) -> Range:
    return Range(low=low * unit, likely=likely * unit, high=high * unit)


def exact(number: float, unit: float = 1) -> Range:
    return between(number, number, number, unit)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (exact(35.3399, GIB), "35.34 GiB"),
        (exact(1234.5, GIB), "1,234.50 GiB"),
        (exact(0, GIB), "0.00 GiB"),
        (exact(-0.001, GIB), "-0.0010 GiB"),
        (between(34.1, 35.31, 36.52, GIB), "35.3 GiB (34.1–36.5)"),
        (between(0.21, 0.26, 0.31, GIB), "0.26 GiB (0.21–0.31)"),
        (between(0.021, 0.026, 0.031, GIB), "0.026 GiB (0.021–0.031)"),
        (between(4.445, 4.45, 4.455, GIB), "4.45 GiB"),
        (between(4.445, 4.45, 4.459, GIB), "4.45 GiB"),
        (between(-1.2, 0.3, 2, GIB), "0.3 GiB (-1.2 – 2.0)"),
        (exact(4 * 2**20), "0.0039 GiB"),
    ],
)
def test_sizes(value: Range, text: str) -> None:
    assert numbers.size(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(2 * 2**20, "2 MiB"), (1.5 * 2**20, "1.5 MiB"), (70 * 2**10, "70 KiB"), (100, "100 B"), (0, "0 B"),
     (3 * GIB, "3 GiB")],
)  # fmt: skip
def test_a_size_in_the_unit_that_suits_it(number: float, text: str) -> None:
    assert numbers.plain_bytes(number) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (exact(463_136), "463,136"),
        (between(16_812, 21_712, 24_960), "21,700 (16,800–25,000)"),
        (between(1_000_400, 1_000_500, 1_000_600), "1,000,000"),
        (between(0, 10, 20), "10 (0–20)"),
    ],
)
def test_counts(value: Range, text: str) -> None:
    assert numbers.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (exact(3.5334), "3.53x"),
        (exact(1234.5), "1,234.50x"),
        (between(4.21, 4.74, 5.12), "4.7x (4.2–5.1)"),
        (between(0.2, 0.54, 0.87), "0.54x (0.20–0.87)"),
    ],
)
def test_concurrency(value: Range, text: str) -> None:
    assert numbers.times(value) == text
    assert numbers.often(value) == text.replace("x", "")


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100 %"), (0.0033, "0.3 %"), (0.0, "0 %"), (-0.82, "-82 %"), (1.66, "166 %")]
)
def test_shares(share: float, text: str) -> None:
    assert numbers.percent(share) == text


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0.12 * GIB, "bytes", "+0.12 GiB"),
        (-0.031 * GIB, "bytes", "-0.03 GiB"),
        (-0.001 * GIB, "bytes", "0.00 GiB"),
        (16, "tokens", "+16"),
        (-0.2, "blocks", "0"),
        (10, "blocks", "+10"),
        (-0.04, "requests", "-0.04x"),
    ],
)
def test_residuals(number: float, unit: str, text: str) -> None:
    assert numbers.difference(number, unit) == text


def test_what_is_printed_is_written_in_its_unit() -> None:
    assert [numbers.quantity(exact(2), unit) for unit in ("tokens", "blocks", "requests")] == ["2", "2", "2.00x"]
    assert numbers.quantity(exact(2 * GIB), "bytes") == "2.00 GiB"


def test_decimal_points_stand_below_each_other() -> None:
    assert numbers.aligned(["79.18", "5.2", "0.026", "131"]) == [" 79.18 ", "  5.2  ", "  0.026", "131    "]
    assert numbers.aligned([]) == []


@given(st.lists(st.floats(-1e15, 1e15), min_size=3, max_size=3).map(sorted))
def test_an_interval_is_in_order_and_never_minus_zero(bounds: list[float]) -> None:
    text = numbers.size(between(*bounds))

    assert re.search(r"-0\.0+(?!\d)", text) is None
    assert text.count("GiB") == 1
    assert "(" not in text or bounds[0] != bounds[2]
