"""Releases are compared as numbers, whatever a server calls its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.knowledge import releases


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("0.8.5.post1", (0, 8, 5)),
        ("v0.11.2rc1", (0, 11, 2)),
        ("b4621", (4621,)),
        ("1..2", (1,)),
        ("main", ()),
        ("", ()),
    ],
)
def test_the_numbers_of_a_release(version: str, numbers: tuple[int, ...]) -> None:
    assert releases.numbers(version) == numbers


@given(st.text(max_size=20))
def test_any_text_has_numbers(version: str) -> None:
    assert all(number >= 0 for number in releases.numbers(version))


def test_a_version_that_is_no_version_is_read_in_part() -> None:
    assert releases.numbers("9" * 10_000) == (999_999_999,)


@pytest.mark.parametrize(
    ("version", "expected"), [("0.7.9", False), ("0.8", True), ("0.11.2", True), ("0.12.0", False), ("", False)]
)
def test_a_life_ends_before_the_release_that_removed_it(version: str, expected: bool) -> None:
    assert releases.lives(version, "0.8", "0.12") is expected


def test_a_stretch_covers_the_patches_of_its_last_release() -> None:
    assert releases.within("0.7.3", "0.6", "0.7")
    assert not releases.within("0.8.0", "0.6", "0.7")
    assert releases.within("", "0.8", "")
    assert not releases.within("", "", "0.7")
