"""What keeps a vLLM server from starting, or bites it later: the arithmetic, and one value that would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import floor

from llmedic.analysis.ledger.candidate import ALWAYS_FREE_BYTES, MOST_DEVICES, Candidate, Load, room_beside, starts
from llmedic.analysis.ledger.candidate import degrees as allowed_degrees
from llmedic.analysis.ledger.ranges import GIB, gib
from llmedic.knowledge import flags
from llmedic.model.ledger import Problem

LENGTH_STEP = 256
MOST_UTILIZATION = 0.95
"""vLLM's own advice ends here: the rest is for driver contexts and CUDA graphs."""
LEAST_SEQS = 8
LEAST_STEP_TOKENS = 512
"""Smaller ones would make a server that starts and is of no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The server as it would start, and what is known of the card and the load.

    free_bytes  what was free on the card before the start; None where nobody said
    """

    candidate: Candidate
    engine: str = "vllm"
    version: str = ""
    free_bytes: float | None = None
    load: Load | None = None
    devices: int | None = None

    def typed(self, name: str, value: object) -> str:
        """A setting as it is typed for this engine and release."""
        return f"{flags.typed(name, self.engine, self.version) or name} {value}"


def of(situation: Situation) -> tuple[Problem, ...]:
    """Every problem, the one that comes first in the life of a server first."""
    checks: tuple[Callable[[Situation], Problem | None], ...]
    if situation.candidate.card.total_bytes.likely > 0:
        checks = (_weights, _free, _refused, _nothing_left, _length, _unchecked, _graphs, _one_request, _demand)
    else:  # only the pool is known
        checks = (_refused, _nothing_left, _length, _unchecked, _one_request, _demand)
    found: list[Problem] = []
    for check in checks:
        problem = check(situation)
        if problem is not None:
            found.append(problem)
            if problem.severity == "critical":
                break  # the server is dead here: what would come after is not reached
    return tuple(found)


def _weights(situation: Situation) -> Problem | None:
    candidate = situation.candidate
    weights = next(term for term in candidate.memory().terms if term.id == "weights")
    total = candidate.card.total_bytes
    if weights.size.likely <= total.likely:
        return None
    return Problem(
        severity="critical",
        cause="weights-do-not-fit",
        text=f"the weights take {gib(weights.size)} of each device, which has {gib(total)}",
        change=_first_that_starts(situation, _degrees(situation)),
    )


def _free(situation: Situation) -> Problem | None:
    candidate, free = situation.candidate, situation.free_bytes
    wanted = candidate.memory().requested.size.likely
    if free is None or candidate.settings.cache_bytes or free >= wanted:
        return None
    total = candidate.card.total_bytes.likely
    share = floor((free - ALWAYS_FREE_BYTES) / total * 100) / 100
    smaller = candidate.changed(utilization=max(share, 0.01))
    works = share > 0 and starts(smaller) != "no"
    return Problem(
        severity="critical",
        cause="memory-fraction-above-free",
        text=f"{free / GIB:.2f} GiB are free at start, {wanted / GIB:.2f} GiB are wanted",
        change=situation.typed("gpu_memory_utilization", f"{share:.2f}") if works else "",
    )


def _refused(situation: Situation) -> Problem | None:
    refusal = situation.candidate.plan().refusal
    return Problem(severity="critical", text=refusal) if refusal else None


def _nothing_left(situation: Situation) -> Problem | None:
    candidate = situation.candidate
    pool = candidate.pool()
    if pool.likely > 0:
        return None
    memory = candidate.memory()
    taken = " - ".join(gib(term.size) for term in memory.terms)
    changes = (*_lower_peak(situation), *_raise_share(situation), *_degrees(situation))
    return Problem(
        severity="critical",
        cause="startup-no-memory-for-kv",
        text=f"{gib(memory.requested.size)} - {taken} leaves {gib(pool)}: nothing for the KV cache",
        change=_first_that_starts(situation, changes),
    )


def _length(situation: Situation) -> Problem | None:
    candidate = situation.candidate
    plan, pool, length = candidate.plan(), candidate.pool(), candidate.settings.max_model_len
    if plan.fits(pool.low, length) or not plan.counts:
        return None
    fits = plan.longest_request(max(pool.low, 0), length)
    rounded = fits // LENGTH_STEP * LENGTH_STEP if fits > LENGTH_STEP else fits
    needed = (plan.blocks_per_request(length) + plan.rules.null_block) * plan.bytes_per_block
    certain = not plan.fits(pool.likely, length)
    text = f"one request of {length:,} tokens needs {needed / GIB:.2f} GiB of KV cache, the pool has {gib(pool)}"
    changes = () if rounded else (*_lower_peak(situation), *_raise_share(situation), *_degrees(situation))
    return Problem(
        severity="critical" if certain else "warning",
        cause="max-model-len-exceeds-kv-pool",
        text=text,
        change=situation.typed("max_model_len", rounded) if rounded else _first_that_starts(situation, changes),
    )


