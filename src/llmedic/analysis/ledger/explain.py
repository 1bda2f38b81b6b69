"""Why a start of vLLM failed, and the smallest change that would have started: the log's word and the ledger's."""

from __future__ import annotations

from collections.abc import Iterator

from llmedic.analysis.ledger.failure import Failure, reached, same
from llmedic.analysis.ledger.ranges import GIB, MIB, exact, gib, less, stacked, total
from llmedic.analysis.ledger.startup import Startup
from llmedic.analysis.ledger.vllm import problems
from llmedic.analysis.ledger.vllm.candidate import ALWAYS_FREE_BYTES, MOST_DEVICES, Candidate, degrees
from llmedic.analysis.ledger.vllm.variants import Values, Variants
from llmedic.model.ledger import Ledger, Problem, Range

LEAST_SHARE = 0.5
"""A smaller share of the card is no advice: then something else has to change."""
MARGIN_BYTES = 64 * MIB
"""The failed allocation was not the last one."""
ADDED_UP_BYTES = 0.05 * GIB
"""A sum of sizes with two decimals is off by less."""


def pool(failure: Failure, server: Candidate, found: Startup) -> Range | None:
    """The KV cache that a failure tells of where its size was not printed; None where it tells nothing of it."""
    tokens = failure.event.fields.get("pool")
    if failure.stage == "length" and isinstance(tokens, float):
        return exact(tokens / server.settings.block_tokens * server.plan().bytes_per_block)
    if failure.stage == "cache" and found.size("kv_cache") is None:
        computed = server.pool()
        return Range(low=min(computed.low, 0.0), likely=min(computed.likely, 0.0), high=0.0)
    return None


def why(failure: Failure, server: Variants, whole: Ledger) -> tuple[Problem, ...]:
    """The ledger's problems with the log's word on them, the one that ended the start first."""
    agreeing = [one for one in whole.problems if same(one.cause, failure.cause)]
    others = [one for one in whole.problems if one not in agreeing]
    others = [one for one in others if one.starts == "yes" or reached(one.cause, failure)]
    text = f"{failure.text}; {_arithmetic(failure, server.candidate)}".removesuffix("; ")
    change = ""
    if agreeing:
        text = agreeing[0].text if failure.tried is None else f"{failure.text}; {agreeing[0].text}"
        change = agreeing[0].change
    if failure.stage == "cache":
        text = _nothing_left(whole, failure.text) or text
    change = change or _change(failure, server)
    return (Problem(severity="critical", cause=failure.cause, text=text, change=change, starts="no"), *others)


def _nothing_left(whole: Ledger, said: str) -> str:
    """The balance with the sizes that were printed, and by how much it misses what the engine says."""
    if whole.pool is None or whole.pool.basis != "printed":
        return ""
    taken = " - ".join(gib(term.size) for term in whole.terms)
    if whole.requested is None or whole.requested.size.likely <= 0:
        weights = next(term.size for term in whole.terms if term.id == "weights")
        return f"{said}: weights take {gib(weights)}, {gib(whole.pool.size)} are left"
    left = less(whole.requested.size, stacked([term.size for term in whole.terms]))
    if left.low - ADDED_UP_BYTES <= whole.pool.size.likely <= left.high + ADDED_UP_BYTES:
        return f"{gib(whole.requested.size)} - {taken} leaves {gib(whole.pool.size)}: nothing for the KV cache"
    return (
        f"the engine printed {gib(whole.pool.size)}; {gib(whole.requested.size)} - {taken} would leave {gib(left)}: "
        f"{(left.likely - whole.pool.size.likely) / GIB:.2f} GiB more were taken"
    )


def needed(failure: Failure, server: Candidate) -> Range:
    """Bytes of one device that are taken at the point where the start ended."""
    memory = server.memory()
    sizes = {term.id: term.size for term in memory.terms}
    if failure.stage == "load":
        return total((sizes["weights"], sizes["non_torch"]))
    if failure.stage == "profile":
        return total(size for name, size in sizes.items() if name != "cuda_graphs")
    outside = (term.size for term in memory.outside)
    return stacked((memory.requested.size, *outside, exact(ALWAYS_FREE_BYTES)))


def _arithmetic(failure: Failure, server: Candidate) -> str:
    """The ledger's word, also where it is another one."""
    taken, card = needed(failure, server), server.card.total_bytes
    text = f"by the ledger {gib(taken)} are needed at that point and the device has {gib(card)}"
    if card.likely <= 0:
        return f"by the ledger {gib(taken)} are needed at that point" if failure.stage in ("load", "profile") else ""
    if failure.others > MARGIN_BYTES:
        return f"{text}, of which others hold {failure.others / GIB:.2f} GiB"
    if taken.likely > card.likely:
        return text
    return f"{text}: it should have fit, so other processes or settings that the log does not tell took memory"


def _change(failure: Failure, server: Variants) -> str:
    """The smallest change that frees what was lacking, and with which the server surely starts by the ledger."""
    least = failure.lacking + MARGIN_BYTES
    now = needed(failure, server.candidate).likely
    enough = []
    for values in _options(failure, server):
        other = server.other(values)
        if other is not None and now - needed(failure, other).likely >= least:
            enough.append(values)
    return server.first(enough, alone=True, spare=True) or server.first(enough)


def _options(failure: Failure, server: Variants) -> Iterator[Values]:
    settings = server.candidate.settings
    if failure.stage == "profile":
        yield from _smaller_steps(server)
    elif failure.stage in ("beside", "free"):
        for percent in range(round(settings.utilization * 100) - 1, round(LEAST_SHARE * 100) - 1, -1):
            yield {"gpu_memory_utilization": percent / 100}
        if failure.cause == "cuda-graph-capture-oom":
            yield {"enforce_eager": True}
        yield from _smaller_steps(server)
    for degree in degrees(server.candidate, server.devices or MOST_DEVICES):
        if degree > settings.tensor_parallel:
            yield {"tensor_parallel_size": degree}


def _smaller_steps(server: Variants) -> Iterator[Values]:
    """Fewer tokens and fewer requests in the dummy step, and both."""
    settings = server.candidate.settings
    for divisor in (2, 4, 8):
        tokens, requests = settings.max_num_batched_tokens // divisor, settings.max_num_seqs // divisor
        if tokens >= max(problems.LEAST_STEP_TOKENS, settings.max_num_seqs):
            yield {"max_num_batched_tokens": tokens}
        if requests >= problems.LEAST_SEQS:
            yield {"max_num_seqs": requests}
            if tokens >= max(problems.LEAST_STEP_TOKENS, requests):
                yield {"max_num_batched_tokens": tokens, "max_num_seqs": requests}
