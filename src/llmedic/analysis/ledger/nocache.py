"""Models without a KV cache: encoders that read a text once."""

from __future__ import annotations

from llmedic.model.geometry import Geometry


def keeps_cache(geometry: Geometry) -> bool:
    """Whether any layer keeps something for the next token."""
    return any(layer is not None for layer in geometry.layers)


def notes(geometry: Geometry) -> tuple[str, ...]:
    """Why the ledger of such a model has no cache; () for all others."""
    return () if keeps_cache(geometry) else ("the model keeps no KV cache: nothing to size",)
