"""What the metadata of a GGUF file says, in the words of config.json.

Source: llama.cpp `gguf-py/gguf/constants.py` (`Keys`, `MODEL_ARCH_NAMES`) and `conversion/*.py`, read backwards;
2026-11-30. What a model class knows by itself (the window pattern of Gemma 2, say) is in neither file and stays out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmedic.collect.modelfiles import ggml
from llmedic.collect.modelfiles.gguf import Metadata

MAX_LAYERS = 4_096

MODEL_TYPES = {
    "command-r": "cohere", "deepseek": "deepseek", "deepseek2": "deepseek_v2", "deepseek32": "deepseek_v32",
    "deepseek4": "deepseek_v4", "ernie4_5-moe": "ernie4_5_moe",
    "exaone-moe": "exaone_moe", "falcon-h1": "falcon_h1", "gemma3": "gemma3_text", "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text", "glm-dsa": "glm_moe_dsa", "glm4moe": "glm4_moe", "gpt-oss": "gpt_oss",
    "gptneox": "gpt_neox", "granitehybrid": "granitemoehybrid", "hunyuan-dense": "hunyuan_v1_dense",
    "hunyuan-moe": "hunyuan_v1_moe", "kimi-linear": "kimi_linear", "lfm2moe": "lfm2_moe", "llama4": "llama4_text",
    "minimax-m2": "minimax_m2", "mistral3": "ministral3", "nemotron_h_moe": "nemotron_h", "phi2": "phi",
    "qwen2moe": "qwen2_moe", "qwen2vl": "qwen2", "qwen35": "qwen3_5_text", "qwen35moe": "qwen3_5_moe_text",
    "qwen3moe": "qwen3_moe", "qwen3next": "qwen3_next", "qwen3vl": "qwen3", "qwen3vlmoe": "qwen3_moe",
    "starcoder": "gpt_bigcode",
}  # fmt: skip
"""`general.architecture` → `model_type`, where they differ. The language part of a multimodal model is a model of its
own: its encoder is in another file (mmproj)."""

_ALL = {
    "embedding_length": "hidden_size",
    "context_length": "max_position_embeddings",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
    "attention.shared_kv_layers": "num_kv_shared_layers",
    "vocab_size": "vocab_size",
    "rope.freq_base": "rope_theta",
    "nextn_predict_layers": "num_nextn_predict_layers",
    "expert_used_count": "num_experts_per_tok",
    "expert_group_count": "n_group",
    "expert_group_used_count": "topk_group",
    "leading_dense_block_count": "first_k_dense_replace",
    "attention.indexer.head_count": "index_n_heads",
    "attention.indexer.key_length": "index_head_dim",
    "attention.indexer.top_k": "index_topk",
    "embedding_length_per_layer_input": "hidden_size_per_layer_input",
}
_SCALING = {"type": "rope_type", "factor": "factor", "original_context_length": "original_max_position_embeddings"}
_LOCAL_EXPERTS = frozenset(
    {"mixtral", "gpt_oss", "phimoe", "granitemoe", "granitemoehybrid", "llama4_text", "minimax_m2"}
)
_ROUTED_EXPERTS = frozenset(
    {"deepseek", "deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe", "glm_moe_dsa", "dots1", "nemotron_h"}
)
_QWEN_HYBRIDS = frozenset({"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"})
_WITHOUT_HEADS = {"lfm2": "conv", "lfm2_moe": "conv", "granitemoehybrid": "mamba", "jamba": "mamba"}
"""What a layer without KV heads is called; in the last two, one with them is called "attention"."""

Words = dict[str, object]


def config(metadata: Metadata, *, tied: bool) -> Words:
    """The metadata as config.json says it; `tied`: the file holds no output matrix of its own."""
    arch = str(metadata.get("general.architecture") or "")
    own = {key[len(arch) + 1 :]: value for key, value in metadata.items() if key.startswith(f"{arch}.")}
    kind = _model_type(arch, own)
    words: Words = {"model_type": kind, "tie_word_embeddings": tied}
    words |= {word: own.get(key) for key, word in _ALL.items()}
    words |= _layers(own)
    words |= _vocabulary(metadata, own)
    words |= _heads(own)
    words |= _feed_forward(kind, own)
    words |= _experts(kind, own)
    words |= _latent(own)
    words |= _state(kind, own)
    words |= _kinds(kind, own)
    words |= _scaling(own)
    words |= _quantization(metadata)
    return {word: value for word, value in words.items() if value is not None}


def _model_type(arch: str, own: Mapping[str, object]) -> str:
    if arch == "llama" and own.get("expert_count"):
        return "mixtral"
    if arch == "deepseek2" and own.get("attention.indexer.key_length"):
        return "deepseek_v32"
    if arch == "deepseek2" and own.get("expert_gating_func") == 2:  # sigmoid
        return "deepseek_v3"
    return MODEL_TYPES.get(arch, arch)


def _layers(own: Mapping[str, object]) -> Words:
    """The decoder layers; a draft head is counted among the blocks of a GGUF file, but not in config.json."""
    blocks, drafts = _number(own, "block_count"), _number(own, "nextn_predict_layers")
    return {"num_hidden_layers": blocks - drafts} if blocks else {}


def _vocabulary(metadata: Metadata, own: Mapping[str, object]) -> Words:
    words: Words = {"vocab_size": own.get("vocab_size") or metadata.get("tokenizer.ggml.tokens.length")}
    words |= {f"{name}_token_id": metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos")}
    if any(key.startswith("tokenizer.chat_template") for key in metadata):
        words["tokenizer_config"] = {"chat_template": True}
    return words


def _heads(own: Mapping[str, object]) -> Words:
    """Heads and their widths; Gemma 4 has others in its sliding layers than in its full ones."""
    words: Words = {
        "num_attention_heads": _same(own.get("attention.head_count")),
        "num_key_value_heads": _same(own.get("attention.head_count_kv")),
    }
    wide, narrow = own.get("attention.key_length"), own.get("attention.key_length_swa")
    if own.get("attention.value_length") != wide:
        words["v_head_dim"] = own.get("attention.value_length")
    if narrow and narrow != wide:
        words |= {"head_dim": narrow, "global_head_dim": wide}
        window, heads = own.get("attention.sliding_window_pattern"), own.get("attention.head_count_kv")
        if isinstance(window, list) and isinstance(heads, list):
            by_kind = dict(zip(window, heads, strict=False))
            words |= {"num_key_value_heads": by_kind.get(True), "num_global_key_value_heads": by_kind.get(False)}
            words["attention_k_eq_v"] = True  # only then have the full layers heads of their own
    return words


def _same(value: object) -> object:
    """The one number of a list that holds no other but zero, else the list; None for zero."""
    different = set(value) - {0} if isinstance(value, list) else {value}
    return (different.pop() if len(different) == 1 else value) or None


def _feed_forward(kind: str, own: Mapping[str, object]) -> Words:
    widths = own.get("feed_forward_length")
    if kind == "gemma4_text" and isinstance(widths, list) and len(set(widths)) == 2:
        return {"intermediate_size": min(widths), "use_double_wide_mlp": max(widths) == 2 * min(widths)}
    words: Words = {"intermediate_size": _same(widths)}
    if kind == "lfm2":  # the file says the adjusted width
        words["block_auto_adjust_ff_dim"] = False
    return words


def _scaling(own: Mapping[str, object]) -> Words:
    scaling = {word: own[f"rope.scaling.{key}"] for key, word in _SCALING.items() if f"rope.scaling.{key}" in own}
    return {"rope_scaling": scaling} if scaling.get("rope_type", "none") != "none" else {}


def _experts(kind: str, own: Mapping[str, object]) -> Words:
    experts, width = _number(own, "expert_count"), own.get("expert_feed_forward_length")
    used, shared_width = own.get("expert_used_count"), own.get("expert_shared_feed_forward_length")
    if not experts:
        return {}
    words: Words = {"num_experts_per_tok": used}
    if kind in _LOCAL_EXPERTS:
        words |= {"num_local_experts": experts, "shared_intermediate_size": shared_width}
        words |= {"intermediate_size": width} if width else {}
        if kind == "llama4_text":
            words["intermediate_size_mlp"] = own.get("feed_forward_length")
            words["interleave_moe_layer_step"] = own.get("interleave_moe_layer_step")
        return words
    words |= {"n_routed_experts" if kind in _ROUTED_EXPERTS else "num_experts": experts}
    words |= {"moe_intermediate_size": width, "n_shared_experts": own.get("expert_shared_count")}
    words |= {"shared_expert_intermediate_size": shared_width}
    if kind == "lfm2_moe":
        words["num_dense_layers"] = own.get("leading_dense_block_count")
    if kind == "gemma4_text":
        words |= {"enable_moe_block": True, "top_k_experts": used}
    return words


def _latent(own: Mapping[str, object]) -> Words:
    """Multi-head latent attention: older files give the widths of the heads, newer ones those of the latent beside."""
    rank, rope = _number(own, "attention.kv_lora_rank"), _number(own, "rope.dimension_count")
    if not rank:
        return {}
    key = _number(own, "attention.key_length_mla") or _number(own, "attention.key_length")
    return {
        "kv_lora_rank": rank,
        "q_lora_rank": own.get("attention.q_lora_rank"),
        "qk_rope_head_dim": rope,
        "qk_nope_head_dim": key - rope,
        "v_head_dim": own.get("attention.value_length_mla") or own.get("attention.value_length"),
        "head_dim": None,
        "num_key_value_heads": _same(own.get("attention.head_count")),
    }


def _state(kind: str, own: Mapping[str, object]) -> Words:
    """The state of recurrent layers, as each family spells it."""
    if "shortconv.l_cache" in own:
        return {"conv_L_cache": own["shortconv.l_cache"]}
    inner, heads = _number(own, "ssm.inner_size"), _number(own, "ssm.time_step_rank")
    if not inner:
        return {}
    hidden, state, kernel, groups = (
        _number(own, key) for key in ("embedding_length", "ssm.state_size", "ssm.conv_kernel", "ssm.group_count")
    )
    width, expand = inner // max(1, heads), inner // max(1, hidden)
    if kind in _QWEN_HYBRIDS:
        words: Words = {"linear_key_head_dim": state, "linear_num_key_heads": groups, "linear_num_value_heads": heads}
        return words | {"linear_value_head_dim": width, "linear_conv_kernel_dim": kernel}
    if kind == "jamba":
        return {"mamba_d_state": state, "mamba_d_conv": kernel, "mamba_dt_rank": heads, "mamba_expand": expand}
    if kind == "mamba":
        words = {"state_size": state, "conv_kernel": kernel, "time_step_rank": heads, "intermediate_size": inner}
        return words | {"expand": expand}
    if kind == "mamba2":
        words = {"state_size": state, "conv_kernel": kernel, "num_heads": heads, "head_dim": width}
        return words | {"n_groups": groups, "expand": expand}
    if kind == "nemotron_h":
        words = {"ssm_state_size": state, "conv_kernel": kernel, "mamba_num_heads": heads, "mamba_head_dim": width}
        return words | {"n_groups": groups, "expand": expand}
    words = {"mamba_d_state": state, "mamba_d_conv": kernel, "mamba_n_heads": heads, "mamba_d_head": width}
    return words | {"mamba_n_groups": groups, "mamba_d_ssm": inner, "mamba_expand": expand}


def _kinds(kind: str, own: Mapping[str, object]) -> Words:
    """What each layer is, where the file says it."""
    layers = max(0, min(_number(own, "block_count") - _number(own, "nextn_predict_layers"), MAX_LAYERS))
    heads, widths = _each(own, "attention.head_count_kv", layers), _each(own, "feed_forward_length", layers)
    if kind == "nemotron_h" and heads and widths:
        mlp = "E" if own.get("expert_count") else "-"
        pattern = ("*" if head else mlp if width else "M" for head, width in zip(heads, widths, strict=True))
        return {"hybrid_override_pattern": "".join(pattern)}
    if kind == "kimi_linear" and heads:
        return {"linear_attn_config": _kimi(own, heads)}
    if kind in _WITHOUT_HEADS and heads:
        attention = "full_attention" if kind.startswith("lfm2") else "attention"
        kinds = [attention if head else _WITHOUT_HEADS[kind] for head in heads]
        return {"layers_block_type" if kind == "jamba" else "layer_types": kinds}
    if kind in _QWEN_HYBRIDS:
        recurrent = _each(own, "attention.recurrent_layers", layers)
        every = _number(own, "full_attention_interval") or 4
        return {"layer_types": _named(recurrent or _periodic(layers, every), "linear_attention")}
    window = _each(own, "attention.sliding_window_pattern", layers)
    every = _number(own, "attention.sliding_window_pattern")
    if window or every:
        return {"layer_types": _named(window or _periodic(layers, every), "sliding_attention")}
    return {}


def _kimi(own: Mapping[str, object], heads: Sequence[object]) -> Words:
    """Layers are counted from 1."""
    return {
        "kda_layers": [layer for layer, head in enumerate(heads, 1) if not head],
        "full_attn_layers": [layer for layer, head in enumerate(heads, 1) if head],
        "head_dim": own.get("kda.head_dim"),
        "num_heads": _same(own.get("attention.head_count")),
        "short_conv_kernel_size": own.get("ssm.conv_kernel"),
    }


def _each(own: Mapping[str, object], key: str, layers: int) -> Sequence[object]:
    """The value of each layer, without those of a draft head; empty when there is none for each."""
    found = own.get(key)
    return found[:layers] if isinstance(found, list) and len(found) >= layers else ()


def _periodic(layers: int, every: int) -> Sequence[object]:
    """False for the last of every so many layers."""
    return [bool((layer + 1) % every) for layer in range(layers)]


def _named(marks: Sequence[object], marked: str) -> list[str]:
    return [marked if mark else "full_attention" for mark in marks]


def _quantization(metadata: Metadata) -> Words:
    kind = metadata.get("general.file_type")
    name = ggml.FILE_TYPES.get(kind) if isinstance(kind, int) else None
    if name in (None, "F32", "F16", "BF16"):
        return {}
    return {"quantization_config": {"quant_method": "gguf", "file_type": name}}


def _number(own: Mapping[str, object], key: str) -> int:
    """A whole number above zero, else 0."""
    found = own.get(key)
    return found if isinstance(found, int) and found > 0 else 0
