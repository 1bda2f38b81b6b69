"""Flags as the numbers and words that an engine makes of them."""

from __future__ import annotations

import pytest

from llmedic.analysis.ledger.flagview import Flags
from llmedic.errors import InputError
from llmedic.model.deployment import Deployment, Flag, FlagValue


def flags(**values: FlagValue) -> Flags:
    return Flags(Deployment(flags=tuple(Flag(name=name, value=value) for name, value in values.items())))


def test_the_first_name_that_is_set_counts() -> None:
    found = flags(b=2.0, c=3.0, unset=None)
    assert found.number("a", "b", "c") == 2
    assert not found.given("unset", "a")
    assert found.count("a", default=7) == 7


@pytest.mark.parametrize(("value", "expected"), [("0", False), (0.0, False), ("OFF", False), (1.0, True), (True, True)])
def test_a_switch_is_on_unless_it_says_no(value: FlagValue, expected: object) -> None:
    assert flags(a=value).switch("a") is expected


def test_a_number_from_a_log_reads_like_the_word_that_was_typed() -> None:
    assert flags(a=0.0).word("a") == "0"
    assert flags(a=" On ").word("a") == "on"
    assert flags().word("a", default="auto") == "auto"


@pytest.mark.parametrize("value", ["many", float("nan"), float("inf"), -1.0])
def test_what_is_no_number_in_range_is_refused(value: FlagValue) -> None:
    with pytest.raises(InputError):
        flags(a=value).number("a")


@pytest.mark.parametrize("value", ["1e30", "9" * 400, int("9" * 400)])
def test_a_number_beyond_any_server_is_out_of_range(value: FlagValue) -> None:
    with pytest.raises(InputError, match="out of range") as caught:
        flags(a=value).count("a")
    assert "below" in caught.value.hint
