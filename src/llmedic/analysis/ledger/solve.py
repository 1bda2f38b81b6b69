"""Turns the ledger round: for a load that has to fit, what one setting would have to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import ceil

from llmedic.analysis.ledger import grid
from llmedic.analysis.ledger.candidate import MOST_DEVICES, Candidate, Load, degrees, holds, room_beside
from llmedic.analysis.ledger.grid import Question
from llmedic.analysis.ledger.ranges import GIB
from llmedic.errors import UsageError
from llmedic.model.ledger import Range, Solution

GOALS = (
    "max-num-seqs",
    "max-model-len",
    "gpu-memory-utilization",
    "tensor-parallel-size",
    "quantization",
    "gpu",
)
"""What can be solved for, as it is asked for."""
MOST_SEQS = 4096
MOST_UTILIZATION = 0.98
"""Above it not even a driver's own context has room."""
ONLINE = frozenset({"fp8", "bitsandbytes"})
"""vLLM quantises any checkpoint so while it loads; for the others a quantised checkpoint has to be downloaded."""
MOST_SHOWN = 5
LENGTH_STEP = 256
"""Lengths are rounded down to it: nobody types 40,513."""


def solve(question: Question, goals: Sequence[str]) -> tuple[Solution, ...]:
    """What each setting, changed alone, would have to be; with several of the discrete ones also the best together.

    Raises UsageError for a goal that is not one of `GOALS`.
    """
    for goal in goals:
        if goal not in SOLVERS:
            raise UsageError(f"--solve {goal}: not something that can be solved for", hint=f"one of {', '.join(GOALS)}")
    found = [SOLVERS[goal](question) for goal in dict.fromkeys(goals)]
    axes = [goal for goal in dict.fromkeys(goals) if goal in grid.AXES]
    if len(axes) > 1:
        found += _together(question, axes)
    return tuple(found)


def most_seqs(question: Question) -> Solution:
    """The largest --max-num-seqs with which every admitted request keeps its blocks."""
    tokens = question.load.context_tokens

    def fits(count: int) -> bool:
        return _sure(question.base.changed(max_num_seqs=count), Load(concurrency=count, context_tokens=tokens))

    best = _largest(1, MOST_SEQS, fits)
    if not best:
        return _none("max-num-seqs", f"not even one request of {tokens:,} tokens fits")
    text = f"{best:,} requests of {tokens:,} tokens fit at once, {best + 1:,} do not"
    return _found("max-num-seqs", text, question.typed("max_num_seqs", best), question.base.changed(max_num_seqs=best))


def longest_context(question: Question) -> Solution:
    """The largest --max-model-len at which the concurrency still fits."""
    count = question.load.concurrency
    most = question.base.geometry.positions or question.base.settings.max_model_len

    def fits(length: int) -> bool:
        return _sure(_of_length(question.base, length, count), Load(concurrency=count, context_tokens=length))

    best = _largest(1, most, fits)
    if not best:
        return _none("max-model-len", f"{count:,} requests of any length do not fit at once")
    best = best // LENGTH_STEP * LENGTH_STEP if LENGTH_STEP < best < most else best
    limit = "as long as the model was made for" if best == most else "the longest that fits"
    text = f"{count:,} requests of {best:,} tokens fit at once, {limit}"
    return _found("max-model-len", text, question.typed("max_model_len", best), _of_length(question.base, best, count))


def least_utilization(question: Question) -> Solution:
    """The smallest --gpu-memory-utilization with which the load fits, if the card has room for it."""

    def fits(percent: int) -> bool:
        return _sure(question.base.changed(utilization=percent / 100, cache_bytes=0), question.load)

    most = round(MOST_UTILIZATION * 100)
    best = _smallest(1, most, fits)
    goal = "gpu-memory-utilization"
    if best is None:
        return _none(goal, f"{_said(question.load)} do not fit with the whole card")
    found = question.base.changed(utilization=best / 100, cache_bytes=0)
    room = room_beside(found).low
    text = f"{_said(question.load)} fit from {best / 100:.2f} on"
    if room < 0:
        text += f", but what is taken beside it lacks {-room / GIB:.2f} GiB"
        return _none(goal, text)
    return _found(goal, text, question.typed("gpu_memory_utilization", f"{best / 100:.2f}"), found)


