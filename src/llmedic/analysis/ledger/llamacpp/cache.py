"""The caches of llama.cpp: cells of keys and values per layer, and recurrent states per slot."""

from __future__ import annotations

from dataclasses import dataclass

from llmedic.analysis.ledger.llamacpp.settings import AUTO_SLOTS, FIT, STREAMS, Settings, cache_bytes
from llmedic.model.geometry import CacheLayer, Geometry

_STATE_BYTES = 4
"""Recurrent states are fp32 whatever the cache types are (src/llama-model.cpp create_memory)."""
_ROTARY = 64
"""Numbers of a latent that carry the position (qk_rope_head_dim of every DeepSeek and Kimi model)."""
_WITHOUT_WINDOW = ("mistral", "phi3", "phi-3", "qwen2")
"""Architectures whose window llama.cpp leaves out: all their layers keep the whole context (src/models)."""


@dataclass(frozen=True, slots=True)
class LayerCache:
    """Bytes of one layer's cache: of keys, of values, and of its state; cells: of one stream."""

    keys: float = 0.0
    values: float = 0.0
    state: float = 0.0
    cells: int = 0


def layer_caches(geometry: Geometry, settings: Settings) -> tuple[LayerCache, ...]:
    """What every decoder layer caches, in order."""
    ignored = any(name in geometry.architecture.lower() for name in _WITHOUT_WINDOW)
    return tuple(
        LayerCache() if layer is None else _one(layer, geometry, settings, windowless=ignored)
        for layer in geometry.layers
    )


def window_cells(window: int, settings: Settings) -> int:
    """Cells of one stream of a layer with a window (src/llama-kv-cache-iswa.cpp).

    The window for every slot that shares the stream, and one physical batch; padded to 256 since every cache is.
    """
    sharing = settings.slots if settings.streams == 1 else 1
    wanted = window * sharing + settings.ubatch
    if settings.build >= AUTO_SLOTS:
        return -(-min(settings.cells_tokens, wanted) // 256) * 256
    padding = 32 if settings.flash is False else 256
    return min(settings.cells_tokens, -(-wanted // padding) * padding)


def bytes_per_token(geometry: Geometry, settings: Settings) -> float:
    """Of one more cell of the layers that keep the whole context."""
    return sum(
        (cache.keys + cache.values) / (cache.cells * settings.streams)
        for cache in layer_caches(geometry, settings)
        if cache.cells and cache.cells == settings.cells_tokens
    )


def _one(layer: CacheLayer, geometry: Geometry, settings: Settings, *, windowless: bool) -> LayerCache:
    if layer.kind == "state":
        rows = settings.slots * (1 + settings.draft_tokens)
        return LayerCache(state=sum(tensor.elements for tensor in layer.state) * _STATE_BYTES * rows)
    whole = settings.whole_window or windowless or layer.kind in ("full", "mla")
    cells = settings.cells_tokens if whole else window_cells(layer.window_tokens, settings)
    rows = cells * settings.streams
    if layer.kind == "mla":
        return _latent(layer, settings, rows, cells)
    keys = layer.kv_heads * layer.head_dim
    values = layer.kv_heads * (layer.value_dim or layer.head_dim)
    if settings.flash is False:
        values = max(values, _widest_value(geometry))
    return LayerCache(
        keys=rows * cache_bytes(keys, settings.key_type),
        values=rows * cache_bytes(values, settings.value_type),
        cells=cells,
    )


def _latent(layer: CacheLayer, settings: Settings, rows: int, cells: int) -> LayerCache:
    """MLA keeps the latent as the key; until the cache could do without values, its compressed part as one too."""
    keys = layer.latent_dim + layer.index_dim
    values = 0 if settings.build >= FIT else layer.latent_dim - _ROTARY
    return LayerCache(
        keys=rows * cache_bytes(keys, settings.key_type),
        values=rows * cache_bytes(values, settings.value_type),
        cells=cells,
    )


def _widest_value(geometry: Geometry) -> int:
    """Without flash attention values lie transposed and all layers take the widest row (src/llama-kv-cache.cpp)."""
    return max(
        (layer.kv_heads * (layer.value_dim or layer.head_dim) for layer in geometry.layers if layer is not None),
        default=0,
    )


def shares_cells(settings: Settings) -> bool:
    """Whether slots take from one pool, so that one long request can starve the others."""
    return settings.streams == 1 and settings.slots > 1 and settings.build >= STREAMS
