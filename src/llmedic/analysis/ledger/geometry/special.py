"""Decoders of attention alone whose layers differ in their own way.

Sources: the model files of vLLM 0.33 (`longcat_flash.py`, `mimo_v2.py`, `nemotron_nas.py`,
`step3p5.py`, `minimax_m3/nvidia/model.py`).
"""

from __future__ import annotations

from dataclasses import replace

from llmedic.analysis.ledger.geometry import attention, feedforward, stack
from llmedic.analysis.ledger.geometry.fields import MOST_EXPERTS, MOST_HEADS, MOST_TOKENS, Fields, divided, fault
from llmedic.analysis.ledger.geometry.shape import LayerKind, Shape
from llmedic.analysis.ledger.geometry.tensors import Layer, Tensor, linear, norm, vector
from llmedic.model.geometry import CacheLayer, StateTensor


def longcat(shape: Shape) -> tuple[Layer, ...]:
    """LongCat Flash: two latent attentions, two dense feed-forwards and one mixture in each layer.

    Each layer is two entries, since it has two caches. Some experts are empty; the router still scores them.
    """
    hidden, experts = shape.hidden, shape.experts
    empty = shape.fields.count("zero_expert_num", default=0, least=0, most=MOST_EXPERTS)
    half = stack.joined(
        attention.latent(shape, 0), feedforward.dense("mlps.0", "mlp", hidden, shape.width), norm("norms", 2 * hidden)
    )
    routed = feedforward.dense("mlp.experts.0", "experts", hidden, shape.expert_width, copies=experts, split="expert")
    router = (Tensor("mlp.router.classifier", "router", experts + empty, hidden, bytes_each=4),)
    return (stack.joined(half, router, routed), replace(half, continues=True)) * shape.layers


def mimo_v2(shape: Shape) -> tuple[Layer, ...]:
    """MiMo V2: sliding layers have heads of their own; values are narrower than keys."""
    pattern = shape.fields.counts("hybrid_layer_pattern", length=shape.layers, most=1)
    if pattern is None:
        raise fault("hybrid_layer_pattern is missing")

    def build(key: tuple[int, bool]) -> Layer:
        sliding, sparse = key
        mixer = mimo_v2_attention(shape, sliding=bool(sliding))
        return stack.joined(mixer, feedforward.feed_forward(shape, sparse=sparse), stack.norms(shape))

    return stack.each(zip(pattern, feedforward.mixture_layers(shape), strict=True), build)


def mimo_v2_attention(shape: Shape, *, sliding: bool) -> Layer:
    """The attention of a sliding or a full layer of MiMo V2."""
    fields = shape.fields
    kind: LayerKind = "sliding" if sliding else "full"
    prefix = "swa_" if sliding else ""
    heads = fields.count(f"{prefix}num_attention_heads", default=shape.heads, most=MOST_HEADS)
    kv_heads = fields.count(f"{prefix}num_key_value_heads", default=shape.kv_heads, most=MOST_HEADS)
    dim = fields.count(f"{prefix}head_dim", default=shape.head_dim, most=MOST_HEADS)
    value = fields.count(f"{prefix}v_head_dim", "v_head_dim", default=dim, most=MOST_HEADS)
    divided(heads, kv_heads, "query heads per key-value head")
    tensors = attention.projections(
        shape.hidden, heads, kv_heads, dim, value_dim=value, bias=fields.flag("attention_bias")
    )
    sinks = fields.flag("add_swa_attention_sink_bias" if sliding else "add_full_attention_sink_bias")
    own = replace(shape, window_tokens=fields.count("sliding_window_size", "sliding_window", most=MOST_TOKENS))
    cached = attention.cache(own, kind, kv_heads=kv_heads, head_dim=dim, value_dim=value if value != dim else 0)
    return Layer(cached, (*tensors, *(vector("self_attn.sinks", "attention", heads, "tensor") if sinks else ())))


def deci(shape: Shape) -> tuple[Layer, ...]:
    """Models pruned by architecture search (Llama Nemotron): every block says what it has."""
    blocks = shape.fields.items("block_configs", length=shape.layers)
    if blocks is None:
        raise fault("block_configs is missing")
    keys = [_deci_key(shape, block, index) for index, block in enumerate(blocks)]
    return stack.each(keys, lambda key: _deci_layer(shape, *key))


def _deci_key(shape: Shape, block: object, index: int) -> tuple[int, int]:
    """KV heads (0: no attention) and feed-forward width (0: none) of one block."""
    if not isinstance(block, dict):
        raise fault(f"block_configs[{index}] must be a section of fields")
    fields = Fields(block, f"block_configs[{index}].")
    attended, after = fields.section("attention"), fields.section("ffn")
    if attended is None or after is None:
        raise fault(f"block_configs[{index}] must have attention and ffn")
    if attended.flag("replace_with_linear") or after.flag("replace_with_linear"):
        raise fault(f"block_configs[{index}] replaces a part by a linear layer, which no served model does")
    group = 0 if attended.flag("no_op") else attended.count("n_heads_in_group", most=MOST_HEADS)
    heads = divided(shape.heads, group, "query heads per key-value head") if group else 0
    return heads, 0 if after.flag("no_op") else _deci_width(after, shape.hidden)


