"""The peak of activations that vLLM measures before it sizes its cache: one dummy step, then one dummy sampling.

The step computes max_num_batched_tokens tokens; the sampling has one row of logits for each of max_num_seqs requests.
Both do not overlap in time, so the larger one counts, with what is held through both: hidden states, a multimodal
model's dummy images, and (since 0.14) the workspace of the mixture layers.

Sources: profile_run, _dummy_run and _dummy_sampler_run in vllm/v1/worker/gpu_model_runner.py (0.8 to 0.33) and
vllm/v1/worker/gpu/model_runner.py (0.22 to 0.33); vllm/worker/model_runner.py (V0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from llmedic.analysis.ledger.ranges import GIB, exact, larger, product, stacked, times
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.knowledge import memory
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import Range, Term

EXPERT_WORKSPACE_SINCE = (0, 14)
"""vllm/v1/worker/workspace.py: the modular kernel's buffers stay allocated; before, each layer frees its own."""
EXPERT_CHUNK_TOKENS = 32768
"""VLLM_FUSED_MOE_CHUNK_SIZE: before the workspace a layer computed at most so many tokens at once."""
NO_WORKSPACE = frozenset({"mxfp4"})
"""Their kernels bring their own buffers (gpt-oss on Hopper shows none)."""
LEAST_WORKSPACE = 0.3
"""Share of the unquantised kernel's workspace that kernels of quantised experts need at least."""
FEW_ROWS = 128
"""Rows of logits under which PyTorch sorts them all at once."""
QUANTISED_ACTIVATIONS = frozenset({"fp8", "int8", "compressed-tensors", "w8a8"})
FUSED_QUANTISATIONS = frozenset({"fp8"})
"""The compiler quantises the product of gate and up while it computes it, so that the product itself is not kept."""
FLASHINFER_OPTIONAL = (0, 8, 3)
"""Since then the profile's sampling may be FlashInfer's."""
FLOAT32_BYTES, HALF_BYTES = 4, 2
IN_PLACE_SINCE = (0, 17)
"""Before, the whole vocabulary of every row was sorted."""
CONSUMED_SINCE = (0, 27)
"""Since then the profile counts what is gone from the card, not what PyTorch says of weights and peak."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a rank is in the pipeline, and whether on a Hopper card."""

    first: bool = True
    last: bool = True
    hopper: bool = False


def activation(geometry: Geometry, settings: Settings, stage: Stage, release: str) -> Term:
    """The peak of a rank of a pipeline stage: the largest of what happens one after the other, and what is held."""
    peaks = tuple(_peaks(geometry, settings, stage, release))
    largest = reduce(larger, (size for size, _ in peaks))
    how = max(peaks, key=lambda peak: peak[0].likely)[1]
    size = stacked((largest, *_held(geometry, settings, stage, release)))
    return Term(id="activation", size=size, basis="calibrated", how=how)


def _peaks(geometry: Geometry, settings: Settings, stage: Stage, release: str) -> Iterator[tuple[Range, str]]:
    step = forward(geometry, settings, stage, release)
    if not _workspace_stays(settings):
        step = stacked((step, exact(expert_workspace(geometry, settings))))
    yield step, f"one step of {settings.max_num_batched_tokens} tokens"
    if stage.last:
        words = f"sampling {rows(settings)} requests over {geometry.vocabulary} logits"
        yield sampler(geometry, settings, release), words
    if geometry.multimodal and stage.first and not _image_too_long(geometry, settings):
        yield encoder(geometry, settings, release), "the encoder's dummy images"


def _held(geometry: Geometry, settings: Settings, stage: Stage, release: str) -> Iterator[Range]:
    rest = "activation_rest_hopper_gib" if stage.hopper else "activation_rest_gib"
    yield times(memory.figure(rest, release), GIB)
    if geometry.multimodal and stage.first:
        yield times(memory.figure("encoder_held_gib", release), GIB)
    if _workspace_stays(settings):
        workspace = expert_workspace(geometry, settings)
        least = workspace * (LEAST_WORKSPACE if geometry.quantization else 1)
        yield Range(low=least, likely=workspace, high=workspace)


def _workspace_stays(settings: Settings) -> bool:
    return not settings.version or settings.version >= EXPERT_WORKSPACE_SINCE


def rows(settings: Settings) -> int:
    """Requests of the dummy step."""
    return min(settings.max_num_seqs, settings.max_num_batched_tokens)


def _image_too_long(geometry: Geometry, settings: Settings) -> bool:
    """The first engine leaves a dummy image out that is longer than the step (vllm/worker/model_runner.py, 0.6.6)."""
    return settings.first_engine and geometry.encoder_item_tokens > settings.max_num_batched_tokens


def encoder(geometry: Geometry, settings: Settings, release: str) -> Range:
    """Bytes while the dummy images are encoded: a batch of as many as the token budget holds, at least one image.

    The budget is that of MultiModalBudget in vllm/v1/worker/utils.py, 0.10 to 0.24.
    """
    if not geometry.encoder_numbers or settings.first_engine:
        return times(memory.figure("encoder_step_gib", release), GIB)
    tokens = max(settings.max_num_batched_tokens, geometry.encoder_item_tokens)
    numbers = tokens * geometry.encoder_patches * geometry.encoder_numbers
    return times(memory.figure("encoder_copies", release), numbers * geometry.bytes_each)


