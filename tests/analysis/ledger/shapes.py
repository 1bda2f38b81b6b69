"""Small geometries for the tests of vLLM's memory terms."""

from __future__ import annotations

from llmedic.analysis.ledger.ranges import GIB
from llmedic.model.geometry import CacheKind, CacheLayer, Geometry, WeightPart


def dense(
    *,
    layers: int = 4,
    kv_heads: int = 8,
    head_dim: int = 128,
    weights: tuple[WeightPart, ...] = (),
    weights_gib: float = 0,
    **shape: object,
) -> Geometry:
    """A dense model; `weights_gib` is a copy on every rank, so that nothing divides it."""
    fields: dict[str, object] = {
        "architecture": "LlamaForCausalLM",
        "hidden_size": 4096,
        "vocabulary": 128256,
        "query_heads": 32,
        "mlp_width": 14336,
    }
    held = weights or (WeightPart(name="other", parameters=0, bytes=weights_gib * GIB, split="none"),)
    kind: CacheKind = "full" if head_dim else "mla"
    layer = CacheLayer(kind=kind, kv_heads=kv_heads, head_dim=head_dim, latent_dim=0 if head_dim else 576)
    return Geometry(layers=(layer,) * layers, weights=held, **fields | shape)  # type: ignore[arg-type]
