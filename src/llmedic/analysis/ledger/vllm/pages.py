"""One layer's cache on one device: how many bytes a block of it takes, in any release of vLLM."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from llmedic.analysis.ledger.vllm.rules import Rules
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.model.geometry import CacheKind, CacheLayer, StateTensor

INDEX_SCALE_BYTES = 4
INDEX_SCALE_WIDTH = 128
"""The indexer of sparse attention keeps a key in fp8 with one 4-byte scale per 128 numbers
(vllm/model_executor/models/deepseek_v2.py, DeepseekV32IndexerCache)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A block of one layer on one device.

    block_tokens   tokens that it covers; 0: a whole request
    bytes          with padding
    shape          what has to be equal for two layers to share a group
    """

    kind: CacheKind
    block_tokens: int
    bytes: int
    shape: tuple[object, ...]
    window_tokens: int = 0

    @property
    def local(self) -> bool:
        """It keeps only the last tokens."""
        return self.kind in ("sliding", "chunked")

    @property
    def everything(self) -> bool:
        """It keeps every token."""
        return self.kind in ("full", "mla")


def pages(
    layers: tuple[CacheLayer | None, ...], settings: Settings, rules: Rules, activation_bytes: int
) -> tuple[Page | None, ...]:
    """The page of every layer, in order; a layer without a cache of its own has none.

    Hybrids raise the block size of all attention layers until an attention page holds a state, and pad the state to
    it (vllm/model_executor/models/config.py, HybridAttentionMambaModelConfig; since 0.20 vllm/platforms/interface.py).
    The first engine keeps states outside the pool.
    """
    if settings.first_engine:
        layers = tuple(None if layer is None or layer.kind == "state" else layer for layer in layers)
    known = {layer: _page(layer, settings, rules, activation_bytes) for layer in layers if layer is not None}
    states = [page for page in known.values() if page.kind == "state"]
    attention = next((layer for layer in layers if layer is not None and layer.kind != "state"), None)
    if states and attention is not None:
        token_bytes = _token_bytes(attention, settings, rules)
        block = _hybrid_block(max(page.bytes for page in states), token_bytes, settings)
        raised = replace(settings, block_tokens=block)
        known = {layer: _page(layer, raised, rules, activation_bytes) for layer in known}
        known = {layer: _padded(page, block * token_bytes) for layer, page in known.items()}
    return tuple(None if layer is None else known[layer] for layer in layers)


def _page(layer: CacheLayer, settings: Settings, rules: Rules, activation_bytes: int) -> Page:
    if layer.kind == "state":
        per_request = settings.state_mode == "none"
        return Page(
            kind="state",
            block_tokens=0 if per_request else settings.block_tokens,
            bytes=sum(_state_bytes(tensor, settings, activation_bytes) for tensor in layer.state),
            shape=("state", layer.state),
        )
    kind = _kind(layer, rules)
    return Page(
        kind=kind,
        block_tokens=settings.block_tokens,
        bytes=settings.block_tokens * _token_bytes(layer, settings, rules),
        shape=(
            _rank_heads(layer, settings),
            layer.head_dim,
            layer.value_dim or layer.head_dim,
            layer.latent_dim,
            layer.index_dim,
        ),
        window_tokens=layer.window_tokens if kind in ("sliding", "chunked") else 0,
    )


def _kind(layer: CacheLayer, rules: Rules) -> CacheKind:
    """The kind as which the release's allocator knows a layer."""
    if layer.kind == "sliding" and not rules.layer_kinds:
        return "full"
    if layer.kind == "chunked" and not rules.chunked_layers:
        return "full"
    return layer.kind


def _token_bytes(layer: CacheLayer, settings: Settings, rules: Rules) -> int:
    """Bytes of one token in one attention layer on one device (vllm/v1/kv_cache_interface.py, AttentionSpec).

    Keys and values of the rank's KV heads, at least one; MLA: one latent vector, the same on every rank.
    """
    if layer.kind == "mla":
        latent = settings.latent_token_bytes or int(layer.latent_dim * settings.cache_element_bytes)
        scales = INDEX_SCALE_BYTES * math.ceil(layer.index_dim / INDEX_SCALE_WIDTH)
        return latent + layer.index_dim + scales
    heads = _rank_heads(layer, settings)
    own_width = rules.sliding_value_width if layer.kind == "sliding" else rules.value_width
    values = layer.value_dim if layer.value_dim and own_width else layer.head_dim
    return (
        int(heads * (layer.head_dim + values) * settings.cache_element_bytes) + 2 * heads * settings.cache_scale_bytes
    )


def _rank_heads(layer: CacheLayer, settings: Settings) -> int:
    return max(1, layer.kv_heads // settings.tensor_parallel)


def _state_bytes(tensor: StateTensor, settings: Settings, activation_bytes: int) -> int:
    """Bytes of one tensor of a state on one device; what divides over few ranks only is repeated on the others."""
    ranks = min(settings.tensor_parallel, tensor.shares or settings.tensor_parallel)
    elements = (tensor.elements + tensor.elements_per_draft * settings.speculative_tokens) // ranks
    chosen = 0.0 if tensor.name.startswith("conv") else settings.state_element_bytes
    return int(elements * (chosen or tensor.bytes_each or activation_bytes))


def _hybrid_block(state_bytes: int, token_bytes: int, settings: Settings) -> int:
    """Block size with which an attention page is at least as large as a state."""
    kernel = settings.kernel_block_tokens
    if settings.state_mode == "all":
        chunk = math.lcm(settings.state_chunk_tokens, kernel)
        block = chunk * math.ceil(math.ceil(state_bytes / token_bytes) / chunk)
    else:
        block = kernel * math.ceil(state_bytes / (kernel * token_bytes))
    return max(block, settings.block_tokens)


def _padded(page: Page, size: int) -> Page:
    return replace(page, bytes=max(size, page.bytes)) if page.kind == "state" else page
