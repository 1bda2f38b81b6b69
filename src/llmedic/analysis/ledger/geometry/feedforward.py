"""Feed-forward layers: dense, or a mixture of experts, and which layer is which."""

from __future__ import annotations

from llmedic.analysis.ledger.geometry.fields import MOST_EXPERTS, MOST_LAYERS, fault
from llmedic.analysis.ledger.geometry.shape import Shape
from llmedic.analysis.ledger.geometry.tensors import Tensor, linear, norm, vector
from llmedic.model.geometry import Split

SHARED_NAMES = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")


def feed_forward(shape: Shape, *, sparse: bool) -> tuple[Tensor, ...]:
    """The weights after the attention of one layer, dense or `sparse` (a mixture of experts)."""
    if sparse:
        return mixture(shape)
    if not shape.width:
        raise fault("intermediate_size is missing, though not every layer is a mixture of experts")
    return dense("mlp", "mlp", shape.hidden, shape.width, gated=shape.family.gated, bias=_bias(shape))


def _bias(shape: Shape) -> bool:
    return shape.fields.switch(shape.family.mlp_bias)


def dense(
    path: str,
    part: str,
    hidden: int,
    width: int,
    *,
    gated: bool = True,
    bias: bool = False,
    copies: int = 1,
    split: Split = "tensor",
) -> tuple[Tensor, ...]:
    """Gate (where there is one), up and down projection."""
    gate = linear(f"{path}.gate_proj", part, hidden, width, split, bias=bias, copies=copies) if gated else ()
    return (
        *gate,
        *linear(f"{path}.up_proj", part, hidden, width, split, bias=bias, copies=copies),
        *linear(f"{path}.down_proj", part, width, hidden, split, bias=bias, copies=copies),
    )


def mixture_layers(shape: Shape) -> tuple[bool, ...]:
    """Whether each layer is a mixture of experts: every family has its own way to say so."""
    fields, layers = shape.fields, range(shape.layers)
    if not shape.experts:
        return (False,) * shape.layers
    if (kinds := fields.words("mlp_layer_types", length=shape.layers)) is not None:
        return tuple(kind == "sparse" for kind in kinds)
    if (named := fields.counts("moe_layers", most=MOST_LAYERS)) is not None:
        chosen = frozenset(named)
        return tuple(index in chosen for index in layers)
    if fields.has("interleave_moe_layer_step"):
        return _every(shape, fields.count("interleave_moe_layer_step", least=0, most=MOST_LAYERS))
    if fields.has("decoder_sparse_step", "mlp_only_layers"):
        dense_layers = frozenset(fields.counts("mlp_only_layers", most=MOST_LAYERS) or ())
        step = fields.count("decoder_sparse_step", default=1, least=0, most=MOST_LAYERS)
        return tuple(found and index not in dense_layers for index, found in enumerate(_every(shape, step)))
    if fields.has("moe_layer_interval"):
        return _ernie(shape)
    return _after_dense(shape)


def _every(shape: Shape, step: int) -> tuple[bool, ...]:
    """Every `step`-th layer; none when it is 0."""
    return tuple(bool(step) and (index + 1) % step == 0 for index in range(shape.layers))


def _ernie(shape: Shape) -> tuple[bool, ...]:
    last = shape.layers - 1
    start, end = _first(shape, "moe_layer_start_index", 0), _first(shape, "moe_layer_end_index", last)
    end = last if end < 0 else end
    every = _every(shape, shape.fields.count("moe_layer_interval", most=MOST_LAYERS))
    return tuple(found and start <= index <= end for index, found in enumerate(every))


def _first(shape: Shape, name: str, default: int) -> int:
    """A number, or the first of a list of one per modality (Ernie VL)."""
    fields = shape.fields
    if isinstance(fields.get(name), list):
        found = fields.counts(name, least=-1, most=MOST_LAYERS)
        return found[0] if found else default
    return fields.count(name, default=default, least=-1, most=MOST_LAYERS)


def _after_dense(shape: Shape) -> tuple[bool, ...]:
    fields = shape.fields
    first = fields.count(
        "first_k_dense_replace", "num_dense_layers", "moe_layer_num_skipped", default=0, least=0, most=MOST_LAYERS
    )
    if isinstance(fields.get("moe_layer_freq"), list):
        return tuple(map(bool, fields.counts("moe_layer_freq", length=shape.layers, most=1) or ()))
    step = fields.count("moe_layer_freq", default=1, most=MOST_LAYERS)
    return tuple(index >= first and index % step == 0 for index in range(shape.layers))


def mixture(shape: Shape) -> tuple[Tensor, ...]:
    """Router, routed experts and shared experts."""
    family, fields, hidden, experts = shape.family, shape.fields, shape.hidden, shape.experts
    router = (Tensor("mlp.gate", "router", experts, hidden),)
    bias = vector("mlp.gate.bias", "router", experts, bytes_each=4) if fields.switch(family.router_bias) else ()
    narrow = fields.optional("routed_expert_hidden_size", least=0) or hidden
    latent = _latent(hidden, narrow) if narrow != hidden else ()
    routed = dense(
        "mlp.experts.0",
        "experts",
        narrow,
        shape.expert_width,
        gated=family.gated,
        bias=family.expert_bias,
        copies=experts,
        split="expert",
    )
    return (*router, *bias, *latent, *routed, *_shared(shape))


def _latent(hidden: int, narrow: int) -> tuple[Tensor, ...]:
    """The projections around experts that work in a narrower space, copied on every rank."""
    return (
        *linear("mlp.routed_expert_down_proj", "experts", hidden, narrow, "none"),
        *linear("mlp.routed_expert_up_proj", "experts", narrow, hidden, "none"),
        *norm("mlp.routed_expert_norm", narrow),
    )


def _shared(shape: Shape) -> tuple[Tensor, ...]:
    width = shared_width(shape)
    if not width:
        return ()
    gate = (Tensor("mlp.shared_expert_gate", "router", 1, shape.hidden),) if shape.family.shared_gate else ()
    path = "mlp.shared_expert" if shape.family.shared_gate else "mlp.shared_experts"
    shared = dense(path, "shared experts", shape.hidden, width, gated=shape.family.gated, bias=_bias(shape))
    return (*shared, *gate)


def shared_width(shape: Shape) -> int:
    """Width of all shared experts of a layer together."""
    fields = shape.fields
    named = fields.optional("shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim", least=0)
    if named is not None:
        return named
    if shape.type == "llama4_text":
        return shape.expert_width
    number = fields.first(*SHARED_NAMES, default=0, least=0, most=MOST_EXPERTS)
    return number * shape.expert_width
