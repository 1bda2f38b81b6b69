"""Arithmetic of numbers that are known within an interval."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot

from llmedic.model.ledger import Range

GIB = 2**30
MIB = 2**20
PRINTED_STEP_BYTES = 0.0101 * GIB
"""An interval as narrow as what two decimals round away is shown as one number."""


def exact(value: float) -> Range:
    """A number without doubt."""
    return Range(low=value, likely=value, high=value)


def times(size: Range, factor: float) -> Range:
    """A range scaled by a number that is not negative."""
    return Range(low=size.low * factor, likely=size.likely * factor, high=size.high * factor)


def product(one: Range, other: Range) -> Range:
    """The product of two ranges that are not negative."""
    return Range(low=one.low * other.low, likely=one.likely * other.likely, high=one.high * other.high)


def larger(one: Range, other: Range) -> Range:
    """The range of the larger of two numbers."""
    return Range(low=max(one.low, other.low), likely=max(one.likely, other.likely), high=max(one.high, other.high))


def stacked(sizes: Iterable[Range]) -> Range:
    """The sum of numbers whose errors have one cause: worst case on both sides."""
    parts = tuple(sizes)
    return Range(
        low=sum(part.low for part in parts),
        likely=sum(part.likely for part in parts),
        high=sum(part.high for part in parts),
    )


def total(sizes: Iterable[Range]) -> Range:
    """The sum of numbers whose errors are independent: the distances to each end add in quadrature.

    Terms of a ledger are measured by different means (a checkpoint, a peak of one allocator, what the driver says), so
    that all of them lie at their upper end at once is not worth a warning; one of them may.
    """
    parts = tuple(sizes)
    likely = sum(part.likely for part in parts)
    return Range(
        low=likely - hypot(*(part.likely - part.low for part in parts)),
        likely=likely,
        high=likely + hypot(*(part.high - part.likely for part in parts)),
    )


def less(whole: Range, taken: Range) -> Range:
    """What is left of a whole: independent errors again. It may be negative."""
    return total((whole, Range(low=-taken.high, likely=-taken.likely, high=-taken.low)))


def at_least_zero(size: Range) -> Range:
    """A size that cannot be negative, however little is there."""
    return Range(low=max(size.low, 0.0), likely=max(size.likely, 0.0), high=max(size.high, 0.0))


def gib(size: Range) -> str:
    """As a sentence needs it: "1.40 GiB", "1.40 (1.20 to 2.10) GiB"."""
    low, likely, high = (f"{value / GIB:.2f}" for value in (size.low, size.likely, size.high))
    narrow = size.high - size.low <= PRINTED_STEP_BYTES
    return f"{likely} GiB" if narrow else f"{likely} ({low} to {high}) GiB"
