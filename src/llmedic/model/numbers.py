"""Numbers from outside: a log line, a command line or a file can hold any digits."""

from __future__ import annotations

LARGEST = 2**60
"""No size in bytes, count or time of a server comes near: what is larger is damage, and sums of it overflow."""


def possible(number: float) -> bool:
    """Whether a number can be of a server: finite, and not beyond LARGEST. Whole numbers of any length are taken."""
    return -LARGEST <= number <= LARGEST
