"""Gemma 3n and Gemma 4: shared caches, embeddings per layer, wider full-attention heads.

Sources: vLLM 0.33 `gemma3n.py`, `gemma4.py`; transformers 5.19 `Gemma4TextConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from llmedic.analysis.ledger.geometry import attention, feedforward, stack
from llmedic.analysis.ledger.geometry.fields import MOST_HEADS, MOST_LAYERS, Fields, fault
from llmedic.analysis.ledger.geometry.shape import LayerKind, Shape
from llmedic.analysis.ledger.geometry.tensors import Layer, Tensor, linear, norm, vector

GEMMA4_FULL_HEAD_DIM = 512


@dataclass(frozen=True, slots=True)
class _Plan:
    kind: LayerKind
    shared: bool
    width: int


def _plans(shape: Shape) -> list[_Plan]:
    """Kind, whether the cache is an earlier layer's, and the feed-forward width of every layer."""
    fields = shape.fields
    first = shape.layers - fields.count("num_kv_shared_layers", default=0, least=0, most=MOST_LAYERS)
    if first < 0:
        raise fault("num_kv_shared_layers is more than the layers that there are")
    double = 2 if fields.flag("use_double_wide_mlp") else 1
    listed = fields.counts("intermediate_size", length=shape.layers, least=1) if _is_list(fields) else None
    plans = []
    for index, kind in enumerate(shape.kinds):
        shared = index >= first > 0
        width = listed[index] if listed else shape.width * (double if shared else 1)
        plans.append(_Plan(kind, shared, width))
    return plans


def _is_list(fields: Fields) -> bool:
    return isinstance(fields.get("intermediate_size"), list | tuple)


def gemma4(shape: Shape) -> tuple[Layer, ...]:
    """Layers of Gemma 4."""
    return stack.each(_plans(shape), lambda plan: _gemma4_layer(shape, plan))


def _gemma4_layer(shape: Shape, plan: _Plan) -> Layer:
    fields, hidden = shape.fields, shape.hidden
    full = plan.kind == "full"
    same = full and fields.flag("attention_k_eq_v")
    dim = fields.count("global_head_dim", default=GEMMA4_FULL_HEAD_DIM, most=MOST_HEADS) if full else shape.head_dim
    heads = shape.kv_heads
    if same:
        heads = fields.count("num_global_key_value_heads", default=heads, most=MOST_HEADS)
    own = replace(shape, kv_heads=heads, head_dim=dim)
    projected = attention.projections(hidden, shape.heads, heads, dim, bias=fields.flag("attention_bias"))
    tensors = (
        *_key_values(projected, same=same, shared=plan.shared),
        *norm("self_attn.q_norm", dim),
        *(() if plan.shared else norm("self_attn.k_norm", dim)),
        *feedforward.dense("mlp", "mlp", hidden, plan.width),
        *stack.norms(shape),
        *_per_layer(shape),
        *(_gemma4_mixture(shape) if shape.experts else ()),
    )
    return Layer(None if plan.shared else attention.cache(own, plan.kind), tensors)


def _key_values(tensors: tuple[Tensor, ...], *, same: bool, shared: bool) -> tuple[Tensor, ...]:
    """Projections as they are loaded: none for a shared cache; the keys' also as the values' where both are one."""
    if shared:
        return tuple(tensor for tensor in tensors if tensor.part != "key-value")
    return tuple(replace(tensor, published=not (same and "v_proj" in tensor.path)) for tensor in tensors)


def _gemma4_mixture(shape: Shape) -> tuple[Tensor, ...]:
    hidden, experts = shape.hidden, shape.experts
    return (
        Tensor("router.proj", "router", experts, hidden),
        *vector("router.scale", "router", hidden + experts),
        *feedforward.dense("experts.0", "experts", hidden, shape.expert_width, copies=experts, split="expert"),
        *norm("feedforward_layernorms", 3 * hidden),
    )


def _per_layer(shape: Shape) -> tuple[Tensor, ...]:
    """The gate and projection of the embedding that each layer has of its own."""
    width = shape.fields.count("hidden_size_per_layer_input", default=0, least=0)
    if not width:
        return ()
    return (
        *linear("per_layer_input_gate", "other", shape.hidden, width, "none"),
        *linear("per_layer_projection", "other", width, shape.hidden, "none"),
        *norm("post_per_layer_input_norm", shape.hidden),
    )


def outside(shape: Shape, *, tied: bool) -> tuple[Tensor, ...]:
    """Embeddings, head and the embeddings per layer."""
    fields = shape.fields
    width = fields.count("hidden_size_per_layer_input", default=0, least=0)
    common = stack.outside(shape, tied=tied)
    if not width:
        return common
    total = width * shape.layers
    vocabulary = fields.count("vocab_size_per_layer_input", default=shape.vocabulary)
    return (
        *common,
        Tensor("embed_tokens_per_layer", "embedding", vocabulary, total, "vocabulary"),
        *linear("per_layer_model_projection", "other", shape.hidden, total, "none"),
        *norm("per_layer_projection_norm", width),
    )


def gemma3n(shape: Shape) -> tuple[Layer, ...]:
    """Layers of Gemma 3n."""
    return stack.each(_plans(shape), lambda plan: _gemma3n_layer(shape, plan))


def _gemma3n_layer(shape: Shape, plan: _Plan) -> Layer:
    fields, hidden = shape.fields, shape.hidden
    streams, rank = _streams(shape), fields.count("laurel_rank", default=64)
    projected = attention.projections(hidden, shape.heads, shape.kv_heads, shape.head_dim)
    tensors = (
        *(replace(tensor, published=not (plan.shared and tensor.part == "key-value")) for tensor in projected),
        *norm("self_attn.q_norm", shape.head_dim),
        *(() if plan.shared else norm("self_attn.k_norm", shape.head_dim)),
        *feedforward.dense("mlp", "mlp", hidden, plan.width),
        *stack.norms(shape),
        *_per_layer(shape),
        *vector("altup", "other", streams * streams + streams**3 + streams * hidden + 2 * hidden),
        *linear("laurel.linear_left", "other", hidden, rank, "none"),
        *linear("laurel.linear_right", "other", rank, hidden, "none"),
        *norm("laurel.post_laurel_norm", hidden),
    )
    return Layer(None if plan.shared else attention.cache(shape, plan.kind), tensors)


def _streams(shape: Shape) -> int:
    return shape.fields.count("altup_num_inputs", default=4, most=64)


def gemma3n_outside(shape: Shape, *, tied: bool) -> tuple[Tensor, ...]:
    """As Gemma 4, and the projections between its parallel streams."""
    copies = 2 * (_streams(shape) - 1)
    streams = linear("altup_projections", "other", shape.hidden, shape.hidden, "tensor", copies=copies)
    return (*outside(shape, tied=tied), *(streams if copies else ()))