def sampler(geometry: Geometry, settings: Settings, release: str) -> Range:
    """Bytes while the dummy requests are sampled, the hidden states of the step included.

    The figures are of logits of two bytes; a model computed in float32 has wider ones.
    """
    requests, vocabulary = rows(settings), geometry.vocabulary
    if settings.first_engine and geometry.encoder_item_tokens:
        requests = max(1, min(requests, settings.max_num_batched_tokens // geometry.encoder_item_tokens))
    hidden = settings.max_num_batched_tokens * geometry.hidden_size * geometry.bytes_each
    beside = exact(hidden + requests * vocabulary * (geometry.bytes_each - HALF_BYTES))
    each = memory.figure(_sampler(geometry, settings, release), release)
    if second_runner(geometry, release) or (settings.version and settings.version < IN_PLACE_SINCE):
        return stacked((times(each, requests * vocabulary), beside))
    buffer = memory.figure("sampler_buffer_rows", release)
    kept = Range(
        low=min(buffer.low, requests),
        likely=min(buffer.likely, requests),
        high=min(buffer.high, requests),
    )
    return stacked((times(each, requests * vocabulary), times(kept, vocabulary * FLOAT32_BYTES), beside))


def _sampler(geometry: Geometry, settings: Settings, release: str) -> str:
    """The figure of bytes per logit."""
    if second_runner(geometry, release):
        return "sampler_bytes_second_runner"
    sorts = settings.version and settings.version < IN_PLACE_SINCE
    if sorts and settings.flashinfer_sampler and settings.version >= FLASHINFER_OPTIONAL:
        return "sampler_bytes_flashinfer"
    return "sampler_bytes_few_rows" if sorts and rows(settings) < FEW_ROWS else "sampler_bytes"


def forward(geometry: Geometry, settings: Settings, stage: Stage, release: str) -> Range:
    """Bytes of the widest moment of the dummy step: the wider of MLP and attention, and the hidden states beside it.

    A gated MLP holds gate and up (2 x width) and their product (width); an attention layer its queries, keys and
    values twice (before and after the rotation) and its output.
    """
    tensor = settings.tensor_parallel
    name = "hidden_copies" if stage.last else "hidden_copies_stage"
    copies = memory.figure("hidden_copies_experts" if geometry.experts else name, release)
    beside = times(copies, geometry.hidden_size * geometry.bytes_each)
    attention = exact(_attention_width(geometry) / tensor * geometry.bytes_each)
    wide = larger(times(_mlp_width(geometry), geometry.mlp_width / tensor), attention)
    return times(stacked((beside, wide)), settings.max_num_batched_tokens)


def _mlp_width(geometry: Geometry) -> Range:
    """Bytes of a gated MLP per token and unit of its width: gate, up and product, and the product quantised."""
    whole = 3 * geometry.bytes_each
    if geometry.quantization in FUSED_QUANTISATIONS:
        fused = 2 * geometry.bytes_each + 1
        return Range(low=fused, likely=fused, high=whole + 1)
    return exact(whole + 1 if geometry.quantization in QUANTISED_ACTIVATIONS else whole)


def expert_workspace(geometry: Geometry, settings: Settings) -> float:
    """Bytes of the two buffers of a mixture layer: outputs of both of its matrix products, for every chosen expert.

    TritonExperts.workspace_shapes in vllm/model_executor/layers/fused_moe/fused_moe.py, 0.12 to 0.19.
    """
    if not geometry.experts or geometry.quantization in NO_WORKSPACE:
        return 0
    ranks = 1 if settings.expert_parallel else settings.tensor_parallel * settings.data_parallel
    width, hidden = geometry.expert_width / ranks, geometry.hidden_size
    tokens = settings.max_num_batched_tokens
    if not _workspace_stays(settings):
        tokens = min(tokens, EXPERT_CHUNK_TOKENS)
    each = max(width, hidden) + max(2 * width, hidden)
    return tokens * geometry.experts_per_token * each * geometry.bytes_each


def _attention_width(geometry: Geometry) -> int:
    """Numbers per token that the widest attention layer holds at once."""
    widest = 0
    for layer in geometry.layers:
        if layer is None or layer.kind in ("state", "mla"):
            continue
        queries = geometry.query_heads * layer.head_dim
        keys_values = layer.kv_heads * (layer.head_dim + (layer.value_dim or layer.head_dim))
        widest = max(widest, 2 * (queries + keys_values) + queries)
    return widest


def second_runner(geometry: Geometry, release: str) -> bool:
    """Whether the release runs this model on vLLM's second model runner."""
    recurrent = any(layer is not None and layer.kind == "state" for layer in geometry.layers)
    return memory.second_runner(geometry.architecture, release, dense=not geometry.experts and not recurrent)


def penalty_state(geometry: Geometry, settings: Settings, release: str) -> Range:
    """Bytes that the second model runner keeps for penalties: a count for every request and vocabulary entry.

    Before 0.27 they were in no term, so that they did not lessen the pool (`total_consumed` in memory_profiling).
    """
    counted = not settings.version or settings.version >= CONSUMED_SINCE
    if not counted or not second_runner(geometry, release):
        return exact(0)
    return product(memory.figure("penalty_state_bytes", release), exact(settings.max_num_seqs * geometry.vocabulary))
