"""The map of the device: who lies where."""

from __future__ import annotations

import dataclasses

import pytest
from tests.report.ledger.conftest import DOES_NOT, FITS, GIB, PRINTED, UNKNOWN, gib, term

from llmedic.report.ledger import chart


def test_terms_follow_each_other_and_the_pool_ends_with_the_budget() -> None:
    total, requested, *terms, pool, outside = chart.rows(FITS.ledger)

    assert (total.start, requested.start) == (0, 0)
    assert [row.start for row in (*terms[1:], pool)] == pytest.approx([row.stop for row in terms])
    assert pool.stop == pytest.approx(requested.stop, abs=0.01 * GIB)
    assert outside.start == pytest.approx(requested.stop)
    assert outside.stop == pytest.approx(total.stop)


def test_shares_are_of_the_device() -> None:
    shares = {row.term.id: row.share for row in chart.rows(FITS.ledger)}

    assert shares["total"] == 1
    assert shares["weights"] == pytest.approx(61.03 / 79.18)


def test_shares_are_of_the_budget_where_the_device_is_unknown() -> None:
    rows = chart.rows(dataclasses.replace(FITS.ledger, total=None))

    assert rows[0].share == 1
    assert rows[1].share == pytest.approx(61.03 / 72.85)


def test_without_either_there_is_no_share() -> None:
    assert [row.share for row in chart.rows(PRINTED.ledger)] == [None]


def test_what_is_missing_covers_what_was_overspent() -> None:
    rows = chart.rows(DOES_NOT.ledger)
    pool = next(row for row in rows if row.kind == "pool")

    assert pool.missing
    assert (pool.start, pool.stop) == pytest.approx((71.26 * GIB, 136.43 * GIB), abs=0.05 * GIB)
    assert chart.extent(rows) >= pool.stop


def test_the_uncertain_part_is_told_apart() -> None:
    activation = next(row for row in chart.rows(FITS.ledger) if row.term.id == "activation")

    assert activation.sure - activation.start == pytest.approx(4.9 * GIB)
    assert activation.reach - activation.start == pytest.approx(5.5 * GIB)


def test_a_pool_that_may_be_nothing_has_no_certain_part() -> None:
    ledger = dataclasses.replace(FITS.ledger, pool=term("kv_cache", gib(-1, 0.5, 2)))
    pool = next(row for row in chart.rows(ledger) if row.kind == "pool")

    assert not pool.missing
    assert pool.sure == pool.start


def test_a_budget_that_is_the_device_is_shown_once() -> None:
    ledger = dataclasses.replace(FITS.ledger, requested=FITS.ledger.total)

    assert [row.term.id for row in chart.rows(ledger)][:2] == ["total", "weights"]


def test_host_memory_lies_nowhere_on_the_device() -> None:
    ledger = dataclasses.replace(FITS.ledger, outside=(term("host_weights", gib(1.5)), *FITS.ledger.outside))
    host, outside = chart.rows(ledger)[-2:]

    assert (host.kind, host.start, host.stop, host.share) == ("host", 0, 0, None)
    assert outside.start == pytest.approx(72.85 * GIB)


def test_an_empty_ledger_has_no_map() -> None:
    assert chart.rows(UNKNOWN.ledger) == ()
    assert chart.extent(()) == 0
