"""Attention layers: the weights of the projections and what a layer caches.

Sources: vLLM 0.33 `QKVParallelLinear`, `v1/kv_cache_interface.py` and the model files.
"""

from __future__ import annotations

from llmedic.analysis.ledger.geometry.fields import MOST_HEADS, MOST_LAYERS
from llmedic.analysis.ledger.geometry.shape import LayerKind, Shape
from llmedic.analysis.ledger.geometry.tensors import Layer, Tensor, linear, norm, vector
from llmedic.model.geometry import CacheKind, CacheLayer

_CACHES: dict[LayerKind, CacheKind] = {"full": "full", "sliding": "sliding", "chunked": "chunked"}


def cache(shape: Shape, kind: LayerKind, *, kv_heads: int = 0, head_dim: int = 0, value_dim: int = 0) -> CacheLayer:
    """Keys and values of one layer, of all tokens or of a window."""
    return CacheLayer(
        kind=_CACHES[kind],
        kv_heads=kv_heads or shape.kv_heads,
        head_dim=head_dim or shape.head_dim,
        value_dim=value_dim,
        window_tokens=0 if kind == "full" else shape.window_tokens,
    )


def grouped(shape: Shape, kind: LayerKind) -> Layer:
    """Grouped-query attention as the family has it."""
    family, fields = shape.family, shape.fields
    gate = 2 if fields.switch(family.gate) else 1
    tensors = projections(
        shape.hidden,
        shape.heads,
        shape.kv_heads,
        shape.head_dim,
        bias=fields.switch(family.qkv_bias),
        out_bias=fields.switch(family.o_bias),
        gate=gate,
    )
    return Layer(cache(shape, kind), (*tensors, *_query_key_norms(shape), *_sinks(shape)))


def projections(
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    *,
    value_dim: int = 0,
    bias: bool = False,
    out_bias: bool = False,
    gate: int = 1,
    path: str = "self_attn",
) -> tuple[Tensor, ...]:
    """Query, key, value and output projection of `hidden`; `gate` 2: the query projection also makes a gate."""
    value = value_dim or head_dim
    return (
        *linear(f"{path}.q_proj", "attention", hidden, heads * head_dim * gate, bias=bias),
        *linear(f"{path}.k_proj", "key-value", hidden, kv_heads * head_dim, "key-value", bias=bias),
        *linear(f"{path}.v_proj", "key-value", hidden, kv_heads * value, "key-value", bias=bias),
        *linear(f"{path}.o_proj", "attention", heads * value, hidden, bias=out_bias),
    )


def _query_key_norms(shape: Shape) -> tuple[Tensor, ...]:
    family = shape.family
    if not family.qk_norm or (family.qk_norm_if and not shape.fields.flag(family.qk_norm_if)):
        return ()
    query, key = shape.head_dim, shape.head_dim
    if family.qk_norm == "width":
        query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    return (*norm("self_attn.q_norm", query), *norm("self_attn.k_norm", key))


def _sinks(shape: Shape) -> tuple[Tensor, ...]:
    return vector("self_attn.sinks", "attention", shape.heads, "tensor") if shape.family.sinks else ()


def latent(shape: Shape, width: int) -> Layer:
    """Multi-head latent attention (DeepSeek V2 and its descendants), and its indexer whose key is `width` wide."""
    fields, hidden, heads = shape.fields, shape.hidden, shape.heads
    bias = fields.switch(shape.family.qkv_bias)
    rank, rope = fields.count("kv_lora_rank"), fields.count("qk_rope_head_dim", most=MOST_HEADS)
    plain, value = fields.count("qk_nope_head_dim", most=MOST_HEADS), fields.count("v_head_dim", most=MOST_HEADS)
    query_rank = fields.optional("q_lora_rank", least=0)
    if query_rank:
        query = (
            *linear("self_attn.q_a_proj", "attention", hidden, query_rank, "none", bias=bias),
            *norm("self_attn.q_a_layernorm", query_rank),
            *linear("self_attn.q_b_proj", "attention", query_rank, heads * (plain + rope)),
        )
    else:
        query = linear("self_attn.q_proj", "attention", hidden, heads * (plain + rope))
    tensors: tuple[Tensor, ...] = (
        *query,
        *linear("self_attn.kv_a_proj_with_mqa", "key-value", hidden, rank + rope, "none", bias=bias),
        *norm("self_attn.kv_a_layernorm", rank),
        *linear("self_attn.kv_b_proj", "key-value", rank, heads * (plain + value)),
        *linear("self_attn.o_proj", "attention", heads * value, hidden, bias=fields.switch(shape.family.o_bias)),
    )
    if fields.flag("mla_use_output_gate"):
        tensors = (*tensors, *linear("self_attn.g_proj", "attention", hidden, heads * value))
    cached = CacheLayer(kind="mla", latent_dim=rank + rope, index_dim=width)
    return Layer(cached, (*tensors, *_indexer(shape, query_rank or hidden, width)))


def index_widths(shape: Shape) -> tuple[int, ...]:
    """Width of the key of each layer's indexer (sparse attention of DeepSeek V3.2); 0: it has none of its own.

    GLM 5.2 and later share an indexer between layers (vLLM 0.33 `deepseek_v2.py`, `skip_topk`).
    """
    fields = shape.fields
    if not fields.has("index_topk"):
        return (0,) * shape.layers
    width = fields.count("index_head_dim", default=128, most=MOST_HEADS)
    if (kinds := fields.words("indexer_types", length=shape.layers)) is not None:
        return tuple(0 if kind == "shared" else width for kind in kinds)
    every = fields.count("index_topk_freq", default=1, most=MOST_LAYERS)
    offset = fields.count("index_skip_topk_offset", default=2, least=0, most=MOST_LAYERS)
    return tuple(0 if max(index - offset + 1, 0) % every else width for index in range(shape.layers))


def _indexer(shape: Shape, query_rank: int, width: int) -> tuple[Tensor, ...]:
    if not width:
        return ()
    heads = shape.fields.count("index_n_heads", default=64, most=MOST_HEADS)
    return (
        *linear("self_attn.indexer.wq_b", "attention", query_rank, heads * width, "none"),
        *linear("self_attn.indexer.wk", "attention", shape.hidden, width, "none"),
        *norm("self_attn.indexer.k_norm", width, bias=True),
        Tensor("self_attn.indexer.weights_proj", "attention", heads, shape.hidden),
    )
