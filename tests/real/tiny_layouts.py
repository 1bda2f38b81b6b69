"""Configurations of tiny models with different caches; their weights are made up by the engine while it starts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from .engine import real_dir

COMMON: Mapping[str, object] = {
    "vocab_size": 4096,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "torch_dtype": "bfloat16",
    "hidden_act": "silu",
    "tie_word_embeddings": True,
}

LLAMA = {**COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama"}

DEEPSEEK = {
    **{key: value for key, value in COMMON.items() if key != "head_dim"},
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "num_key_value_heads": 4,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 256,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "greedy",
    "scoring_func": "softmax",
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.0,
    "moe_layer_freq": 1,
}

GEMMA = {
    **COMMON,
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "hidden_activation": "gelu_pytorch_tanh",
    "query_pre_attn_scalar": 64,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
    "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    "rope_local_base_freq": 1e4,
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
}

QWEN_NEXT = {
    **COMMON,
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "num_hidden_layers": 8,
    "full_attention_interval": 4,
    "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 2,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "decoder_sparse_step": 1,
    "moe_intermediate_size": 128,
    "shared_expert_intermediate_size": 128,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "norm_topk_prob": True,
    "mlp_only_layers": [],
    "partial_rotary_factor": 0.25,
    "attention_bias": False,
}

LFM = {
    **COMMON,
    "architectures": ["Lfm2ForCausalLM"],
    "model_type": "lfm2",
    "conv_L_cache": 3,
    "conv_bias": False,
    "conv_dim": 256,
    "conv_dim_out": 256,
    "block_dim": 256,
    "block_ff_dim": 512,
    "block_auto_adjust_ff_dim": False,
    "block_ffn_dim_multiplier": 1.0,
    "block_multiple_of": 256,
    "full_attn_idxs": [2, 5],
    "layer_types": ["conv", "conv", "full_attention"] * 2,
    "norm_eps": 1e-5,
    "block_norm_eps": 1e-5,
    "block_use_swiglu": True,
    "num_heads": 4,
}


def write(directory: Path, config: Mapping[str, object]) -> Path:
    """A model directory without weights; the tokenizer is the tiny model's."""
    directory.mkdir()
    for file in (real_dir() / "tiny").iterdir():
        if "token" in file.name or "template" in file.name:
            shutil.copy(file, directory)
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return directory
