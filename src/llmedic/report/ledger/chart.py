"""The ledger as a map of the device: who lies where, from the first byte to the last, so that a bar can show it.

What the renderers draw with `#`, with a table or with SVG is decided here once: order, places, shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from llmedic.model.ledger import Ledger, Range, Term

Kind = Literal["whole", "part", "pool", "outside", "host"]
"""The device or the budget; what is taken out of the budget; what is left of it; what lies beside it; host memory."""

HOST = "host_"
"""How the id of a term begins that takes no memory of the device: what is not offloaded to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the waterfall. `start` and `stop` are bytes from the start of the device.

    sure   where the part that is certain ends; between there and `reach`, it may end
    share  of the device, or of the budget where the device is unknown; None without either
    """

    term: Term
    kind: Kind
    start: float
    stop: float
    sure: float
    reach: float
    share: float | None

    @property
    def missing(self) -> bool:
        """The budget is already spent: this is how much is missing."""
        return self.kind == "pool" and self.term.size.likely < 0


def rows(ledger: Ledger) -> tuple[Row, ...]:
    """Device, budget, what is taken, what the KV cache gets and what lies beside the budget, in this order."""
    base = ledger.total or ledger.requested
    whole = base.size.likely if base else 0.0
    return tuple(_rows(ledger, whole))


def wholes(ledger: Ledger) -> tuple[Term, ...]:
    """The device and the budget; only one of them where the budget is the device."""
    return tuple(dict.fromkeys(term for term in (ledger.total, ledger.requested) if term))


def extent(lines: tuple[Row, ...]) -> float:
    """The bytes that a bar of full width stands for; 0 when there is nothing to draw."""
    return max((max(row.stop, row.reach) for row in lines), default=0.0)


def _rows(ledger: Ledger, whole: float) -> Iterator[Row]:
    for term in wholes(ledger):
        yield _row(term, "whole", 0.0, whole)
    at = 0.0
    for term in ledger.terms:
        yield _row(term, "part", at, whole)
        at += term.size.likely
    if ledger.pool:
        size = ledger.pool.size.likely
        yield _row(ledger.pool, "pool", at if size >= 0 else at + size, whole)
        at += max(size, 0.0)
    at = max(at, ledger.requested.size.likely if ledger.requested else 0.0)
    for term in ledger.outside:
        if term.id.startswith(HOST):
            yield Row(term=term, kind="host", start=0.0, stop=0.0, sure=0.0, reach=0.0, share=None)
            continue
        yield _row(term, "outside", at, whole)
        at += term.size.likely


def _row(term: Term, kind: Kind, start: float, whole: float) -> Row:
    size = (
        term.size
        if term.size.likely >= 0
        else Range(low=-term.size.high, likely=-term.size.likely, high=-term.size.low)
    )
    return Row(
        term=term,
        kind=kind,
        start=start,
        stop=start + size.likely,
        sure=start + max(size.low, 0.0),
        reach=start + size.high,
        share=term.size.likely / whole if whole > 0 else None,
    )
