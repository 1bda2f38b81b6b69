"""Decoders that mix attention with recurrent layers, each family in its own way.

Sources: the model files of vLLM 0.33 and the configuration classes of transformers 5.19.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from llmedic.analysis.ledger.geometry import attention, feedforward, stack, states
from llmedic.analysis.ledger.geometry.fields import MOST_HEADS, MOST_LAYERS, fault, shown
from llmedic.analysis.ledger.geometry.shape import Shape
from llmedic.analysis.ledger.geometry.tensors import Layer, Tensor, linear, norm

Mixer = Literal["mamba", "attention"]


def mamba(shape: Shape) -> tuple[Layer, ...]:
    """Mamba and Falcon Mamba: Mamba 1 and nothing else."""
    mixer = states.mamba1(shape.fields, shape.hidden, "mixer", norms=False)
    return (stack.joined(mixer, norm("norm", shape.hidden)),) * shape.layers


def mamba2(shape: Shape) -> tuple[Layer, ...]:
    """Mamba 2 and nothing else."""
    fields, hidden = shape.fields, shape.hidden
    mixer = states.mamba2(states.mamba2_of(fields, hidden), hidden, "mixer", states.state_bytes(fields))
    return (stack.joined(mixer, norm("norm", hidden)),) * shape.layers


def jamba(shape: Shape) -> tuple[Layer, ...]:
    """Jamba: Mamba 1, attention in one layer of each period, experts in others."""
    fields = shape.fields
    period = fields.count("attn_layer_period", default=8, most=MOST_LAYERS)
    offset = fields.count("attn_layer_offset", default=4, least=0, most=MOST_LAYERS)
    expert_period = fields.count("expert_layer_period", default=2, most=MOST_LAYERS)
    expert_offset = fields.count("expert_layer_offset", default=1, least=0, most=MOST_LAYERS)
    keys = [
        (index % period == offset, shape.experts > 1 and index % expert_period == expert_offset)
        for index in range(shape.layers)
    ]

    def build(key: tuple[bool, bool]) -> Layer:
        full, sparse = key
        mixer = attention.grouped(shape, "full") if full else states.mamba1(fields, shape.hidden, "mamba", norms=True)
        return stack.joined(mixer, feedforward.feed_forward(shape, sparse=sparse), stack.norms(shape))

    return stack.each(keys, build)


def bamba(shape: Shape) -> tuple[Layer, ...]:
    """Bamba: Mamba 2, attention in the layers of a list."""
    found = shape.fields.counts("attn_layer_indices", most=MOST_LAYERS) or ()
    chosen = frozenset(found)
    return stack.each((index in chosen for index in range(shape.layers)), lambda full: _mamba2_layer(shape, full=full))


def granite(shape: Shape) -> tuple[Layer, ...]:
    """Granite 4 hybrid: Mamba 2 or attention by layer_types, experts beside a shared feed-forward."""
    kinds = shape.fields.words("layer_types", "layers_block_type", length=shape.layers)
    if kinds is None:
        raise fault("layer_types is missing")
    for kind in kinds:
        if kind not in ("mamba", "attention", "linear_attention", "full_attention"):
            raise fault(f"layer_types names a kind of layer that is not known: {shown(kind)}")
    full = (kind in ("attention", "full_attention") for kind in kinds)
    return stack.each(full, lambda full: _mamba2_layer(shape, full=full))


def _mamba2_layer(shape: Shape, *, full: bool) -> Layer:
    fields, hidden = shape.fields, shape.hidden
    if full:
        mixer = attention.grouped(shape, "full")
    else:
        mixer = states.mamba2(states.mamba2_of(fields, hidden), hidden, "mamba", states.state_bytes(fields))
    shared = feedforward.shared_width(shape)
    if not shape.experts and shared:
        after = feedforward.dense("shared_mlp", "mlp", hidden, shared)
    else:
        after = feedforward.feed_forward(shape, sparse=bool(shape.experts))
    return stack.joined(mixer, after, stack.norms(shape))


def falcon_h1(shape: Shape) -> tuple[Layer, ...]:
    """Falcon H1: attention and Mamba 2 side by side; each layer is two entries, since it has two caches."""
    fields, hidden = shape.fields, shape.hidden
    dims = states.mamba2_of(fields, hidden)
    if not fields.has("mamba_rms_norm"):
        dims = replace(dims, normed=False)
    attended = attention.grouped(shape, "full")
    mixer = states.mamba2(dims, hidden, "mamba", states.state_bytes(fields))
    rest = stack.joined(mixer, feedforward.feed_forward(shape, sparse=False), stack.norms(shape))
    return (attended, replace(rest, continues=True)) * shape.layers


LETTERS = {"M": "mamba", "E": "moe", "-": "mlp", "*": "attention"}
_WORDS = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
    "moe": "moe",
    "mlp": "mlp",
}


def nemotron_pattern(shape: Shape) -> tuple[str, ...]:
    """What each layer of a Nemotron-H is: "mamba", "attention", "mlp" or "moe"."""
    fields = shape.fields
    if (words := fields.words("layers_block_type")) is not None:
        names = tuple(_WORDS.get(word, "") for word in words)
    else:
        names = tuple(LETTERS.get(letter, "") for letter in fields.text("hybrid_override_pattern"))
    if not names or "" in names or len(names) != shape.layers:
        raise fault("the pattern of layers (hybrid_override_pattern) does not name every layer")
    return names


def nemotron(shape: Shape) -> tuple[Layer, ...]:
    """Nemotron-H: each layer is one mixer with one norm; its recurrent state is float32 unless it says otherwise."""
    return stack.each(nemotron_pattern(shape), lambda name: nemotron_layer(shape, name))


def nemotron_layer(shape: Shape, name: str) -> Layer:
    """One layer of a Nemotron-H."""
    fields, hidden = shape.fields, shape.hidden
    around = norm("norm", hidden)
    if name == "mamba":
        dims = states.mamba2_of(fields, hidden)
        return stack.joined(states.mamba2(dims, hidden, "mixer", states.state_bytes(fields, 4.0)), around)
    if name == "attention":
        return stack.joined(attention.grouped(shape, "full"), around)
    if name == "mlp":
        return Layer(None, (*feedforward.feed_forward(shape, sparse=False), *around))
    return Layer(None, (*_nemotron_mixture(shape), *around))


def _nemotron_mixture(shape: Shape) -> tuple[Tensor, ...]:
    """Experts that work in a narrower space when moe_latent_size is set."""
    fields, hidden, experts = shape.fields, shape.hidden, shape.experts
    if not experts:
        raise fault("the pattern of layers has a mixture of experts, but n_routed_experts is missing")
    narrow = fields.optional("moe_latent_size", least=0) or hidden
    shared = fields.count("moe_shared_expert_intermediate_size", default=0, least=0)
    shared *= fields.count("n_shared_experts", default=0, least=0, most=MOST_HEADS)
    latent: tuple[Tensor, ...] = ()
    if narrow != hidden:
        latent = (
            *linear("mixer.fc1_latent_proj", "experts", hidden, narrow, "none"),
            *linear("mixer.fc2_latent_proj", "experts", narrow, hidden, "none"),
        )
    return (
        Tensor("mixer.gate", "router", experts, hidden, bytes_each=4),
        *latent,
        *feedforward.dense(
            "mixer.experts.0", "experts", narrow, shape.expert_width, gated=False, copies=experts, split="expert"
        ),
        *(feedforward.dense("mixer.shared_experts", "shared experts", hidden, shared, gated=False) if shared else ()),
    )


def zamba2(shape: Shape) -> tuple[Layer, ...]:
    """Zamba 2: Mamba 2 in every layer; the hybrid ones first run a shared attention block over twice the width.

    A hybrid layer is two entries, since it has two caches; the shared blocks' weights are counted in the first ones.
    """
    fields, hidden = shape.fields, shape.hidden
    kinds = fields.words("layers_block_type", length=shape.layers)
    if kinds is None:
        raise fault("layers_block_type is missing")
    dims = states.mamba2_of(fields, hidden)
    plain = stack.joined(
        states.mamba2(dims, hidden, "mamba", states.state_bytes(fields)), norm("input_layernorm", hidden)
    )
    blocks = fields.count("num_mem_blocks", default=1, most=MOST_LAYERS)
    layers: list[Layer] = []
    hybrids = 0
    for kind in kinds:
        if kind == "hybrid":
            layers.append(_zamba2_block(shape, blocks, kinds.count("hybrid"), hybrids))
            hybrids += 1
        layers.append(replace(plain, continues=True) if kind == "hybrid" else plain)
    return tuple(layers)


def _zamba2_block(shape: Shape, blocks: int, hybrids: int, number: int) -> Layer:
    """The `number`-th use of a shared block: its own projection and adapter, and the block itself at its first use."""
    fields, hidden = shape.fields, shape.hidden
    rank = fields.count("adapter_rank", default=128)
    dim = fields.count("attention_head_dim", default=2 * hidden // shape.heads, most=MOST_HEADS)
    tensors = linear("linear", "other", hidden, hidden, "none")
    if number < blocks:
        width, adapters = 2 * hidden, -(-(hybrids - number) // blocks)
        own = attention.projections(width, shape.heads, shape.kv_heads, dim, path="shared_transformer.self_attn")
        tensors = (
            *tensors,
            *(replace(tensor, rows=hidden) if "o_proj" in tensor.path else tensor for tensor in own),
            *feedforward.dense("shared_transformer.feed_forward", "mlp", hidden, shape.width),
            *linear("shared_transformer.adapter_down", "mlp", hidden, rank, "none", copies=adapters),
            *linear("shared_transformer.adapter_up", "mlp", rank, 2 * shape.width, "tensor", copies=adapters),
            *norm("shared_transformer.layernorms", 3 * hidden),
        )
    return Layer(attention.cache(shape, "full", head_dim=dim), tensors)


def lfm2(shape: Shape) -> tuple[Layer, ...]:
    """LFM2: short convolutions and attention by layer_types or full_attn_idxs."""
    kinds = shape.kinds
    if shape.fields.get("layer_types") is None:
        chosen = frozenset(shape.fields.counts("full_attn_idxs", most=MOST_LAYERS) or ())
        kinds = tuple("full" if index in chosen else "state" for index in range(shape.layers))
    sparse = feedforward.mixture_layers(shape)
    adjusted = replace(shape, width=_lfm2_width(shape))

    def build(key: tuple[bool, bool]) -> Layer:
        full, sparse = key
        mixer = attention.grouped(shape, "full") if full else states.short_convolution(shape)
        return stack.joined(mixer, feedforward.feed_forward(adjusted, sparse=sparse), stack.norms(shape))

    return stack.each(((kind == "full", found) for kind, found in zip(kinds, sparse, strict=True)), build)


def _lfm2_width(shape: Shape) -> int:
    """Feed-forward width: two thirds of what is configured, rounded up (`Lfm2MLP`)."""
    fields = shape.fields
    if shape.type != "lfm2" or not fields.flag("block_auto_adjust_ff_dim", default=True):
        return shape.width
    factor = fields.get("block_ffn_dim_multiplier")
    width = 2 * shape.width // 3
    if isinstance(factor, int | float) and not isinstance(factor, bool) and 0 < factor < MOST_HEADS:
        width = int(factor * width)
    multiple = fields.count("block_multiple_of", default=256)
    return -(-width // multiple) * multiple


def minimax(shape: Shape) -> tuple[Layer, ...]:
    """MiniMax Text 01: lightning attention, softmax attention in some layers, experts in all."""
    fields = shape.fields
    listed = fields.counts("attn_type_list", length=shape.layers, most=1)
    if listed is not None:
        full = tuple(bool(found) for found in listed)
    elif fields.get("layer_types") is not None:
        full = tuple(kind == "full" for kind in shape.kinds)
    else:
        raise fault("attn_type_list is missing")

    def build(full: bool) -> Layer:
        mixer = attention.grouped(shape, "full") if full else states.lightning(shape)
        after = feedforward.feed_forward(shape, sparse=bool(shape.experts))
        return stack.joined(mixer, after, stack.norms(shape))

    return stack.each(full, build)


def kimi_linear(shape: Shape) -> tuple[Layer, ...]:
    """Kimi Linear: Kimi delta attention, and latent attention in the layers of a list that counts from 1."""
    fields = shape.fields
    nested = fields.section("linear_attn_config")
    if nested is not None:
        linear_layers = frozenset(nested.counts("kda_layers", least=1, most=MOST_LAYERS) or ())
        full = tuple(index + 1 not in linear_layers for index in range(shape.layers))
    else:
        full = tuple(kind == "full" for kind in shape.kinds)
    sparse = feedforward.mixture_layers(shape)

    def build(key: tuple[bool, bool]) -> Layer:
        full, sparse = key
        mixer = attention.latent(shape, 0) if full else states.kimi_delta(shape)
        return stack.joined(mixer, feedforward.feed_forward(shape, sparse=sparse), stack.norms(shape))

    return stack.each(zip(full, sparse, strict=True), build)
