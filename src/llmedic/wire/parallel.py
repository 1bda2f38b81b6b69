"""Many blocking calls side by side, with one end for all: fifty replicas must not take fifty time-outs."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")


def run_all(tasks: Mapping[str, Callable[[], T]], deadline_s: float) -> dict[str, T | Exception]:
    """Run every task on a daemon thread of its own; answers in the order of `tasks`.

    A task that raised is its exception; one that had not ended by `deadline_s` is a TimeoutError, and its thread
    is left behind (it cannot keep the process alive).
    """
    done: queue.SimpleQueue[tuple[str, T | Exception]] = queue.SimpleQueue()

    def work(name: str, task: Callable[[], T]) -> None:
        try:
            done.put((name, task()))
        except Exception as error:  # handed to the caller as a value
            done.put((name, error))

    ends = time.monotonic() + deadline_s
    for name, task in tasks.items():
        threading.Thread(target=work, args=(name, task), name=f"llmedic-{name}", daemon=True).start()
    results: dict[str, T | Exception] = {}
    while len(results) < len(tasks):
        try:
            name, result = done.get(timeout=max(0.0, ends - time.monotonic()))
        except queue.Empty:
            break
        results[name] = result
    late = TimeoutError(f"not finished within {deadline_s:.3g} s")
    return {name: results.get(name, late) for name in tasks}
