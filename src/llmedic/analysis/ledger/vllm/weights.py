"""Bytes of weights on each rank: how tensor, expert and pipeline parallelism divide the parts of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from llmedic.analysis.ledger.ranges import GIB, exact, stacked, times
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.analysis.ledger.vllm.stages import stages
from llmedic.knowledge import memory
from llmedic.model.geometry import Geometry, Split, WeightPart
from llmedic.model.ledger import Range, Term

VOCABULARY_ROWS = 64
"""vLLM pads the rows of embedding and lm head to a multiple of it (vocab_parallel_embedding.py)."""
LAST_STAGE = frozenset({"lm head", "draft"})
PACKED = frozenset({"awq", "gptq"})
"""Quantisations whose kernels repack the weights."""
ONE_BYTE = frozenset({"fp8"})
"""Those whose weights stay as they are but for their layout."""
TRITON_CAPABILITY = 9.0
"""MXFP4 experts get Triton's kernels on Hopper alone; Marlin's, or FlashInfer's with the same padding, elsewhere."""
TOLD_TABLES_BYTES = 0.1 * GIB
NARROWEST_BYTES, WIDEST_BYTES = 0.5, 2.0
UNSURE_FACTOR = 0.05
"""Share by which weights may be off when the configuration left something to be assumed."""


def stage_weights(
    geometry: Geometry, settings: Settings, stage: int, release: str, capability: float | None = 8.0
) -> Term:
    """The weights of one rank of a pipeline stage, scales, padding and tables of positions included.

    capability  CUDA compute capability, None for a card of another maker
    """
    shares = _shares(geometry, settings)
    plain = experts = 0.0
    for part in _parts(geometry, settings, stage):
        if part.split == "expert":
            experts += part.bytes
        elif part.split == "key-value":
            plain += part.bytes * _key_value_share(geometry, settings, part)
        else:
            plain += part.bytes * shares[part.split]
    factor = _factor(geometry, release)
    padding = memory.figure(_mxfp4(capability), release) if geometry.quantization == "mxfp4" else factor
    tables = exact(geometry.rotary_numbers * geometry.bytes_each)
    rest = times(memory.figure("weights_rest_gib", release), GIB)
    size = stacked((times(factor, plain), times(padding, experts * shares["expert"]), tables, rest))
    return Term(id="weights", size=size, basis="computed", how=_how(geometry, settings, tables.likely))


def _shares(geometry: Geometry, settings: Settings) -> Mapping[Split, float]:
    """The share of a rank in a part of each split (FusedMoEParallelConfig.make, VocabParallelEmbedding).

    Experts are divided over tensor and data parallel ranks together, by width or as whole experts.
    """
    ranks = settings.tensor_parallel * settings.data_parallel
    whole_experts = settings.expert_parallel and geometry.experts
    rows = max(geometry.vocabulary, 1)
    padded = ceil(rows / VOCABULARY_ROWS) * VOCABULARY_ROWS
    return {
        "none": 1.0,
        "tensor": 1 / settings.tensor_parallel,
        "expert": ceil(geometry.experts / ranks) / geometry.experts if whole_experts else 1 / ranks,
        "vocabulary": padded / rows / settings.tensor_parallel,
    }


def _key_value_share(geometry: Geometry, settings: Settings, part: WeightPart) -> float:
    """A KV head is never cut: with more ranks than heads, each rank holds one (QKVParallelLinear)."""
    layer = geometry.layers[part.layer] if part.layer is not None and part.layer < len(geometry.layers) else None
    heads = layer.kv_heads if layer else 0
    return max(1, heads // settings.tensor_parallel) / heads if heads else 1 / settings.tensor_parallel


def _factor(geometry: Geometry, release: str) -> Range:
    """What a byte of the checkpoint weighs on the device."""
    factor = memory.figure(_checkpoint(geometry.quantization), release)
    if not geometry.width_known:
        return _any_width(geometry)
    if geometry.unsure:
        return Range(low=factor.low - UNSURE_FACTOR, likely=factor.likely, high=factor.high + UNSURE_FACTOR)
    return factor


def _any_width(geometry: Geometry) -> Range:
    """From four bits to sixteen for every parameter, as a factor of what is told."""
    told = sum(part.bytes for part in geometry.weights)
    parameters = sum(part.parameters for part in geometry.weights)
    return Range(
        low=min(NARROWEST_BYTES * parameters / told, 1), likely=1, high=max(WIDEST_BYTES * parameters / told, 1)
    )


def _checkpoint(quantization: str) -> str:
    """The figure of how a checkpoint is quantised."""
    if quantization in PACKED:
        return "weights_factor_packed"
    if quantization in ONE_BYTE:
        return "weights_factor_fp8"
    return "weights_factor_quantised" if quantization else "weights_factor"


def _mxfp4(capability: float | None) -> str:
    """The figure of the kernel that a card gets (get_mxfp4_backend and its successor, oracle/mxfp4.py)."""
    if capability is None:
        return "expert_factor_mxfp4_other"
    return "expert_factor_mxfp4_triton" if capability == TRITON_CAPABILITY else "expert_factor_mxfp4_marlin"


def _parts(geometry: Geometry, settings: Settings, stage: int) -> Sequence[WeightPart]:
    """The parts on a stage: its layers; the embedding on the first; norm, lm head and draft on the last.

    The last stage holds the embedding too where there is no lm head of its own (tied weights).
    """
    held = stages(len(geometry.layers), 0, settings)
    last = stage == len(held) - 1
    tied = all(part.name != "lm head" for part in geometry.weights)
    draft = geometry.draft_weights if settings.speculative_tokens and settings.draft_layers and last else ()
    if len(held) == 1:
        return (*geometry.weights, *draft)

    def here(part: WeightPart) -> bool:
        if part.layer is not None:
            return part.layer in held[stage]
        if part.name == "embedding":
            return stage == 0 or (last and tied)
        if part.name in LAST_STAGE:
            return last
        return True

    return (*(part for part in geometry.weights if here(part)), *draft)


def _how(geometry: Geometry, settings: Settings, tables: float) -> str:
    ranks = {
        "tensor": settings.tensor_parallel,
        "pipeline": settings.pipeline_parallel,
        "data": settings.data_parallel,
    }
    over = ", ".join(f"{name} {count}" for name, count in ranks.items() if count > 1)
    whole = f"{sum(part.bytes for part in geometry.weights) / GIB:.2f} GiB"
    held = f"{whole} over {over} parallel ranks" if over else whole
    return f"{held} + {tables / GIB:.2f} GiB of position tables" if tables >= TOLD_TABLES_BYTES else held
