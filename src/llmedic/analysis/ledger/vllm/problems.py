"""What keeps a vLLM server from starting, or bites it later: the arithmetic, and one value that would do.

Where the intervals leave a start open, the sentence says how likely it is. A change is only advised when the ledger,
computed again with it, surely starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import floor

from llmedic.analysis.ledger.ranges import GIB, MIB, gib, less
from llmedic.analysis.ledger.vllm import checkpoint, placement
from llmedic.analysis.ledger.vllm.candidate import (
    ALWAYS_FREE_BYTES,
    MOST_DEVICES,
    Candidate,
    Fits,
    Load,
    degrees,
    holds,
    per_replica,
    room_beside,
    room_for_asked,
    starts,
)
from llmedic.analysis.ledger.vllm.variants import LEAST_LENGTH, Values, Variants
from llmedic.model.ledger import Problem, Term

MOST_UTILIZATION = 0.95
"""vLLM's own advice ends here: the rest is for driver contexts and CUDA graphs."""
LEAST_SEQS = 8
LEAST_STEP_TOKENS = 512
"""Smaller ones would make a server that starts and is of no use."""
ASKED_STEP_BYTES = 256 * MIB
"""Sizes of a cache are rounded down to it."""
WORDS = {"no": "", "unlikely": "; it likely does not start", "open": "; it may not start"}
"""What is added to a sentence: how sure it is that the server does not start."""

Check = Callable[[Variants], Problem | None]


def of(server: Variants) -> tuple[Problem, ...]:
    """Every problem, the one that comes first in the life of a server first; then what a load that fits is told."""
    placed = list(_placed(server))
    if any(problem.severity == "critical" for problem in placed):
        return tuple(placed)
    found: list[Problem] = []
    for check in CHECKS if server.candidate.card.total_bytes.likely > 0 else POOL_CHECKS:
        problem = check(server)
        if problem is not None:
            found.append(problem)
            if problem.severity == "critical":
                break  # the server is dead here: what would come after is not reached
    order = ("critical", "warning", "info")
    return tuple(sorted((*found, *placed), key=lambda problem: order.index(problem.severity)))


def planned(server: Variants) -> tuple[Problem, ...]:
    """What a planned load will meet on a server that starts, as a warning; () where it fits."""
    found = next(filter(None, (check(server) for check in (_too_long, _one_request, _demand))), None)
    return () if found is None else (replace(found, severity="warning", text=f"as planned, {found.text}"),)


def _placed(server: Variants) -> Iterator[Problem]:
    """What stands against checkpoint and division over devices; a server whose pool is known has taken all hurdles."""
    refused = checkpoint.problem(server.deployment) if server.candidate.known_pool is None else None
    if refused is not None:
        yield refused
    for problem in placement.problems(server.plan(server.candidate)):
        if problem.severity != "critical" or server.candidate.known_pool is None:
            yield problem


def verdict(server: Candidate, found: Sequence[Problem]) -> Fits:
    """Whether a server starts with these problems; "perhaps" where their intervals leave it open."""
    verdicts = {starts(server), *(problem.starts for problem in found)}
    return "no" if "no" in verdicts else "perhaps" if "perhaps" in verdicts else "yes"


def _start(server: Variants, text: str, cause: str, change: str, *, likely: bool, surely: bool) -> Problem:
    """A problem of the start, which fails with the usual figures (`likely`), or even with the best ones (`surely`)."""
    surely = surely or starts(server.candidate) == "no"
    word = "no" if surely else "unlikely" if likely else "open"
    return Problem(
        severity="critical" if likely else "warning",
        cause=cause,
        text=text + WORDS[word],
        change=change,
        starts="no" if surely else "perhaps",
    )


def _weights(server: Variants) -> Problem | None:
    weights, total = _term(server, "weights").size, server.candidate.card.total_bytes
    if weights.likely <= total.likely:
        return None
    text = f"the weights take {gib(weights)} of each device, which has {gib(total)}"
    change = server.first(_degrees(server))
    return _start(server, text, "weights-do-not-fit", change, likely=True, surely=weights.low > total.high)


