"""The slots of LoRA adapters, which are allocated while the model loads, however many adapters come."""

from __future__ import annotations

from llmedic.analysis.ledger.ranges import times
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.model.geometry import CacheLayer, Geometry
from llmedic.model.ledger import Range, Term

SPREAD = Range(low=0.8, likely=1.0, high=1.5)
"""Which modules of a layer take adapters depends on the model; mixture layers and lm heads are the upper end."""


def lora(geometry: Geometry, settings: Settings) -> Term:
    """Bytes of one rank: a pair of matrices of the rank for each adapted projection, slot and layer.

    Columns are divided over the tensor-parallel ranks, the side that faces the whole hidden state is not
    (vllm/lora/layers, without --fully-sharded-loras).
    """
    tensor = settings.tensor_parallel
    hidden = geometry.hidden_size
    numbers = 0.0
    for layer in geometry.layers:
        if layer is None or layer.kind == "state":
            continue
        queries, keys = _projections(geometry, layer)
        sharded = queries + 2 * keys + queries + 3 * geometry.mlp_width
        whole = 3 * hidden + hidden + 2 * hidden + hidden
        numbers += sharded / tensor + whole
    each = settings.lora_slots * settings.lora_rank * geometry.bytes_each
    size = times(SPREAD, numbers * each / max(settings.pipeline_parallel, 1))
    how = f"{settings.lora_slots} slots of rank {settings.lora_rank} over {len(geometry.layers)} layers"
    return Term(id="lora", size=size, basis="calibrated", how=how)


def _projections(geometry: Geometry, layer: CacheLayer) -> tuple[int, int]:
    """Widths of the query and the key projection."""
    head = layer.head_dim or layer.latent_dim
    return geometry.query_heads * head, layer.kv_heads * head
