"""Numbers as people write them."""

from __future__ import annotations

import math

import pytest

from llmedic.model import units


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0.62, "0..1", "62 %"),
        (0.0371, "s", "37.1 ms"),
        (1.25, "s", "1.25 s"),
        (0.0, "s", "0 s"),
        (20441.0, "tokens", "20,441 tokens"),
        (821.63, "1/s", "821.6/s"),
        (52.5, "1/min", "52.5/min"),
        (3.0, "count", "3"),
        (200.0, "code", "200"),
        (2.7317, "-", "2.73"),
        (0.00038, "GiB", "0 GiB"),
        (math.nan, "s", "NaN"),
        (math.inf, "tokens", "∞ tokens"),
    ],
)
def test_a_number_with_its_unit(number: float, unit: str, text: str) -> None:
    assert units.show(number, unit) == text