def _free(server: Variants) -> Problem | None:
    candidate, free = server.candidate, server.free_bytes
    wanted = candidate.memory().requested.size
    if free is None or candidate.settings.cache_bytes or free >= wanted.likely:
        return None
    share = floor((free - ALWAYS_FREE_BYTES) / candidate.card.total_bytes.likely * 100) / 100
    text = f"{free / GIB:.2f} GiB are free at start, {wanted.likely / GIB:.2f} GiB are wanted"
    change = server.first([{"gpu_memory_utilization": share}] if share > 0 else ())
    return _start(server, text, "memory-fraction-above-free", change, likely=True, surely=free < wanted.low)


def _refused(server: Variants) -> Problem | None:
    refusal = server.candidate.plan().refusal
    if not refusal:
        return None
    stages = range(server.candidate.settings.pipeline_parallel - 1, 0, -1)
    options: list[Values] = [{"pipeline_parallel_size": count} for count in stages]
    if not server.candidate.settings.hybrid_manager:
        options.insert(0, {"disable_hybrid_kv_cache_manager": False})
    return _start(server, refusal, "", server.first(options), likely=True, surely=True)


def _asked(server: Variants) -> Problem | None:
    """A flag sets the size of the cache, and the card does not hold it beside the rest."""
    candidate = server.candidate
    left, asked = room_for_asked(candidate), candidate.asked_bytes
    if left is None or left.low >= 0:
        return None
    taken = " + ".join(gib(term.size) for term in candidate.memory().terms)
    text = f"a KV cache of {asked / GIB:.2f} GiB was asked for: with {taken} it is more than"
    text = f"{text} {gib(candidate.card.total_bytes)}"
    change = server.first(_smaller_cache(server))
    return _start(server, text, "", change, likely=left.likely < 0, surely=left.high < 0)


