"""The compute buffer of llama.cpp: the widest moment of one physical batch through the graph.

ggml lays the tensors of a graph into one buffer and reuses places that are no longer needed, so the buffer is as large
as the widest moment. Three candidates were read off printed sizes (2024-2026) and fit them to a few per cent:

    logits      rows x vocabulary x 4 and the last hidden states        Llama 3 8B 258.50, Qwen3.5 27B 495.00 MiB: exact
    attention   the mask of all cells, and without flash attention the scores of every head over all cells
    feed-forward  gate and up of one layer; since few logits are reserved, their product too and the residual stream

A weight in host memory is copied to the card for a prompt, one at a time: the largest is added.

The interval runs from the widest of them to the sum of logits, mask and feed-forward.
"""

from __future__ import annotations

from llmedic.analysis.ledger.llamacpp.cache import layer_caches
from llmedic.analysis.ledger.llamacpp.placement import HOST, Placement
from llmedic.analysis.ledger.llamacpp.settings import FEW_OUTPUTS, Settings
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import Range

_FLOAT = 4
_HIDDEN_COPIES = 6
"""Rows as wide as the hidden state that live beside the scores: Pythia 2.8B, 162.00 MiB at 2048 tokens."""
_PIPELINE_COPIES = 4
"""Inputs of a graph that is pipelined over cards are kept four times (ggml-backend.cpp GGML_SCHED_MAX_COPIES)."""
_SLACK = 1.12
"""Largest printed buffer over the upper formula."""
_FLOOR = 0.7
"""Smallest printed buffer over the lower formula: graphs that reuse more."""


def compute_buffer(geometry: Geometry, settings: Settings, placement: Placement, *, card: int) -> Range:
    """Bytes of the compute buffer on one card."""
    if not any(layer == card for layer in placement.layers) and placement.output != card:
        return Range(low=0.0, likely=0.0, high=0.0)
    here = placement.output == card
    rows = settings.ubatch if settings.build < FEW_OUTPUTS else min(settings.ubatch, _outputs(settings))
    hidden = settings.ubatch * geometry.hidden_size * _FLOAT
    logits = (rows * geometry.vocabulary * _FLOAT + hidden) if here else hidden
    mask = _mask(geometry, settings) * _copies(settings, placement)
    scores = 0.0 if settings.flash else settings.ubatch * settings.cells_tokens * geometry.query_heads * _FLOAT
    few = settings.build >= FEW_OUTPUTS
    forward = settings.ubatch * _width(geometry) * _FLOAT * (3 if few else 2) + hidden * (3 if few else 1)
    attention = mask + scores + (_HIDDEN_COPIES if scores else 1) * hidden
    without = max(logits, mask + forward, attention)
    borrowed = placement.largest_host_tensor
    low = without if settings.flash is not None else max(logits, mask + forward)
    return Range(
        low=low * _FLOOR,
        likely=low + borrowed,
        high=(max(logits + mask + forward, without) + borrowed) * _SLACK,
    )


def host_buffer(geometry: Geometry, settings: Settings) -> float:
    """Bytes of the pinned buffer in host memory: embedded tokens and the mask."""
    return settings.ubatch * geometry.hidden_size * _FLOAT + _mask(geometry, settings)


def _outputs(settings: Settings) -> int:
    return settings.slots * (1 + settings.draft_tokens)


def _mask(geometry: Geometry, settings: Settings) -> float:
    """One row of cells for every token of the batch, once for each size of cache.

    It is read as fp32 and turned into fp16 for flash attention, until the release that makes it fp16 at once.
    """
    each = 2 if settings.build >= FEW_OUTPUTS and settings.flash else 6 if settings.flash else 4
    cells = {one.cells for one in layer_caches(geometry, settings) if one.cells}
    return settings.ubatch * sum(cells) * each


def _width(geometry: Geometry) -> int:
    """Intermediate numbers of one token in the widest feed-forward part."""
    return max(geometry.mlp_width, geometry.experts_per_token * geometry.expert_width, geometry.hidden_size)


def _copies(settings: Settings, placement: Placement) -> int:
    whole = HOST not in placement.layers and placement.output != HOST
    return _PIPELINE_COPIES if len(settings.split) > 1 and settings.split_mode == "layer" and whole else 1
