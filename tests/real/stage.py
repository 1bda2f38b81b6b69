"""Plays a scenario on a running server up to the moment at which somebody looks at it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from .engine import Engine, busy_processes
from .load import Load
from .scenarios import Fault, Scenario

PAUSE_S = 3.0
"""Between two scenarios on one server: requests that were hung up leave it."""
NEIGHBOURS = 6


@contextmanager
def staged(scenario: Scenario, engine: Engine, *, look_back: Callable[[], None] = lambda: None) -> Iterator[Load]:
    """The fault and the traffic run inside the block. look_back is called at the end of the earlier phase."""
    seed = sum(scenario.name.encode())
    if scenario.earlier:
        with Load(engine.url, *scenario.earlier, seed=seed):
            time.sleep(scenario.earlier_s)
            look_back()
    with ExitStack() as around:
        traffic = around.enter_context(Load(engine.url, *scenario.streams, seed=seed))
        if scenario.fault is Fault.BUSY_HOST:
            around.enter_context(busy_processes(NEIGHBOURS))
        time.sleep(scenario.settle_s)
        if scenario.fault is Fault.FROZEN_CORE:
            around.enter_context(engine.frozen_core())
            time.sleep(PAUSE_S)
        yield traffic
    time.sleep(PAUSE_S)