def _smaller_cache(server: Variants) -> Iterator[Values]:
    """What the card surely has room for, where a flag sets the size."""
    settings, asked = server.candidate.settings, server.candidate.asked_bytes
    fits = asked + floor(min(room_beside(server.candidate).low, 0))
    if not asked or fits <= 0:
        return
    if settings.blocks_override:
        yield {"num_gpu_blocks_override": fits // server.candidate.plan().bytes_per_block}
    else:
        yield {"kv_cache_memory_bytes": fits // ASKED_STEP_BYTES * ASKED_STEP_BYTES}


def _nothing_left(server: Variants) -> Problem | None:
    pool, memory = server.candidate.pool(), server.candidate.memory()
    if pool.likely > 0:
        return None
    taken = " - ".join(gib(term.size) for term in memory.terms)
    text = f"{gib(memory.requested.size)} - {taken} leaves {gib(pool)}: nothing for the KV cache"
    change = server.first(_more_room(server))
    return _start(server, text, "startup-no-memory-for-kv", change, likely=True, surely=pool.high <= 0)


def _length(server: Variants) -> Problem | None:
    candidate = server.candidate
    plan, pool, length = candidate.plan(), candidate.pool(), candidate.settings.checked_length
    if plan.fits(pool.low, length) or not plan.counts:
        return None
    needed = (plan.blocks_per_request(length) + plan.rules.null_block) * plan.bytes_per_block
    text = f"one request of {length:,} tokens needs {needed / GIB:.2f} GiB of KV cache, the pool has {gib(pool)}"
    likely, surely = not plan.fits(pool.likely, length), not plan.fits(pool.high, length)
    change = server.first(_shorter(server))
    return _start(server, text, "max-model-len-exceeds-kv-pool", change, likely=likely, surely=surely)


def _shorter(server: Variants) -> Iterator[Values]:
    """A context that fits; where that were of no use, first what makes room."""
    fits = server.servable(server.candidate)
    if fits >= LEAST_LENGTH:
        yield {"max_model_len": fits}
    yield from _more_room(server)
    if 0 < fits < LEAST_LENGTH:
        yield {"max_model_len": fits}


def _unchecked(server: Variants) -> Problem | None:
    """Some releases check each layer by itself, and start although the pool as it is laid out is too small."""
    candidate = server.candidate
    plan, length = candidate.plan(), candidate.settings.checked_length
    there, needed = plan.usable(plan.blocks(candidate.pool().likely)), plan.blocks_per_request(length)
    if needed <= there:
        return None
    return Problem(
        severity="warning",
        cause="request-larger-than-kv-pool",
        text=f"this release starts, but one request of {length:,} tokens needs {needed:,} blocks, "
        f"the pool has {there:,}",
        change=server.first(_shorter(server)),
    )


def _beside(server: Variants) -> Problem | None:
    """What is taken outside the requested memory: CUDA graphs before 0.20, and the driver's own context."""
    candidate = server.candidate
    if room_beside(candidate).low >= 0 or candidate.known_pool is not None:
        return None
    total, lacks = candidate.card.total_bytes, room_beside(candidate).likely < 0
    graphs = next((term for term in candidate.memory().outside if term.id == "cuda_graphs"), None)
    left = room_for_asked(candidate)
    taken = candidate.memory().requested.size if left is None else less(total, left)
    if graphs is None:
        text = f"{taken.likely / GIB:.2f} of {total.likely / GIB:.2f} GiB are asked for"
        text += f", and a driver's own context takes about {ALWAYS_FREE_BYTES / GIB:.2f} GiB"
    else:
        text = f"CUDA graphs take {gib(graphs.size)} beside the {gib(taken)} asked for"
        text += f", and the device has {gib(total)}"
        text += "" if lacks else ", which may not be enough"
    return Problem(
        severity="warning",
        cause="cuda-graph-capture-oom" if graphs else "memory-fraction-above-free",
        text=text,
        change=server.first(_more_beside(server), spare=True),
        starts="perhaps" if lacks else "yes",
    )


def _more_beside(server: Variants) -> Iterator[Values]:
    """A smaller share, fewer graphs or none."""
    share = server.largest_share(server.candidate)
    if share > 0:
        yield {"gpu_memory_utilization": share}
    yield from _smaller_cache(server)
    yield from _lower_peak(server)
    if server.candidate.memory().outside:
        yield {"enforce_eager": True}


def _too_long(server: Variants) -> Problem | None:
    """Requests of the load that the server refuses, however large its pool is."""
    load, length = server.load, server.candidate.settings.max_model_len
    if load is None or load.context_tokens <= length:
        return None
    made_for = server.candidate.geometry.positions or load.context_tokens
    text = f"requests of {load.context_tokens:,} tokens are longer than the {length:,} that are served"
    return Problem(
        severity="critical",
        cause="prompt-exceeds-context-limit",
        text=f"{text}: they are refused",
        change=server.first([{"max_model_len": load.context_tokens}] if load.context_tokens <= made_for else ()),
    )


def _one_request(server: Variants) -> Problem | None:
    load, candidate = server.load, server.candidate
    if load is None:
        return None
    plan, pool = candidate.plan(), candidate.pool()
    needed, there = plan.blocks_per_request(load.context_tokens), plan.usable(plan.blocks(pool.likely))
    if needed <= there:
        return None
    return Problem(
        severity="critical",
        cause="request-larger-than-kv-pool",
        text=f"one request of {load.context_tokens:,} tokens needs {needed:,} blocks, the pool has {there:,}",
        change=server.first(_more_room(server)),
    )


def _demand(server: Variants) -> Problem | None:
    load, candidate = server.load, server.candidate
    if load is None:
        return None
    plan, pool = candidate.plan(), candidate.pool()
    each, there = plan.blocks_per_request(load.context_tokens), plan.usable(plan.blocks(pool.likely))
    together = min(per_replica(candidate, load), candidate.settings.max_num_seqs)
    if together * each <= there:
        return None
    return Problem(
        severity="warning",
        cause="kv-pool-exhausted-preemption",
        text=f"{together:,} requests of {load.context_tokens:,} tokens need {together * each:,} blocks, "
        f"the pool has {there:,}: requests will be preempted",
        change=server.first(_fewer_at_once(server, load)),
    )


def _fewer_at_once(server: Variants, load: Load) -> Iterator[Values]:
    """As many requests of the load's length as surely fit."""
    most = server.most_requests(load.context_tokens)
    if most:
        yield {"max_num_seqs": most}


def _waiting(server: Variants) -> Problem | None:
    """Requests of the load that the cap keeps in the queue, whatever the pool has room for."""
    load, candidate = server.load, server.candidate
    if load is None:
        return None
    cap = candidate.settings.max_num_seqs
    wanted, served = per_replica(candidate, load), cap * candidate.settings.data_parallel
    if wanted <= cap:
        return None
    other = server.other({"max_num_seqs": wanted})
    fits = other is not None and holds(other, load) == "yes"
    return Problem(
        severity="warning",
        cause="max-num-seqs-too-low" if fits else "",
        text=f"{load.concurrency - served:,} of {load.concurrency:,} requests wait: "
        f"max_num_seqs admits {served:,} at once",
        change=server.first([{"max_num_seqs": wanted}], alone=True) if fits else "",
    )


def _served(server: Variants) -> Problem | None:
    """The answer to a load that fits, or whose fit the interval of the pool leaves open."""
    load, candidate = server.load, server.candidate
    if load is None:
        return None
    plan, pool = candidate.plan(), candidate.pool()
    together = min(per_replica(candidate, load), candidate.settings.max_num_seqs)
    needed = together * plan.blocks_per_request(load.context_tokens)
    low, there = (plan.usable(plan.blocks(size)) for size in (pool.low, pool.likely))
    if not needed or needed > there:
        return None
    each = " on each replica" if candidate.settings.data_parallel > 1 else ""
    text = f"{together:,} requests of {load.context_tokens:,} tokens{each} need {needed:,} blocks"
    if needed > low:
        text = f"{text}, the pool has {low:,} to {there:,}: it is not certain that they fit at once"
        change = server.first(_fewer_at_once(server, load))
        return Problem(severity="warning", cause="kv-pool-exhausted-preemption", text=text, change=change)
    return Problem(severity="info", text=f"{text}, the pool has at least {low:,}: they fit at once")


CHECKS: tuple[Check, ...] = (
    _weights, _free, _refused, _asked, _nothing_left, _length, _unchecked, _beside,
    _too_long, _one_request, _demand, _waiting, _served,
)  # fmt: skip
POOL_CHECKS: tuple[Check, ...] = (
    _refused, _nothing_left, _length, _unchecked, _too_long, _one_request, _demand, _waiting, _served,
)  # fmt: skip
"""Where only the pool is known, not the card."""


def _more_room(server: Variants) -> Iterator[Values]:
    """What leaves more for the cache, from the setting that costs least on."""
    yield from _lower_peak(server)
    yield from _raise_share(server)
    yield from _degrees(server)


def _lower_peak(server: Variants) -> Iterator[Values]:
    """Fewer sampled requests, then a smaller step: what the profiling pass is measured with.

    A step below max_num_seqs is not taken, nor one below max_model_len where the first engine does not split prefills
    (SchedulerConfig in vllm/config, 0.6 to 0.33).
    """
    settings = server.candidate.settings
    for divisor in (2, 4, 8):
        if settings.max_num_seqs // divisor >= LEAST_SEQS:
            yield {"max_num_seqs": settings.max_num_seqs // divisor}
    least = max(LEAST_STEP_TOKENS, settings.max_num_seqs, settings.max_model_len if settings.first_engine else 0)
    for divisor in (2, 4, 8):
        if settings.max_num_batched_tokens // divisor >= least:
            yield {"max_num_batched_tokens": settings.max_num_batched_tokens // divisor}


def _raise_share(server: Variants) -> Iterator[Values]:
    """A larger share of the card; a larger cache, where one was asked for."""
    settings = server.candidate.settings
    if settings.cache_bytes and not settings.blocks_override:
        plan = server.candidate.plan()
        blocks = plan.blocks_per_request(settings.max_model_len) + 1
        yield {"kv_cache_memory_bytes": -(-blocks * plan.bytes_per_block // ASKED_STEP_BYTES) * ASKED_STEP_BYTES}
    elif not settings.blocks_override:
        for percent in range(floor(settings.utilization * 100) + 1, round(MOST_UTILIZATION * 100) + 1):
            yield {"gpu_memory_utilization": percent / 100}


def _degrees(server: Variants) -> Iterator[Values]:
    """More shards, where the model divides by them and the machine has the cards."""
    now = server.candidate.settings.tensor_parallel
    stages = server.candidate.settings.pipeline_parallel * server.candidate.settings.data_parallel
    most = server.devices // stages if server.devices else MOST_DEVICES
    for degree in degrees(server.candidate, most):
        if degree > now:
            yield {"tensor_parallel_size": degree}


def _term(server: Variants, name: str) -> Term:
    return next(term for term in server.candidate.memory().terms if term.id == name)
