"""Layers and models for the tests of the cache arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from llmedic.model.geometry import CacheLayer, Geometry, StateTensor

FULL = CacheLayer(kind="full", kv_heads=8, head_dim=128)
SLIDING = CacheLayer(kind="sliding", kv_heads=8, head_dim=128, window_tokens=1024)
CHUNKED = CacheLayer(kind="chunked", kv_heads=8, head_dim=128, window_tokens=8192)
LATENT = CacheLayer(kind="mla", latent_dim=576)
SPARSE = CacheLayer(kind="mla", latent_dim=576, index_dim=128)
STATE = CacheLayer(
    kind="state",
    state=(
        StateTensor(name="conv", elements=8192 * 3, elements_per_draft=8192),
        StateTensor(name="recurrent", elements=32 * 128 * 128, bytes_each=4),
    ),
)


def model(*layers: CacheLayer | None, draft: Sequence[CacheLayer] = ()) -> Geometry:
    """A model with these layers."""
    return Geometry(
        architecture="Test",
        layers=layers,
        weights=(),
        hidden_size=4096,
        vocabulary=128256,
        query_heads=32,
        draft_layers=tuple(draft),
    )
