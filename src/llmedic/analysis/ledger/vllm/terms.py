"""The memory of a vLLM server's tightest rank, from the model, the card and the flags alone.

Pool = requested - weights - LoRA slots - activation peak - memory outside PyTorch [- estimate of CUDA graphs].
Errors of the terms are independent and add in quadrature (`ranges.total`). Over the servers of
tests/data/ledger/pools.yaml and heldout.yaml the median error is 0.5 and 1.3 %, and the truth lies in the interval of
38 in 39 and of 29 in 33.

Sources: determine_num_available_blocks in vllm/worker/worker.py (V0), determine_available_memory in
vllm/v1/worker/gpu_worker.py (0.8 to 0.33), memory_profiling in vllm/utils/mem_utils.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from llmedic.analysis.ledger.ranges import GIB, exact, less, times, total
from llmedic.analysis.ledger.vllm.activation import Stage, activation, penalty_state
from llmedic.analysis.ledger.vllm.graphs import graphs, inside
from llmedic.analysis.ledger.vllm.lora import lora
from llmedic.analysis.ledger.vllm.question import Question
from llmedic.analysis.ledger.vllm.requested import requested
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.analysis.ledger.vllm.weights import ONE_BYTE, stage_weights
from llmedic.knowledge import memory
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import Range, Term

RESERVED = "--mm-ipc-gpu-memory-gb"
HOPPER, CONSUMER_BLACKWELL = 9.0, 12.0
NINE_IN_TEN = 0.84
"""1.645 / 1.96: the ends of a term's range are what was seen at all, the pool's are those of nine servers in ten.

Of 72 printed pools 67 lie inside; with 0.7 only 62, with 1.0 it is 68.
"""
LEAST_DEVIATION = 0.03
"""Share of the pool: kernels, drivers and neighbours differ by that much between two starts of one server.

With it all 50 intervals of at most 5 % hold the truth, with 0.02 it is 48, with 0.01 only 44.
"""
COUNTS = "measured; counts for penalties are the larger part"
REPACKED = "measured; holes that repacked weights leave are the larger part"
RECURRENT = "measured; kernels of recurrent layers are the larger part"
HOST = "measured; what else runs on the host is the larger part"
FUSED_MOST_RANKS = 4
"""Beyond, FlashInfer's fused all-reduce takes messages of 1 MiB and its workspace is small (0.19)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What the memory of a server depends on in a card.

    total_bytes  as the driver reports it; compute_capability: None where nobody said
    unified      memory shared with the host (GB10, Jetson), where others take and give back while vLLM measures
    """

    total_bytes: Range
    compute_capability: float | None = None
    unified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The terms of the tightest rank; `outside` is taken beside the requested memory."""

    requested: Term
    terms: tuple[Term, ...]
    outside: tuple[Term, ...]
    pool: Term


def terms(
    geometry: Geometry, settings: Settings, card: Card, *, offload_bytes: float = 0, reserved_bytes: float = 0
) -> Memory:
    """Every term of the rank whose pool is smallest.

    offload_bytes   weights of a rank that --cpu-offload-gb keeps in the host's memory
    reserved_bytes  --mm-ipc-gpu-memory-gb, taken off the pool last
    """
    budget = requested(card.total_bytes, settings)
    question = Question(geometry, settings, _key(settings))
    ranks = []
    for stage in range(_stages(geometry, settings)):
        taken = _taken(question, stage, card.compute_capability, card.unified, offload_bytes, reserved_bytes)
        pool = _pool(budget, taken.sum, settings, reserved_bytes)
        ranks.append(Memory(requested=budget, terms=taken.inside, outside=taken.outside, pool=pool))
    return min(ranks, key=lambda rank: rank.pool.size.likely)


def _stages(geometry: Geometry, settings: Settings) -> int:
    """Pipeline stages, at most one for each layer."""
    return min(settings.pipeline_parallel, max(len(geometry.layers), 1))


IRRELEVANT = frozenset({"utilization", "cache_bytes", "blocks_override", "max_model_len", "notes"})
"""Settings on which no term depends."""
_key = attrgetter(*sorted({field.name for field in fields(Settings)} - IRRELEVANT))


WEIGHED = (
    "version", "tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel", "speculative_tokens",
    "draft_layers",
)  # fmt: skip
"""The settings that weights follow from: hundreds of candidates of a search share them."""
_weighed = attrgetter(*WEIGHED)


@lru_cache(maxsize=512)
def _weights(question: Question, stage: int, capability: float | None) -> Term:
    release = ".".join(map(str, question.settings.version))
    return stage_weights(question.geometry, question.settings, stage, release, capability)