def _deci_width(after: Fields, hidden: int) -> int:
    """`_ffn_mult_to_intermediate_size`: two thirds of the multiple, rounded up to 256."""
    if (named := after.optional("intermediate_size")) is not None:
        return named
    factor = after.get("ffn_mult")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1_000:
        raise fault(f"{after.path}ffn_mult must be a positive number")
    return -(-int(2 * factor * hidden / 3) // 256) * 256


def _deci_layer(shape: Shape, kv_heads: int, width: int) -> Layer:
    mixer = attention.grouped(replace(shape, kv_heads=kv_heads), "full") if kv_heads else Layer(None, ())
    after = feedforward.dense("mlp", "mlp", shape.hidden, width) if width else ()
    number = bool(kv_heads) + bool(width)
    return stack.joined(mixer, after, norm("layernorms", shape.hidden * number) if number else ())


def whisper(shape: Shape) -> tuple[Layer, ...]:
    """Whisper's decoder: each layer caches its own tokens, and once per request the keys and values of the audio.

    Each layer is two entries, since it has two caches.
    """
    hidden = shape.hidden
    own = attention.grouped(shape, "full")
    positions = shape.fields.count("max_source_positions", default=1500)
    audio = StateTensor(name="encoder keys and values", elements=2 * positions * hidden)
    crossed = attention.projections(
        hidden, shape.heads, shape.kv_heads, shape.head_dim, bias=True, out_bias=True, path="encoder_attn"
    )
    second = Layer(CacheLayer(kind="state", state=(audio,)), crossed)
    after = feedforward.feed_forward(shape, sparse=False)
    rest = stack.joined(second, after, stack.norms(shape))
    return (own, replace(rest, continues=True)) * shape.layers


def minimax_m3(shape: Shape) -> tuple[Layer, ...]:
    """MiniMax M3: sparse layers also cache the key of an indexer, so such a layer is two entries."""
    fields, hidden = shape.fields, shape.hidden
    sparse = fields.section("sparse_attention_config")
    chosen = sparse.counts("sparse_attention_freq", length=shape.layers, most=1) if sparse else None
    if sparse is None or chosen is None:
        raise fault("sparse_attention_config.sparse_attention_freq is missing")
    dim = sparse.count("sparse_index_dim", most=MOST_HEADS)
    heads = sparse.count("sparse_num_index_heads", most=MOST_HEADS)
    mixtures = feedforward.mixture_layers(shape)
    wide = replace(shape, width=fields.count("dense_intermediate_size", "intermediate_size"))
    index = Layer(
        CacheLayer(kind="mla", latent_dim=dim),
        (
            *linear("self_attn.index_q_proj", "attention", hidden, heads * dim),
            *linear("self_attn.index_k_proj", "attention", hidden, dim, "none"),
            *norm("self_attn.index_norms", 2 * dim),
        ),
        continues=True,
    )
    layers: list[Layer] = []
    for indexed, plain in zip(chosen, stack.each(mixtures, lambda found: _m3_layer(wide, sparse=found)), strict=True):
        layers.extend((plain, index) if indexed else (plain,))
    return tuple(layers)


def _m3_layer(shape: Shape, *, sparse: bool) -> Layer:
    after = feedforward.feed_forward(shape, sparse=sparse)
    return stack.joined(attention.grouped(shape, "full"), after, stack.norms(shape))


def step3(shape: Shape) -> tuple[Layer, ...]:
    """Step 3.5 and 3.7: sliding layers have query heads of their own; a gate of one number per head."""
    fields = shape.fields
    listed = fields.text("moe_layers_enum")
    if listed and not all(item.strip().isdigit() for item in listed.split(",")):
        raise fault("moe_layers_enum must be layer numbers with commas between them")
    numbers = frozenset(int(item) for item in listed.split(",")) if listed else None
    mixtures = [
        index in numbers if numbers is not None else found
        for index, found in enumerate(feedforward.mixture_layers(shape))
    ]

    def build(key: tuple[LayerKind, bool]) -> Layer:
        kind, sparse = key
        mixer = _step3_attention(shape, kind)
        return stack.joined(mixer, feedforward.feed_forward(shape, sparse=sparse), stack.norms(shape))

    return stack.each(zip(shape.kinds, mixtures, strict=True), build)


def _step3_attention(shape: Shape, kind: LayerKind) -> Layer:
    fields, heads, kv_heads = shape.fields, shape.heads, shape.kv_heads
    other = fields.section("attention_other_setting")
    if kind == "sliding":
        heads = fields.count("num_sliding_attention_heads", default=heads, most=MOST_HEADS)
        if other is not None:
            heads = other.count("num_attention_heads", default=heads, most=MOST_HEADS)
    divided(heads, kv_heads, "query heads per key-value head")
    own = replace(shape, heads=heads)
    mixer = attention.grouped(own, kind)
    gated = fields.flag("use_head_wise_attn_gate")
    return stack.joined(mixer, linear("self_attn.g_proj", "attention", shape.hidden, heads) if gated else ())
