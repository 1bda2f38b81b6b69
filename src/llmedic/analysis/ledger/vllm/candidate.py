"""One combination of a model, a card and settings of vLLM, and whether a load fits it: what a search tries out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from llmedic.analysis.ledger.ranges import exact, less, stacked, total
from llmedic.analysis.ledger.vllm import cache, placement, terms
from llmedic.analysis.ledger.vllm.settings import Settings
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
    card: terms.Card
    offload_bytes: float = 0.0
    reserved_bytes: float = 0.0
    known_pool: Range | None = None
    group_size: int = 0

    def memory(self) -> terms.Memory:
        """The terms of the tightest rank."""
        return terms.terms(
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

    def changed(self, **values: object) -> Candidate:
        """The same with other settings, each by its own name in `Settings`."""
        if "max_num_batched_tokens" in values:
            batches = self.settings.in_flight_tokens // self.settings.max_num_batched_tokens
            values["in_flight_tokens"] = int(str(values["max_num_batched_tokens"])) * batches
        return self.resettled(self.settings.changed(**values))

    def resettled(self, settings: Settings) -> Candidate:
        """The same under other settings; the pool is computed anew, shifted by what the known one differs from it."""
        other = replace(self, settings=settings, known_pool=None)
        if self.known_pool is None:
            return other.fitted()
        shift = other.memory().pool.size.likely - replace(self, known_pool=None).memory().pool.size.likely
        known = self.known_pool
        moved = Range(low=known.low + shift, likely=known.likely + shift, high=known.high + shift)
        return replace(other, known_pool=moved).fitted()

    def fitted(self) -> Candidate:
        """The same, a max_model_len that fits itself to the memory come down to the longest that the pool holds."""
        if not self.settings.fits_length:
            return self
        length = self.longest(self.pool().likely)
        return replace(self, settings=self.settings.changed(max_model_len=length)) if length else self

    def longest(self, pool_bytes: float) -> int:
        """Tokens of the longest request, up to what the model was made for, with which it starts; 0: none."""
        return self.plan().longest_request(pool_bytes, self.geometry.positions or self.settings.max_model_len)

    @property
    def asked_bytes(self) -> int:
        """Bytes of the KV cache on one device where a flag sets them, whatever the share of the card; else 0."""
        given = self.settings.blocks_override * self.plan().bytes_per_block
        return given or self.settings.cache_bytes


def degrees(candidate: Candidate, most: int = MOST_DEVICES) -> tuple[int, ...]:
    """Tensor parallel degrees that are powers of two, and over which the model divides."""
    settings, group = candidate.settings, candidate.group_size
    allowed = placement.allowed_degrees(candidate.geometry, most, group, expert_parallel=settings.expert_parallel)
    return tuple(degree for degree in allowed if degree & (degree - 1) == 0)


def starts(candidate: Candidate) -> Fits:
    """Whether the engine's own check passes: one request of max_model_len fits the pool, and the pool the card."""
    return _starts(candidate, candidate.pool())


def holds(candidate: Candidate, load: Load) -> Fits:
    """Whether a load fits at once without preemption, on a server that starts."""
    requests = per_replica(candidate, load)
    if requests > candidate.settings.max_num_seqs:
        return "no"
    pool, plan = candidate.pool(), candidate.plan()
    needed = requests * plan.blocks_per_request(load.context_tokens) + plan.rules.null_block
    if needed > plan.blocks(pool.high):
        return "no"
    began = _starts(candidate, pool)
    if began == "yes" and needed > plan.blocks(pool.low):
        return "perhaps"
    return began


def per_replica(candidate: Candidate, load: Load) -> int:
    """Requests of a load that one of the data parallel replicas gets, each of which has a pool and a cap of its own."""
    return -(-load.concurrency // candidate.settings.data_parallel)


def _starts(candidate: Candidate, pool: Range) -> Fits:
    plan, length = candidate.plan(), candidate.settings.checked_length
    if plan.refusal or pool.high <= 0 or not plan.fits(pool.high, length):
        return "no"
    left = room_for_asked(candidate)
    if left is not None and left.high < 0:
        return "no"
    surely = pool.low > 0 and plan.fits(pool.low, length) and (left is None or left.low >= 0)
    return "yes" if surely else "perhaps"


def room_for_asked(candidate: Candidate) -> Range | None:
    """What is left of the card when a flag sets the size of the cache; None when none does, or the card is unknown."""
    asked, card = candidate.asked_bytes, candidate.card.total_bytes
    if not asked or candidate.known_pool is not None or card.likely <= 0:
        return None
    return less(card, total((exact(asked), *(term.size for term in candidate.memory().terms))))


def room_beside(candidate: Candidate) -> Range:
    """Bytes of the card that are left beside the requested memory, what is taken outside it and the driver."""
    memory, card = candidate.memory(), candidate.card.total_bytes
    outside = stacked((*(term.size for term in memory.outside), exact(ALWAYS_FREE_BYTES)))
    asked, given = memory.requested.size, room_for_asked(candidate)
    # The share is of the card as it is, so that both are small together.
    rest = given or Range(low=card.low - asked.low, likely=card.likely - asked.likely, high=card.high - asked.high)
    return Range(
        low=rest.low - outside.high,
        likely=rest.likely - outside.likely,
        high=rest.high - outside.low,
    )
