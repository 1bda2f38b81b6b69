"""What the memory ledger says of a server: whether it can start, and what its pool holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llmedic.analysis.outcome import FALSE, Outcome, unknown
from llmedic.analysis.view import View
from llmedic.model.finding import Fact

if TYPE_CHECKING:
    from llmedic.analysis.ledger.vllm.candidate import Candidate
    from llmedic.model.ledger import Range

GIB = 2**30
NEEDED = ("the model (--model DIR)", "hardware.memory_gib")
"""What has to be known before the ledger can say anything. Its arithmetic is imported only where that is known."""
SHARDS = "flag.tensor_parallel_size"
"""On a machine with several cards: what one of them holds depends on it."""


def weights_leave_no_room(view: View) -> Outcome:
    """The weights of one rank, as its checkpoint stores them, are more than the device has."""
    server = _with_card(view)
    if server is None:
        return unknown(*_needed(view))
    if has_pool(view):
        return FALSE
    weights = next(term for term in server.memory().terms if term.id == "weights")
    total = server.card.total_bytes
    fact = Fact(name="weights per device", value=_gib(weights.size), source="ledger", compared_to=_gib(total))
    return _decided(weights.size.low > total.high, weights.size.high < total.low, fact)


def ledger_leaves_no_cache(view: View) -> Outcome:
    """Requested memory less weights, activations and the rest is nothing or less."""
    server = _with_card(view)
    if server is None:
        return unknown(*_needed(view))
    if has_pool(view):
        return FALSE
    pool, memory = server.pool(), server.memory()
    taken = " - ".join(f"{term.size.likely / GIB:.2f}" for term in memory.terms)
    fact = Fact(
        name="KV cache by the ledger",
        value=_gib(pool),
        source="ledger",
        compared_to=f"{memory.requested.size.likely / GIB:.2f} - {taken} GiB",
    )
    return _decided(pool.high <= 0, pool.low > 0, fact)


def longest_length_exceeds_the_cache(view: View) -> Outcome:
    """One request of max_model_len needs more than the pool has, by the layout of this model."""
    server = _with_pool(view)
    if server is None or not server.settings.max_model_len:
        return unknown(*_needed(view))
    pool, plan, length = server.pool(), server.plan(), server.settings.max_model_len
    if pool.high <= 0 or not plan.counts:
        return FALSE
    needed = (plan.blocks_per_request(length) + plan.rules.null_block) * plan.bytes_per_block
    fact = Fact(
        name="one request of max_model_len",
        value=f"{needed / GIB:.2f} GiB",
        source="ledger",
        compared_to=f"KV cache of {_gib(pool)}",
    )
    return _decided(not plan.fits(pool.high, length), plan.fits(pool.low, length), fact)


def graphs_do_not_fit_beside(view: View) -> Outcome:
    """What is captured beside the requested memory is more than the card has left."""
    server = _with_card(view)
    if server is None:
        return unknown(*_needed(view))
    from llmedic.analysis.ledger.vllm.candidate import room_beside

    memory = server.memory()
    if not memory.outside:
        return FALSE
    fact = Fact(
        name="CUDA graphs beside the budget",
        value=_gib(memory.outside[0].size),
        source="ledger",
        compared_to=f"{(server.card.total_bytes.likely - memory.requested.size.likely) / GIB:.2f} GiB left on the card",
    )
    room = room_beside(server)
    return _decided(room.likely < 0, room.low >= 0, fact)


def has_pool(view: View) -> bool:
    """Whether the engine itself told of a KV cache: then weights and the rest fit, whatever the arithmetic says."""
    return any((view.number(name) or 0.0) > 0 for name in ("kv_cache_tokens", "kv_blocks_count", "kv_cache_gib"))


def blocks(view: View, tokens: float) -> tuple[int, int] | None:
    """Blocks of one request of so many tokens, and usable blocks of the pool.

    None where a plain sum of tokens says the same (every layer keeps every token) or the layout or the pool is unknown.
    """
    server = view.server
    if server is None or server.known_pool is None:
        return None
    if all(layer is not None and layer.kind in ("full", "mla") for layer in server.geometry.layers):
        return None
    plan = server.plan()
    return plan.blocks_per_request(int(tokens)), plan.blocks(server.known_pool.likely) - plan.rules.null_block


def pool_tokens(view: View) -> float | None:
    """Tokens in the pool: as the engine says, else what the layout makes of the pool's blocks or bytes; or None."""
    said = view.number("kv_cache_tokens")
    server = view.server if said is None else None
    if server is None or server.known_pool is None:
        return said
    plan = server.plan()
    return float(plan.blocks(server.known_pool.likely) * plan.block_tokens) or None


def longest_request(view: View) -> int | None:
    """Tokens of the longest request that surely fits the pool; None where the layout or the pool is unknown."""
    server = _with_pool(view)
    if server is None:
        return None
    limit, plan, low = max(server.geometry.positions, server.settings.max_model_len), server.plan(), server.pool().low
    return min(plan.longest_request(max(low, 0), limit), plan.servable(plan.usable(plan.blocks(low)), limit))


def fewest_shards(view: View) -> int | None:
    """The smallest tensor parallel degree with which the server surely starts; 0: none; None: not known."""
    server = _with_card(view)
    if server is None:
        return None
    from llmedic.analysis.ledger.vllm.candidate import MOST_DEVICES, degrees, starts

    most = view.evidence.deployment.hardware.count or MOST_DEVICES
    larger = (degree for degree in degrees(server, most) if degree > server.settings.tensor_parallel)
    return next((degree for degree in larger if starts(server.changed(tensor_parallel=degree)) == "yes"), 0)


def _needed(view: View) -> tuple[str, ...]:
    return NEEDED if view.knows_shards else (SHARDS,)


def _with_card(view: View) -> Candidate | None:
    """The server where its card is known, so that the requested memory is."""
    server = view.server
    return server if server is not None and server.card.total_bytes.likely > 0 else None


def _with_pool(view: View) -> Candidate | None:
    """The server where its pool is known or can be computed."""
    server = view.server
    if server is None or (server.known_pool is None and not server.settings.cache_bytes and _with_card(view) is None):
        return None
    return server


def _decided(surely: bool, surely_not: bool, fact: Fact) -> Outcome:
    """Three-valued: between the ends of an interval nothing is decided."""
    if surely or surely_not:
        return Outcome(holds=surely, facts=(fact,))
    return unknown("a log of the start, for the exact size of the KV cache")


def _gib(size: Range) -> str:
    from llmedic.analysis.ledger.ranges import gib

    return gib(size)
