"""Turns the ledger round: for a load that has to fit, what one setting would have to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from llmedic.analysis.ledger.ranges import GIB
from llmedic.analysis.ledger.vllm import grid
from llmedic.analysis.ledger.vllm.candidate import (
    MOST_DEVICES,
    Candidate,
    Load,
    degrees,
    holds,
    per_replica,
    room_beside,
)
from llmedic.analysis.ledger.vllm.variants import LENGTH_STEP, MOST_SEQS, Values, Variants, largest
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
MOST_UTILIZATION = 0.98
"""Above it not even a driver's own context has room."""
MOST_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A server as it would be started, and the load that has to fit it.

    beside  what has to be set whatever the answer is, because the load cannot be served without
    """

    server: Variants
    load: Load
    beside: Values

    @property
    def base(self) -> Candidate:
        """The server as it would be started."""
        return self.server.candidate

    def typed(self, values: Values) -> str:
        """A change as it is typed for this release, with what has to be set beside it."""
        return self.server.typed({**values, **self.beside})

    def fits(self, candidate: Candidate | None, load: Load | None = None) -> bool:
        """Whether a load, this one unless another is given, surely fits a server that surely starts."""
        return candidate is not None and holds(candidate, load or self.load) == "yes" and self.server.sound(candidate)

    def said(self) -> str:
        """The load in words."""
        return f"{self.load.concurrency:,} requests of {self.load.context_tokens:,} tokens"


def solve(server: Variants, load: Load, goals: Sequence[str]) -> tuple[Solution, ...]:
    """What each setting, changed alone, would have to be; with several of the discrete ones also the best together.

    Where the load needs a higher cap of requests, or a shorter context than the server offers would let it fit, that
    is part of the answer. Raises UsageError for a goal that is not one of `GOALS`, or that needs a card.
    """
    wanted = tuple(dict.fromkeys(goals))
    for goal in wanted:
        if goal not in SOLVERS:
            raise UsageError(f"--solve {goal}: not something that can be solved for", hint=f"one of {', '.join(GOALS)}")
    placed = server.candidate.card.total_bytes.likely > 0
    alone = [goal for goal in wanted if placed or goal == "gpu"]
    if not alone:
        raise UsageError(f"--solve {wanted[0]} needs a card", hint="add --gpu NAME, or --solve gpu")
    found = [one for goal in alone for one in _answers(server, load, goal)]
    axes = tuple(goal for goal in wanted if goal in grid.AXES)
    return (*found, *_answers(server, load, *axes)) if len(axes) > 1 else tuple(found)


def _answers(server: Variants, load: Load, *goals: str) -> tuple[Solution, ...]:
    """The answers for the server as it is, else for one whose context is no longer than the load's requests."""
    first, served = _solved(server, load, goals), server.candidate.settings.max_model_len
    if first[0].pool is not None or goals == ("max-model-len",) or load.context_tokens >= served:
        return first
    length = min(-(-load.context_tokens // LENGTH_STEP) * LENGTH_STEP, served)
    second = _solved(server, load, goals, length=length)
    if second[0].pool is None:
        return first
    why = f"max_model_len has to come down from {served:,} for it"
    return tuple(replace(one, text=f"{one.text}; {why}") for one in second)


def _solved(server: Variants, load: Load, goals: Sequence[str], length: int = 0) -> tuple[Solution, ...]:
    question = _question(server, load, raised="max-num-seqs" not in goals, length=length)
    return (SOLVERS[goals[0]](question),) if len(goals) == 1 else tuple(together(question, goals))


def _question(server: Variants, load: Load, *, raised: bool = True, length: int = 0) -> Question:
    """The question about a server with a shorter context (0: as it is), its cap of requests raised to the load's."""
    beside: dict[str, int] = {"max_model_len": length} if length else {}
    needed = per_replica(server.candidate, load)
    if raised and needed > server.candidate.settings.max_num_seqs:
        beside["max_num_seqs"] = needed
    return Question(server=server.changed(beside) or server, load=load, beside=beside)


def most_seqs(question: Question) -> Solution:
    """The largest --max-num-seqs with which every admitted request keeps its blocks."""
    tokens = question.load.context_tokens
    best = question.server.most_requests(tokens)
    if not best:
        return _none("max-num-seqs", f"not even one request of {tokens:,} tokens fits")
    text = f"{best:,} requests of {tokens:,} tokens fit at once, {best + 1:,} do not"
    if best == MOST_SEQS:
        text = f"{best:,} requests of {tokens:,} tokens fit at once, and more were not tried"
    return _found(question, "max-num-seqs", text, {"max_num_seqs": best})


def longest_context(question: Question) -> Solution:
    """The largest --max-model-len at which the concurrency still fits."""
    count = question.load.concurrency
    most = question.base.geometry.positions or question.base.settings.max_model_len

    def fits(length: int) -> bool:
        other = question.server.other({"max_model_len": length})
        return question.fits(other, Load(concurrency=count, context_tokens=length))

    best = largest(1, most, fits)
    if not best:
        return _none("max-model-len", f"{count:,} requests of any length do not fit at once")
    best = best // LENGTH_STEP * LENGTH_STEP if LENGTH_STEP < best < most else best
    limit = "as long as the model was made for" if best == most else "the longest that fits"
    text = f"{count:,} requests of {best:,} tokens fit at once, {limit}"
    return _found(question, "max-model-len", text, {"max_model_len": best})


def least_utilization(question: Question) -> Solution:
    """The smallest --gpu-memory-utilization with which the load fits, if the card has room for it."""
    goal, said = "gpu-memory-utilization", question.said()
    if question.base.asked_bytes:
        return _none(goal, "the size of the cache was asked for: the share of the card does not change it")

    def fits(percent: int) -> bool:
        other = question.server.other({"gpu_memory_utilization": percent / 100})
        return other is not None and holds(other, question.load) == "yes"

    best = _smallest(1, round(MOST_UTILIZATION * 100), fits)
    other = question.server.other({"gpu_memory_utilization": best / 100}) if best else None
    if best is None or other is None:
        return _none(goal, f"{said} do not fit with the whole card")
    text, room = f"{said} fit from {best / 100:.2f} on", room_beside(other).likely
    if room < 0:
        return _none(goal, f"{text}, but what is taken beside it lacks {-room / GIB:.2f} GiB")
    if not question.fits(other):
        return _none(goal, f"{text}, but the server does not start as it is planned")
    return _found(question, goal, text, {"gpu_memory_utilization": best / 100})


def least_devices(question: Question) -> Solution:
    """The smallest tensor parallel degree that the model allows and with which the load fits."""
    goal, said = "tensor-parallel-size", question.said()
    replicas = question.base.settings.pipeline_parallel * question.base.settings.data_parallel
    devices = question.server.devices
    allowed = degrees(question.base, devices // replicas if devices else MOST_DEVICES)
    for degree in allowed:
        if question.fits(question.server.other({"tensor_parallel_size": degree})):
            used = degree * replicas
            text = f"{said} fit on {used} devices" if used > 1 else f"{said} fit on one"
            return _found(question, goal, text, {"tensor_parallel_size": degree})
    most = max(allowed, default=1) * replicas
    return _none(goal, f"{said} do not fit on {most} devices either" if most > 1 else f"{said} do not fit on one")


def least_loss(question: Question) -> Solution:
    """The least lossy quantisation with which the load fits and that runs on the card."""
    goal, said = "quantization", question.said()
    for name, other in grid.quantised(question.server):
        if not grid.runs(other.candidate, other) or not question.fits(other.candidate):
            continue
        if not name:
            return _shown(question, goal, f"{said} fit without quantising further", question.typed({}), other.candidate)
        if not grid.loads(question.base, name):
            continue
        if name in grid.ONLINE:
            text, typed = f"{said} fit with {name}, which vLLM does while it loads", {"quantization": name}
            return _shown(question, goal, text, question.typed(typed), other.candidate)
        text, change = (
            f"{said} fit with a checkpoint quantised as {name}",
            _listed(grid.named(name), question.typed({})),
        )
        return _shown(question, goal, text, change, other.candidate)
    return _none(goal, f"{said} do not fit with any quantisation that runs on this card")


def smallest_card(question: Question) -> Solution:
    """The common card with the least memory on which the load fits, at the same degrees of parallelism."""
    said = question.said()
    for card in grid.cards():
        placed = _question(question.server.on(card), question.load)
        if grid.runs(placed.base, placed.server) and question.fits(placed.base):
            change = _listed(card.name, question.server.typed({**question.beside, **placed.beside}))
            return _shown(question, "gpu", f"{said} fit; smaller cards do not hold them", change, placed.base)
    return _none("gpu", f"{said} do not fit on any of the usual cards at this degree")


def together(question: Question, axes: Sequence[str]) -> Iterator[Solution]:
    """The most modest combination with which the load fits, for each degree, up to one that needs no quantisation."""
    load, said = question.load, question.said()
    shown: set[int | None] = set()
    for one in grid.combinations(question.server, load, axes):
        if one.degree in shown or holds(one.server, load) != "yes" or room_beside(one.server).likely < 0:
            continue
        shown.add(one.degree)
        change = _listed(*one.bought, question.typed(one.values))
        yield _shown(question, "together", f"{said} fit together with these", change, one.server)
        if len(shown) == MOST_SHOWN or (one.card is None and not one.quantization):
            return
    if not shown:
        yield _none("together", f"{said} fit with no combination of these")


def _listed(*words: str) -> str:
    return ", ".join(word for word in words if word)


def _found(question: Question, goal: str, text: str, values: Values) -> Solution:
    other = question.server.other(values) or question.base
    return _shown(question, goal, text, question.typed(values), other)


def _shown(question: Question, goal: str, text: str, change: str, candidate: Candidate) -> Solution:
    pool, plan = candidate.pool(), candidate.plan()
    counts = [plan.concurrency(plan.blocks(size), candidate.settings.max_model_len)
              for size in (pool.low, pool.likely, pool.high)]  # fmt: skip
    concurrency = Range(low=counts[0], likely=counts[1], high=counts[2])
    return Solution(goal=goal, text=text, change=change, pool=pool, concurrency=concurrency)


def _none(goal: str, text: str) -> Solution:
    return Solution(goal=goal, text=text)


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