class _Taken(NamedTuple):
    """What a rank takes inside the requested memory, all of that together, and what it takes beside it."""

    inside: tuple[Term, ...]
    sum: Range
    outside: tuple[Term, ...]


@lru_cache(maxsize=4096)
def _taken(
    question: Question, stage: int, capability: float | None, unified: bool, offload_bytes: float, reserved_bytes: float
) -> _Taken:
    """What a rank takes, whatever the size of the card."""
    geometry, settings = question.geometry, question.settings
    release = ".".join(map(str, settings.version))
    card = Card(total_bytes=exact(0), compute_capability=capability, unified=unified)
    last = stage == _stages(geometry, settings) - 1
    place = Stage(first=stage == 0, last=last, hopper=capability == HOPPER)
    weights = _weights(Question(geometry, settings, _weighed(settings)), stage, capability)
    if offload_bytes:
        weights = _offloaded(weights, offload_bytes)
    taken = [weights, activation(geometry, settings, place, release), non_torch(geometry, settings, card, release)]
    if settings.lora_slots:
        taken.insert(1, lora(geometry, settings))
    outside: tuple[Term, ...] = ()
    if not settings.eager:
        captured = graphs(geometry, settings, release)
        if inside(geometry, settings, release):
            taken.append(captured)
        else:
            outside = (captured,)
    if reserved_bytes:
        taken.append(Term(id="media_decoder", size=exact(reserved_bytes), basis="given", how=RESERVED))
    return _Taken(tuple(taken), total(term.size for term in taken), outside)


def _pool(budget: Term, taken: Range, settings: Settings, reserved: float) -> Term:
    if settings.cache_bytes:
        size = exact(settings.cache_bytes - reserved)
        return Term(id="kv_cache", size=size, basis="given", how="--kv-cache-memory-bytes")
    size = _quoted(less(budget.size, taken))
    return Term(id="kv_cache", size=size, basis="calibrated")


def _quoted(pool: Range) -> Range:
    """The interval that is told: nine in ten, and never narrower than what no formula here promises."""
    least = LEAST_DEVIATION * abs(pool.likely)
    below = max(NINE_IN_TEN * (pool.likely - pool.low), least)
    above = max(NINE_IN_TEN * (pool.high - pool.likely), least)
    return Range(low=pool.likely - below, likely=pool.likely, high=pool.likely + above)


def _offloaded(weights: Term, offload: float) -> Term:
    """Weights less what the host's memory holds, which is at most all of them."""
    size = Range(low=max(weights.size.low - offload, 0), likely=max(weights.size.likely - offload, 0),
                 high=max(weights.size.high - offload, 0))  # fmt: skip
    return Term(
        id=weights.id, size=size, basis=weights.basis, how=f"{weights.how} - {offload / GIB:.2f} GiB in host memory"
    )


def non_torch(geometry: Geometry, settings: Settings, card: Card, release: str) -> Term:
    """Memory that PyTorch does not know of: communication buffers, compiled kernels, and what outlives profiling.

    Its parts have nothing to do with each other, so that their errors are independent.
    """
    ranks = settings.tensor_parallel
    words = f"measured with {ranks} tensor parallel ranks" if ranks > 1 else "measured"
    parts = {words: times(memory.figure(_communication(settings, card), release), GIB)}
    parts[COUNTS] = penalty_state(geometry, settings, release)
    if geometry.quantization:
        name = "repacked_one_byte_gib" if geometry.quantization in ONE_BYTE else "repacked_gib"
        parts[REPACKED] = times(memory.figure(name, release), GIB)
    if any(layer is not None and layer.kind == "state" for layer in geometry.layers):
        parts[RECURRENT] = times(memory.figure("state_kernels_gib", release), GIB)
    if card.unified:
        parts[HOST] = times(memory.figure("non_torch_unified_gib", release), GIB)
    how = max(parts, key=lambda part: parts[part].likely)
    return Term(id="non_torch", size=total(parts.values()), basis="calibrated", how=how)


def _communication(settings: Settings, card: Card) -> str:
    """The figure of a rank that talks to others, or to none."""
    hopper = card.compute_capability == HOPPER
    if settings.tensor_parallel == 1:
        if settings.pipeline_parallel > 1:
            return "non_torch_stage_gib"
        if settings.first_engine:
            return "non_torch_first_engine_gib"
        return "non_torch_hopper_gib" if hopper else "non_torch_gib"
    if hopper and settings.tensor_parallel <= FUSED_MOST_RANKS:
        return "non_torch_tensor_nvlink_gib"
    fast = card.compute_capability is not None and HOPPER <= card.compute_capability < CONSUMER_BLACKWELL
    return "non_torch_tensor_wide_gib" if fast else "non_torch_tensor_gib"
