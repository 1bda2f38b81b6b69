"""The measures of a decoder, whatever its configuration calls them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llmedic.analysis.ledger.geometry.families import Family
from llmedic.analysis.ledger.geometry.fields import (
    MOST_EXPERTS,
    MOST_HEADS,
    MOST_LAYERS,
    MOST_TOKENS,
    Fields,
    divided,
    fault,
    shown,
)

LayerKind = Literal["full", "sliding", "chunked", "state"]

WIDTH_NAMES = ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "inner_hidden_size")
KV_HEAD_NAMES = ("num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "num_attention_groups")
EXPERT_NAMES = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
EXPERTS_PER_TOKEN_NAMES = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "top_k_experts",
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "experts_per_token",
)
WIDTH_ELSEWHERE = ("nemotron-nas", "nemotron_h", "granitemoehybrid", "gemma3n_text")
"""Types whose feed-forward width is said per layer or by another field."""
COUNT_DRAFTS = ("step3p5",)
"""Types whose layer_types goes on with the draft layers."""
INTERVALS = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")
"""Types with a full attention after so many linear ones, when layer_types does not say which."""
POSITION_NAMES = (
    "model_max_length",
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_target_positions",
    "max_sequence_length",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A decoder's measures. kinds: one per layer; window_tokens: of its sliding or chunked layers."""

    type: str
    family: Family
    fields: Fields
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    width: int
    vocabulary: int
    experts: int
    experts_per_token: int
    expert_width: int
    positions: int
    kinds: tuple[LayerKind, ...]
    window_tokens: int


def shape_of(fields: Fields, kind: str, family: Family) -> Shape:
    """The measures of model type `kind`; `InputError` when one is missing, absurd or contradicts another."""
    layers = _layers(fields)
    hidden = fields.count("hidden_size", "n_embd", "n_embed", "d_model")
    heads = kv_heads = head_dim = 0
    if family.mixer != "none":
        heads = fields.count("num_attention_heads", "n_head", "n_heads", most=MOST_HEADS)
        kv_heads = heads if family.mixer == "mla" else _kv_heads(fields, kind, heads)
        divided(heads, kv_heads, "query heads per key-value head")
        head_dim = 0 if family.mixer == "mla" else _head_dim(fields, family, hidden, heads)
    nested = fields.section("ffn_config") or fields
    experts = nested.first(*EXPERT_NAMES, default=0, least=0, most=MOST_EXPERTS)
    kinds, window = _kinds(fields, kind, family, layers)
    return Shape(
        type=kind,
        family=family,
        fields=fields,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        width=0 if family.mixer == "none" else _width(fields, kind, family, hidden, experts),
        vocabulary=fields.count("padded_vocab_size", "vocab_size"),
        experts=experts,
        experts_per_token=nested.first(*EXPERTS_PER_TOKEN_NAMES, default=1, least=0, most=experts) if experts else 0,
        expert_width=nested.first("moe_intermediate_size", "expert_ffn_hidden_size", *WIDTH_NAMES) if experts else 0,
        positions=min(
            (found for name in POSITION_NAMES if (found := fields.optional(name, most=MOST_TOKENS))), default=0
        ),
        kinds=kinds,
        window_tokens=window,
    )


def _layers(fields: Fields) -> int:
    """How many decoder layers; LongCat's num_hidden_layers counts attentions, of which a layer has two."""
    pattern = fields.words("layers_block_type") or fields.text("hybrid_override_pattern")
    default = len(pattern) or None
    if default and default > MOST_LAYERS:
        raise fault(f"the pattern of layers has {default} entries")
    if fields.has("num_layers"):
        return fields.count("num_layers", most=MOST_LAYERS)
    return fields.count("num_hidden_layers", "n_layer", "n_layers", default=default, most=MOST_LAYERS)


