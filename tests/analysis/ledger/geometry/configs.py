"""Configurations of well-known models, without the fields that memory does not follow from."""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]


def dense(
    kind: str, layers: int, hidden: int, heads: int, kv_heads: int, width: int, words: int, **more: Any
) -> Config:
    """A decoder in the fields that most models share."""
    return {
        "model_type": kind,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": width,
        "vocab_size": words,
        "torch_dtype": "bfloat16",
        **more,
    }


LLAMA_8B = dense("llama", 32, 4096, 32, 8, 14336, 128256, max_position_embeddings=131072)
QWEN3_8B = dense("qwen3", 36, 4096, 32, 8, 12288, 151936, head_dim=128, tie_word_embeddings=False)
QWEN25_7B = dense(
    "qwen2", 28, 3584, 28, 4, 18944, 152064, use_sliding_window=False, sliding_window=131072, max_window_layers=28
)
MIXTRAL = dense("mixtral", 32, 4096, 32, 8, 14336, 32000, num_local_experts=8, num_experts_per_tok=2)
QWEN3_30B = dense(
    "qwen3_moe",
    48,
    2048,
    32,
    4,
    6144,
    151936,
    head_dim=128,
    num_experts=128,
    num_experts_per_tok=8,
    moe_intermediate_size=768,
    decoder_sparse_step=1,
    mlp_only_layers=[],
)
GPT_OSS_20B = dense(
    "gpt_oss",
    24,
    2880,
    64,
    8,
    2880,
    201088,
    head_dim=64,
    num_local_experts=32,
    num_experts_per_tok=4,
    sliding_window=128,
    layer_types=["sliding_attention", "full_attention"] * 12,
    attention_bias=True,
    quantization_config={
        "quant_method": "mxfp4",
        "modules_to_not_convert": [
            "model.layers.*.self_attn",
            "model.layers.*.mlp.router",
            "model.embed_tokens",
            "lm_head",
        ],
    },
)
DEEPSEEK_V3 = dense(
    "deepseek_v3",
    61,
    7168,
    128,
    128,
    18432,
    129280,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    n_routed_experts=256,
    n_shared_experts=1,
    num_experts_per_tok=8,
    moe_intermediate_size=2048,
    first_k_dense_replace=3,
    moe_layer_freq=1,
    num_nextn_predict_layers=1,
)
DEEPSEEK_V32 = DEEPSEEK_V3 | {
    "model_type": "deepseek_v32",
    "index_topk": 2048,
    "index_head_dim": 128,
    "index_n_heads": 64,
}
GEMMA3_27B: Config = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "head_dim": 128,
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "num_attention_heads": 32,
        "num_hidden_layers": 62,
        "num_key_value_heads": 16,
        "sliding_window": 1024,
    },
    "vision_config": {
        "model_type": "siglip_vision_model",
        "hidden_size": 1152,
        "image_size": 896,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "patch_size": 14,
    },
}
GEMMA4_E2B = dense(
    "gemma4_text",
    35,
    1536,
    8,
    1,
    6144,
    262144,
    head_dim=256,
    global_head_dim=512,
    num_kv_shared_layers=20,
    hidden_size_per_layer_input=256,
    sliding_window=512,
    use_double_wide_mlp=True,
    layer_types=(["sliding_attention"] * 4 + ["full_attention"]) * 7,
)
GEMMA4_31B = dense(
    "gemma4_text",
    60,
    5376,
    32,
    16,
    21504,
    262144,
    head_dim=256,
    global_head_dim=512,
    num_global_key_value_heads=4,
    attention_k_eq_v=True,
    hidden_size_per_layer_input=0,
    sliding_window=1024,
    layer_types=(["sliding_attention"] * 5 + ["full_attention"]) * 10,
)
QWEN3_NEXT = dense(
    "qwen3_next",
    48,
    2048,
    16,
    2,
    5120,
    151936,
    head_dim=256,
    full_attention_interval=4,
    linear_num_key_heads=16,
    linear_num_value_heads=32,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    linear_conv_kernel_dim=4,
    num_experts=512,
    num_experts_per_tok=10,
    moe_intermediate_size=512,
    shared_expert_intermediate_size=512,
)
QWEN35_27B: Config = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "model_type": "qwen3_5",
    "tie_word_embeddings": False,
    "text_config": dense(
        "qwen3_5_text",
        64,
        5120,
        24,
        4,
        17408,
        248320,
        head_dim=256,
        linear_num_key_heads=16,
        linear_num_value_heads=48,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        linear_conv_kernel_dim=4,
        mamba_ssm_dtype="float32",
        mtp_num_hidden_layers=1,
        layer_types=(["linear_attention"] * 3 + ["full_attention"]) * 16,
    ),
    "vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "out_hidden_size": 5120},
}
LLAMA4_SCOUT: Config = {
    "model_type": "llama4",
    "text_config": dense(
        "llama4_text",
        48,
        5120,
        40,
        8,
        8192,
        202048,
        head_dim=128,
        intermediate_size_mlp=16384,
        num_local_experts=16,
        num_experts_per_tok=1,
        interleave_moe_layer_step=1,
        attention_chunk_size=8192,
        no_rope_layers=[1, 1, 1, 0] * 12,
    ),
}
GRANITE_MICRO = dense(
    "granitemoehybrid",
    40,
    2560,
    40,
    8,
    8192,
    100352,
    layer_types=["attention"] * 40,
    num_local_experts=0,
    num_experts_per_tok=0,
    shared_intermediate_size=8192,
    tie_word_embeddings=True,
)
GRANITE_TINY = dense(
    "granitemoehybrid",
    40,
    1536,
    12,
    4,
    512,
    100352,
    layer_types=(["mamba"] * 5 + ["attention"] + ["mamba"] * 4) * 4,
    num_local_experts=64,
    num_experts_per_tok=6,
    shared_intermediate_size=1024,
    tie_word_embeddings=True,
    mamba_n_heads=48,
    mamba_d_head=64,
    mamba_d_state=128,
    mamba_d_conv=4,
    mamba_n_groups=1,
)
NEMOTRON_NANO = dense(
    "nemotron_h",
    52,
    2688,
    32,
    2,
    1856,
    131072,
    head_dim=128,
    hybrid_override_pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    mamba_num_heads=64,
    mamba_head_dim=64,
    ssm_state_size=128,
    n_groups=8,
    conv_kernel=4,
    n_routed_experts=128,
    n_shared_experts=1,
    num_experts_per_tok=6,
    moe_intermediate_size=1856,
    moe_shared_expert_intermediate_size=3712,
)
JAMBA = dense(
    "jamba",
    32,
    4096,
    32,
    8,
    14336,
    65536,
    num_experts=16,
    num_experts_per_tok=2,
    attn_layer_period=8,
    attn_layer_offset=4,
    expert_layer_period=2,
    expert_layer_offset=1,
    mamba_d_state=16,
    mamba_d_conv=4,
    mamba_expand=2,
    mamba_dt_rank=256,
)
FALCON_7B: Config = {
    "model_type": "falcon",
    "hidden_size": 4544,
    "num_attention_heads": 71,
    "num_hidden_layers": 32,
    "vocab_size": 65024,
    "multi_query": True,
    "parallel_attn": True,
    "bias": False,
}
GPT2: Config = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}
CHATGLM3: Config = {
    "model_type": "chatglm",
    "architectures": ["ChatGLMModel"],
    "num_layers": 28,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "kv_channels": 128,
    "multi_query_attention": True,
    "multi_query_group_num": 2,
    "ffn_hidden_size": 13696,
    "padded_vocab_size": 65024,
    "add_qkv_bias": True,
    "seq_length": 8192,
    "torch_dtype": "float16",
}
LLAVA_16: Config = {
    "architectures": ["LlavaNextForConditionalGeneration"],
    "model_type": "llava_next",
    "torch_dtype": "float16",
    "text_config": {
        "model_type": "mistral",
        "intermediate_size": 14336,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "vocab_size": 32064,
    },
    "vision_config": {
        "model_type": "clip_vision_model",
        "hidden_size": 1024,
        "image_size": 336,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "patch_size": 14,
    },
}
DBRX: Config = {
    "model_type": "dbrx",
    "d_model": 6144,
    "n_heads": 48,
    "n_layers": 40,
    "max_seq_len": 32768,
    "vocab_size": 100352,
    "attn_config": {"kv_n_heads": 8},
    "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
}
MPT_7B: Config = {
    "model_type": "mpt",
    "d_model": 4096,
    "n_heads": 32,
    "n_layers": 32,
    "max_seq_len": 2048,
    "vocab_size": 50432,
}
BLOOM: Config = {"model_type": "bloom", "hidden_size": 14336, "n_head": 112, "n_layer": 70, "vocab_size": 250880}
OPT_67B: Config = {
    "model_type": "opt",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "ffn_dim": 16384,
    "vocab_size": 50272,
    "max_position_embeddings": 2048,
}
PHI35_MOE = dense(
    "phimoe",
    32,
    4096,
    32,
    8,
    6400,
    32064,
    num_local_experts=16,
    num_experts_per_tok=2,
    attention_bias=True,
    lm_head_bias=True,
)
FALCON_40B: Config = FALCON_7B | {
    "hidden_size": 8192,
    "num_attention_heads": 128,
    "num_hidden_layers": 60,
    "num_kv_heads": 8,
    "new_decoder_architecture": True,
}