def least_devices(question: Question) -> Solution:
    """The smallest tensor parallel degree that the model allows and with which the load fits."""
    goal = "tensor-parallel-size"
    allowed = degrees(question.base, question.devices or MOST_DEVICES)
    for degree in allowed:
        found = question.base.changed(tensor_parallel=degree)
        if _sure(found, question.load):
            text = (
                f"{_said(question.load)} fit on {degree} devices"
                if degree > 1
                else f"{_said(question.load)} fit on one"
            )
            return _found(goal, text, question.typed("tensor_parallel_size", degree), found)
    most = max(allowed, default=1)
    return _none(goal, f"{_said(question.load)} do not fit on {most} devices either")


def least_loss(question: Question) -> Solution:
    """The least lossy quantisation with which the load fits and that runs on the card."""
    goal = "quantization"
    for name, found in grid.quantised(question):
        there = grid.runs(found, question.base.card.compute_capability, question)
        if not there or not _sure(found, question.load):
            continue
        if not name:
            return _found(goal, f"{_said(question.load)} fit without quantising further", "", found)
        if name in ONLINE:
            text = f"{_said(question.load)} fit with {name}, which vLLM does while it loads"
            return _found(goal, text, question.typed("quantization", name), found)
        return _found(goal, f"{_said(question.load)} fit with a checkpoint quantised as {name}", name, found)
    return _none(goal, f"{_said(question.load)} do not fit with any quantisation that runs on this card")


def smallest_card(question: Question) -> Solution:
    """The card with the least memory on which the load fits, at the same degrees of parallelism."""
    for card in grid.cards():
        found = replace(question.base, card=grid.on(card), known_pool=None)
        if grid.runs(found, card.capability, question) and _sure(found, question.load):
            return _found("gpu", f"{_said(question.load)} fit; smaller cards do not hold them", card.name, found)
    return _none("gpu", f"{_said(question.load)} do not fit on any card of the catalogue at this degree")


def _together(question: Question, axes: Sequence[str]) -> Iterator[Solution]:
    """The most modest combination with which the load fits, for each degree and quantisation."""
    shown: set[tuple[int | None, str | None]] = set()
    for one in grid.combinations(question, axes):
        placement = one.degree, one.quantization
        if placement in shown or holds(one.server, question.load) != "yes" or room_beside(one.server).low < 0:
            continue
        shown.add(placement)
        yield _found("together", f"{_said(question.load)} fit", one.typed(question), one.server)
        if len(shown) == MOST_SHOWN:
            return
    if not shown:
        yield _none("together", f"{_said(question.load)} fit with no combination of these")


def _of_length(candidate: Candidate, length: int, count: int) -> Candidate:
    seqs = max(candidate.settings.max_num_seqs, count)
    return candidate.changed(max_model_len=length, max_num_seqs=seqs)


def _sure(candidate: Candidate, load: Load) -> bool:
    wide = candidate
    if load.concurrency > candidate.settings.max_num_seqs:
        wide = candidate.changed(max_num_seqs=load.concurrency)
    return holds(wide, load) == "yes"


def _said(load: Load) -> str:
    return f"{load.concurrency:,} requests of {load.context_tokens:,} tokens"


def _found(goal: str, text: str, change: str, candidate: Candidate) -> Solution:
    pool, plan = candidate.pool(), candidate.plan()
    counts = [plan.concurrency(plan.blocks(size), candidate.settings.max_model_len)
              for size in (pool.low, pool.likely, pool.high)]  # fmt: skip
    return Solution(
        goal=goal,
        text=text,
        change=change,
        pool=pool,
        concurrency=Range(low=counts[0], likely=counts[1], high=counts[2]),
    )


def _none(goal: str, text: str) -> Solution:
    return Solution(goal=goal, text=text)


def _largest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """The largest number in an interval for which something holds that holds for all smaller ones; 0: for none."""
    if not fits(low):
        return 0
    while low < high:
        middle = ceil((low + high) / 2)
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _smallest(low: int, high: int, fits: Callable[[int], bool]) -> int | None:
    """The smallest number in an interval for which something holds that holds for all larger ones."""
    if not fits(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low


SOLVERS: dict[str, Callable[[Question], Solution]] = {
    "max-num-seqs": most_seqs,
    "max-model-len": longest_context,
    "gpu-memory-utilization": least_utilization,
    "tensor-parallel-size": least_devices,
    "quantization": least_loss,
    "gpu": smallest_card,
}