def _kv_heads(fields: Fields, kind: str, heads: int) -> int:
    """KV heads; models of the first years say "multi_query" for one shared head."""
    new_falcon = fields.flag("new_decoder_architecture")
    if kind in ("falcon", "gpt_bigcode") and not new_falcon and fields.flag("multi_query", default=True):
        return 1
    if kind == "chatglm" and not fields.flag("multi_query_attention"):
        return heads
    nested = fields.section("attn_config")
    if nested and (found := nested.optional("kv_n_heads", most=MOST_HEADS)):
        return found
    return fields.count(*KV_HEAD_NAMES, default=heads, most=MOST_HEADS)


def _head_dim(fields: Fields, family: Family, hidden: int, heads: int) -> int:
    found = fields.optional("head_dim", "kv_channels", "attention_head_dim", "hidden_size_per_head", most=MOST_HEADS)
    return found or family.head_dim or divided(hidden, heads, "hidden size per query head")


def _width(fields: Fields, kind: str, family: Family, hidden: int, experts: int) -> int:
    """Intermediate size of a dense layer; 0 for a mixture that names only the width of its experts."""
    nested = fields.section("ffn_config")
    if nested and (found := nested.optional("ffn_hidden_size")):
        return found
    if kind == "llama4_text":
        return fields.count("intermediate_size_mlp", *WIDTH_NAMES)
    if kind in WIDTH_ELSEWHERE:
        return fields.first(*WIDTH_NAMES, default=0, least=0)
    if family.mlp_factor and not fields.has(*WIDTH_NAMES):
        return family.mlp_factor * hidden
    if experts and not fields.has(*WIDTH_NAMES):
        return 0
    return fields.first(*WIDTH_NAMES)


_KINDS: dict[str, LayerKind] = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "state",
    "mamba": "state",
    "conv": "state",
    "deepseek_sparse_attention": "full",
}


def _kinds(fields: Fields, kind: str, family: Family, layers: int) -> tuple[tuple[LayerKind, ...], int]:
    """The kind of each layer, and the window of those that have one.

    vLLM gives `sliding_window` to every layer when there is no `layer_types` (`create_engine_config`, 0.33).
    """
    window = fields.count("sliding_window", default=family.window, least=0, most=MOST_TOKENS)
    if "sliding_window" in fields.values and fields.values["sliding_window"] is None:
        window = 0
    if not fields.flag("use_sliding_window", default=True):
        window = 0
    kinds: tuple[LayerKind, ...]
    if kind == "llama4_text":
        kinds = _llama4(fields, layers)
    elif (named := fields.words("layer_types", length=None if kind in COUNT_DRAFTS else layers)) is not None:
        kinds = tuple(_named(name) for name in named[:layers])
        if len(kinds) < layers:
            raise fault(f"layer_types has {len(named)} entries for {layers} layers")
    elif kind in INTERVALS or fields.has("full_attention_interval"):
        every = fields.count("full_attention_interval", default=4, most=MOST_LAYERS)
        kinds = tuple("state" if (index + 1) % every else "full" for index in range(layers))
    elif family.full_every and window:
        every = fields.count("sliding_window_pattern", "_sliding_window_pattern", default=family.full_every)
        kinds = tuple("sliding" if (index + 1) % every else "full" for index in range(layers))
    else:
        kinds = ("sliding" if window else "full",) * layers
    if not window:
        kinds = tuple("full" if kind == "sliding" else kind for kind in kinds)
    if "chunked" in kinds:
        window = fields.count("attention_chunk_size", default=8192, most=MOST_TOKENS)
    return kinds, window + family.window_extra if window else 0


def _llama4(fields: Fields, layers: int) -> tuple[LayerKind, ...]:
    """Layers with rotary positions attend within a chunk, the others to everything (vLLM `Llama4Attention`)."""
    if fields.has("no_rope_layers") and (rotary := fields.counts("no_rope_layers", length=layers, most=1)):
        return tuple("chunked" if found else "full" for found in rotary)
    return tuple("chunked" if (index + 1) % 4 else "full" for index in range(layers))


def _named(name: str) -> LayerKind:
    if name not in _KINDS:
        raise fault(f"layer_types names a kind of layer that is not known: {shown(name)}")
    return _KINDS[name]
