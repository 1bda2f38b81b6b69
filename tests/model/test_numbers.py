"""Which numbers can be of a server."""

from __future__ import annotations

import pytest

from llmedic.model.numbers import LARGEST, possible


@pytest.mark.parametrize("number", [0, -1.5, 1e-300, 80 * 2**30, LARGEST])
def test_what_a_server_prints_is_possible(number: float) -> None:
    assert possible(number)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), LARGEST + 1, 1e30, -int("9" * 400)])
def test_what_overflows_is_not(number: float) -> None:
    assert not possible(number)
