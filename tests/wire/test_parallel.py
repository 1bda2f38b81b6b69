from __future__ import annotations

import threading

from llmedic.wire.parallel import run_all


def test_answers_come_in_the_order_of_the_tasks() -> None:
    first_may_end = threading.Event()

    def slow() -> int:
        first_may_end.wait(10)
        return 1

    def quick() -> int:
        first_may_end.set()
        return 2

    assert list(run_all({"slow": slow, "quick": quick}, 20).items()) == [("slow", 1), ("quick", 2)]


def test_a_failure_is_a_value_and_stops_nobody() -> None:
    def broken() -> int:
        raise ValueError("no")

    results = run_all({"broken": broken, "fine": lambda: 3}, 20)
    assert isinstance(results["broken"], ValueError)
    assert results["fine"] == 3


def test_what_has_not_ended_is_left_behind() -> None:
    over = threading.Event()
    results = run_all({"stuck": lambda: over.wait(60), "fine": lambda: True}, 0.1)
    assert isinstance(results["stuck"], TimeoutError)
    assert "0.1 s" in str(results["stuck"])
    over.set()


def test_nothing_to_do() -> None:
    assert run_all({}, 1.0) == {}


def test_all_tasks_run_side_by_side() -> None:
    everybody = threading.Barrier(20)
    results = run_all({str(n): lambda: everybody.wait(20) for n in range(20)}, 30)
    assert sorted(value for value in results.values() if isinstance(value, int)) == list(range(20))