def _unchecked(situation: Situation) -> Problem | None:
    """Some releases check each layer by itself, and start although the pool as it is laid out is too small."""
    candidate = situation.candidate
    plan, length = candidate.plan(), candidate.settings.max_model_len
    there, needed = plan.usable(plan.blocks(candidate.pool().likely)), plan.blocks_per_request(length)
    if needed <= there:
        return None
    return Problem(
        severity="warning",
        cause="request-larger-than-kv-pool",
        text=f"this release starts, but one request of {length:,} tokens needs {needed:,} blocks, "
        f"the pool has {there:,}",
        change=situation.typed("max_model_len", plan.servable(there, length)),
    )


def _graphs(situation: Situation) -> Problem | None:
    candidate = situation.candidate
    memory = candidate.memory()
    if not memory.outside or room_beside(candidate) >= 0:
        return None
    beside = sum(term.size.likely for term in memory.outside)
    total = candidate.card.total_bytes.likely
    certain = total - memory.requested.size.likely < beside
    share = floor((total - beside - ALWAYS_FREE_BYTES) / total * 100) / 100
    return Problem(
        severity="warning",
        cause="cuda-graph-capture-oom",
        text=f"CUDA graphs take {gib(memory.outside[0].size)} beside the {gib(memory.requested.size)} asked for, "
        f"and the device has {gib(candidate.card.total_bytes)}" + ("" if certain else ", which may not be enough"),
        change=situation.typed("gpu_memory_utilization", f"{share:.2f}"),
    )


def _one_request(situation: Situation) -> Problem | None:
    load, candidate = situation.load, situation.candidate
    if load is None:
        return None
    plan, pool = candidate.plan(), candidate.pool()
    needed, there = plan.blocks_per_request(load.context_tokens), plan.blocks(pool.likely)
    if needed <= there:
        return None
    changes = (*_raise_share(situation), *_degrees(situation))
    return Problem(
        severity="critical",
        cause="request-larger-than-kv-pool",
        text=f"one request of {load.context_tokens:,} tokens needs {needed:,} blocks, the pool has {there:,}",
        change=_first_that_starts(situation, changes, length=load.context_tokens),
    )


def _demand(situation: Situation) -> Problem | None:
    load, candidate = situation.load, situation.candidate
    if load is None:
        return None
    plan, pool = candidate.plan(), candidate.pool()
    each, there = plan.blocks_per_request(load.context_tokens), plan.blocks(pool.likely)
    together = min(load.concurrency, candidate.settings.max_num_seqs)
    if together * each <= there:
        return None
    return Problem(
        severity="warning",
        cause="kv-pool-exhausted-preemption",
        text=f"{together:,} requests of {load.context_tokens:,} tokens need {together * each:,} blocks, "
        f"the pool has {there:,}: requests will be preempted",
        change=situation.typed("max_num_seqs", max(there // each, 1)),
    )


_Change = tuple[str, Callable[[], Candidate]]
"""What is typed, and the server with it."""


def _lower_peak(situation: Situation) -> Iterator[_Change]:
    """Fewer sampled requests, then a smaller step: what the profiling pass is measured with."""
    candidate = situation.candidate
    for name, least in (("max_num_seqs", LEAST_SEQS), ("max_num_batched_tokens", LEAST_STEP_TOKENS)):
        now = getattr(candidate.settings, name)
        for value in (now // 2, now // 4, now // 8):
            if value >= least:
                yield situation.typed(name, value), partial(candidate.changed, **{name: value})


def _raise_share(situation: Situation) -> Iterator[_Change]:
    """A larger share of the card, as far as what is taken beside it leaves room."""
    candidate = situation.candidate
    for percent in range(round(candidate.settings.utilization * 100) + 1, round(MOST_UTILIZATION * 100) + 1):
        share = percent / 100
        typed = situation.typed("gpu_memory_utilization", f"{share:.2f}")
        yield typed, partial(candidate.changed, utilization=share, cache_bytes=0)


def _degrees(situation: Situation) -> Iterator[_Change]:
    """More shards, where the model divides by them and the machine has the cards."""
    for degree, server in degrees(situation.candidate, situation.devices):
        yield situation.typed("tensor_parallel_size", degree), partial(replace, server)


def degrees(candidate: Candidate, devices: int | None) -> Iterator[tuple[int, Candidate]]:
    """Larger tensor parallel degrees over which the model divides and that the machine has cards for."""
    for degree in allowed_degrees(candidate, devices or MOST_DEVICES):
        if degree > candidate.settings.tensor_parallel:
            yield degree, candidate.changed(tensor_parallel=degree)


def _first_that_starts(situation: Situation, changes: Iterator[_Change] | tuple[_Change, ...], length: int = 0) -> str:
    """The first change with which the server surely starts; "" when none does."""
    for typed, make in changes:
        candidate = make()
        if length:
            candidate = candidate.changed(max_model_len=max(length, candidate.settings.max_model_len))
        if starts(candidate) == "yes" and (candidate.settings.tensor_parallel > 1 or room_beside(candidate) >= 0):
            return typed
    return ""
