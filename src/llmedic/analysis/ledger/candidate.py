"""One combination of a model, a card and settings of vLLM, and whether a load fits it: what a search tries out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from llmedic.analysis.ledger import cache, placement, vllm
from llmedic.analysis.ledger.settings import Settings
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import Range

Fits = Literal["yes", "perhaps", "no"]
"""Whether it fits even with the low end of the pool's interval, only with a higher one, or not with the highest."""
MOST_DEVICES = 16
"""Two full nodes of the usual kind: beyond, a search over tensor parallel degrees is no help."""
ALWAYS_FREE_BYTES = 0.3 * 2**30
"""A driver context and what else lives on a card beside the engine's own share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """So many requests at once, each of so many tokens (prompt and answer)."""

    concurrency: int
    context_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A server that could be started.

    known_pool  bytes of the KV cache on one device, where they were printed or given
    group_size  numbers that share a scale along the input of a quantised layer, 0: no such group
    """

    geometry: Geometry
    settings: Settings
    card: vllm.Card
    offload_bytes: float = 0.0
    reserved_bytes: float = 0.0
    known_pool: Range | None = None
    group_size: int = 0

    def memory(self) -> vllm.Memory:
        """The terms of the tightest rank."""
        return vllm.terms(
            self.geometry,
            self.settings,
            self.card,
            offload_bytes=self.offload_bytes,
            reserved_bytes=self.reserved_bytes,
        )

    def pool(self) -> Range:
        """Bytes of the KV cache on one device; negative where nothing is left."""
        return self.known_pool or self.memory().pool.size

    def plan(self) -> cache.CachePlan:
        """How the cache is laid out."""
        return cache.plan(self.geometry, self.settings)

    def changed(self, **settings: object) -> Candidate:
        """The same with other settings; the pool is computed anew, shifted by what the known one differs from it."""
        other = replace(self, settings=replace(self.settings, **settings), known_pool=None)  # type: ignore[arg-type]
        if self.known_pool is None:
            return other
        shift = other.memory().pool.size.likely - replace(self, known_pool=None).memory().pool.size.likely
        known = self.known_pool
        moved = Range(low=known.low + shift, likely=known.likely + shift, high=known.high + shift)
        return replace(other, known_pool=moved)


def degrees(candidate: Candidate, most: int = MOST_DEVICES) -> tuple[int, ...]:
    """Tensor parallel degrees that are powers of two, and over which the model divides."""
    settings, group = candidate.settings, candidate.group_size
    allowed = placement.allowed_degrees(candidate.geometry, most, group, expert_parallel=settings.expert_parallel)
    return tuple(degree for degree in allowed if degree & (degree - 1) == 0)


def starts(candidate: Candidate) -> Fits:
    """Whether the engine's own check passes: one request of max_model_len fits the pool."""
    return _starts(candidate, candidate.pool())


def holds(candidate: Candidate, load: Load) -> Fits:
    """Whether a load fits at once without preemption, on a server that starts."""
    if load.concurrency > candidate.settings.max_num_seqs:
        return "no"
    pool, plan = candidate.pool(), candidate.plan()
    needed = load.concurrency * plan.blocks_per_request(load.context_tokens) + plan.rules.null_block
    if needed > plan.blocks(pool.high):
        return "no"
    began = _starts(candidate, pool)
    if began == "yes" and needed > plan.blocks(pool.low):
        return "perhaps"
    return began


def _starts(candidate: Candidate, pool: Range) -> Fits:
    plan, length = candidate.plan(), candidate.settings.max_model_len
    if plan.refusal or not plan.fits(pool.high, length):
        return "no"
    return "yes" if plan.fits(pool.low, length) else "perhaps"


def room_beside(candidate: Candidate) -> float:
    """Bytes of the card that are left beside the requested memory and what is taken outside it, at worst."""
    memory = candidate.memory()
    outside = sum(term.size.high for term in memory.outside)
    return candidate.card.total_bytes.low - memory.requested.size.high - outside - ALWAYS_FREE_BYTES
