"""GGUF metadata in the words of config.json: as llama.cpp's converter writes it for well-known models."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.analysis.ledger import geometry
from llmedic.collect.modelfiles import ggufwords
from llmedic.errors import InputError
from llmedic.knowledge import models
from llmedic.model.deployment import ModelFacts


def written(arch: str, keys: dict[str, Any], tokens: int = 0) -> dict[str, Any]:
    """Metadata of a file: the keys of the architecture under its name."""
    own = {f"{arch}.{key.replace('__', '.')}": value for key, value in keys.items()}
    return {"general.architecture": arch, **own} | ({"tokenizer.ggml.tokens.length": tokens} if tokens else {})


def heads(count: object, kv: object, key: int = 0) -> dict[str, Any]:
    found = {"attention__head_count": count, "attention__head_count_kv": kv}
    return found | ({"attention__key_length": key, "attention__value_length": key} if key else {})


LLAMA_8B = written(
    "llama",
    {
        "block_count": 32, "context_length": 131072, "embedding_length": 4096, "feed_forward_length": 14336,
        **heads(32, 8), "rope__freq_base": 500000.0, "rope__dimension_count": 128, "vocab_size": 128256,
    },
)  # fmt: skip
QWEN3_MOE = written(
    "qwen3moe",
    {
        "block_count": 48, "context_length": 40960, "embedding_length": 2048, "feed_forward_length": 6144,
        **heads(32, 4, 128), "expert_count": 128, "expert_used_count": 8, "expert_feed_forward_length": 768,
    },
    tokens=151936,
)  # fmt: skip
GPT_OSS = written(
    "gpt-oss",
    {
        "block_count": 24, "context_length": 131072, "embedding_length": 2880, "feed_forward_length": 2880,
        **heads(64, 8, 64), "attention__sliding_window": 128, "expert_count": 32, "expert_used_count": 4,
        "expert_feed_forward_length": 2880, "rope__scaling__type": "yarn", "rope__scaling__factor": 32.0,
        "rope__scaling__original_context_length": 4096,
    },
    tokens=201088,
)  # fmt: skip
QWEN3_NEXT = written(
    "qwen3next",
    {
        "block_count": 49, "nextn_predict_layers": 1, "context_length": 262144, "embedding_length": 2048,
        "feed_forward_length": 5120, **heads(16, 2, 256), "expert_count": 512, "expert_used_count": 10,
        "expert_feed_forward_length": 512, "expert_shared_feed_forward_length": 512, "ssm__conv_kernel": 4,
        "ssm__state_size": 128, "ssm__group_count": 16, "ssm__time_step_rank": 32, "ssm__inner_size": 4096,
        "full_attention_interval": 4,
    },
    tokens=151936,
)  # fmt: skip
KIMI_K2 = written(
    "deepseek2",
    {
        "block_count": 61, "context_length": 131072, "embedding_length": 7168, "feed_forward_length": 18432,
        "attention__head_count": 64, "attention__head_count_kv": 1, "attention__key_length": 576,
        "attention__value_length": 512, "attention__key_length_mla": 192, "attention__value_length_mla": 128,
        "attention__kv_lora_rank": 512, "attention__q_lora_rank": 1536, "rope__dimension_count": 64,
        "expert_count": 384, "expert_used_count": 8, "expert_feed_forward_length": 2048, "expert_shared_count": 1,
        "expert_gating_func": 2, "leading_dense_block_count": 1, "vocab_size": 163840,
    },
)  # fmt: skip
LLAMA_4 = written(
    "llama4",
    {
        "block_count": 48, "context_length": 10485760, "embedding_length": 5120, "feed_forward_length": 16384,
        **heads(40, 8, 128), "expert_count": 16, "expert_used_count": 1, "expert_feed_forward_length": 8192,
        "interleave_moe_layer_step": 1, "vocab_size": 202048,
    },
)  # fmt: skip
GEMMA_4 = written(
    "gemma4",
    {
        "block_count": 60, "context_length": 262144, "embedding_length": 5376, "feed_forward_length": 21504,
        **heads(32, [16, 16, 16, 16, 16, 4] * 10, 512), "attention__key_length_swa": 256,
        "attention__value_length_swa": 256, "attention__sliding_window": 1024, "attention__shared_kv_layers": 0,
        "attention__sliding_window_pattern": [True, True, True, True, True, False] * 10,
        "embedding_length_per_layer_input": 0,
    },
    tokens=262144,
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "metadata"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", LLAMA_8B),
        ("Qwen/Qwen3-30B-A3B", QWEN3_MOE),
        ("openai/gpt-oss-20b", GPT_OSS),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", QWEN3_NEXT),
        ("moonshotai/Kimi-K2-Instruct", KIMI_K2),
        ("google/gemma-4-31B-it", GEMMA_4),
    ],
)
def test_the_same_caches_as_from_the_models_own_configuration(name: str, metadata: dict[str, Any]) -> None:
    known = models.find(name)
    assert known is not None
    # Qwen3-Next derives its layer types from `full_attention_interval`.
    kinds = ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 12
    derived = {"layer_types": kinds} if name.startswith("Qwen/Qwen3-Next") else {}
    expected = geometry.of(ModelFacts(config={**known.config, **derived}))
    found = geometry.of(ModelFacts(config=ggufwords.config(metadata, tied=False)))
    assert found.layers == expected.layers
    for measure in ("hidden_size", "vocabulary", "query_heads", "mlp_width", "experts", "experts_per_token",
                    "expert_width", "positions"):  # fmt: skip
        assert getattr(found, measure) == getattr(expected, measure), measure


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (
            written("llama", {
                "block_count": 32, "feed_forward_length": 14336, "expert_count": 8, "expert_used_count": 2,
            }),
            {
                "model_type": "mixtral", "num_hidden_layers": 32, "intermediate_size": 14336, "num_local_experts": 8,
                "num_experts_per_tok": 2, "tie_word_embeddings": True,
            },
        ),
        (GPT_OSS, {
            "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096},
            "sliding_window": 128, "num_local_experts": 32, "intermediate_size": 2880, "head_dim": 64,
        }),
        (LLAMA_4, {"intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_local_experts": 16}),
        (
            written("glm4moe", {
                "block_count": 47, "nextn_predict_layers": 1, "expert_count": 128, "expert_shared_count": 1,
                "leading_dense_block_count": 1,
            }),
            {
                "model_type": "glm4_moe", "num_hidden_layers": 46, "num_nextn_predict_layers": 1,
                "n_routed_experts": 128, "n_shared_experts": 1, "first_k_dense_replace": 1,
            },
        ),
        (
            written("deepseek2", {
                "attention__kv_lora_rank": 512, "attention__key_length": 192, "attention__value_length": 128,
                "attention__head_count": 16, "attention__head_count_kv": 16, "rope__dimension_count": 64,
                "expert_gating_func": 1,
            }),
            {
                "model_type": "deepseek_v2", "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
                "num_key_value_heads": 16,
            },
        ),
        (written("deepseek2", {"attention__indexer__key_length": 128, "attention__indexer__head_count": 64}),
         {"model_type": "deepseek_v32", "index_head_dim": 128, "index_n_heads": 64}),
        (
            written("gemma3", {"block_count": 3, "attention__sliding_window_pattern": 3}),
            {"model_type": "gemma3_text",
             "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]},
        ),
        (
            written("gemma4", {"feed_forward_length": [6144, 12288], "expert_count": 4, "expert_used_count": 2}),
            {"intermediate_size": 6144, "use_double_wide_mlp": True, "top_k_experts": 2, "enable_moe_block": True},
        ),
        (
            written("mamba", {
                "block_count": 24, "embedding_length": 768, "attention__head_count": 0, "feed_forward_length": 0,
                "ssm__inner_size": 1536, "ssm__state_size": 16, "ssm__conv_kernel": 4, "ssm__time_step_rank": 48,
            }),
            {
                "model_type": "mamba", "num_hidden_layers": 24, "state_size": 16, "conv_kernel": 4, "expand": 2,
                "time_step_rank": 48, "intermediate_size": 1536,
            },
        ),
        (
            written("mamba2", {"ssm__inner_size": 1536, "ssm__time_step_rank": 24, "ssm__group_count": 1}),
            {"num_heads": 24, "head_dim": 64, "n_groups": 1},
        ),
        (
            written("jamba", {
                "block_count": 4, "embedding_length": 8, **heads(32, [0, 0, 8, 0]), "ssm__inner_size": 16,
                "ssm__state_size": 4, "ssm__conv_kernel": 4, "ssm__time_step_rank": 2, "expert_count": 16,
            }),
            {
                "layers_block_type": ["mamba", "mamba", "attention", "mamba"], "num_key_value_heads": 8,
                "mamba_d_state": 4, "mamba_d_conv": 4, "mamba_dt_rank": 2, "mamba_expand": 2, "num_experts": 16,
            },
        ),
        (
            written("granitehybrid", {
                "block_count": 2, **heads(12, [0, 4]), "ssm__inner_size": 3072, "ssm__time_step_rank": 48,
                "ssm__state_size": 128, "ssm__conv_kernel": 4, "ssm__group_count": 1, "embedding_length": 1536,
            }),
            {
                "model_type": "granitemoehybrid", "layer_types": ["mamba", "attention"], "mamba_n_heads": 48,
                "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_expand": 2,
            },
        ),
        (
            written("falcon-h1", {"ssm__inner_size": 3072, "ssm__time_step_rank": 24, **heads(8, 2, 128)}),
            {"model_type": "falcon_h1", "mamba_d_ssm": 3072, "mamba_n_heads": 24, "mamba_d_head": 128, "head_dim": 128},
        ),
        (
            written("nemotron_h", {
                "block_count": 3, **heads(40, [0, 0, 8]), "feed_forward_length": [0, 15680, 0],
                "ssm__inner_size": 10240, "ssm__time_step_rank": 128, "ssm__group_count": 8,
            }),
            {"hybrid_override_pattern": "M-*", "mamba_num_heads": 128, "mamba_head_dim": 80, "n_groups": 8,
             "intermediate_size": 15680},
        ),
        (
            written("lfm2", {"block_count": 3, **heads(32, [0, 0, 8]), "shortconv__l_cache": 3}),
            {"layer_types": ["conv", "conv", "full_attention"], "conv_L_cache": 3, "block_auto_adjust_ff_dim": False},
        ),
        (
            written("kimi-linear", {
                "block_count": 4, "attention__head_count": 32, "attention__head_count_kv": [0, 0, 0, 1],
                "kda__head_dim": 128, "ssm__conv_kernel": 4,
            }),
            {"linear_attn_config": {
                "kda_layers": [1, 2, 3], "full_attn_layers": [4], "head_dim": 128, "num_heads": 32,
                "short_conv_kernel_size": 4,
            }},
        ),
        (
            written("qwen35", {"block_count": 3, "ssm__inner_size": 4, "nextn_predict_layers": 1,
                               "attention__recurrent_layers": [True, False, False]}),
            {"model_type": "qwen3_5_text", "layer_types": ["linear_attention", "full_attention"]},
        ),
        (written("deci", {"attention__head_count_kv": [8, 4]}), {"num_key_value_heads": [8, 4]}),
        ({"general.file_type": 15}, {"quantization_config": {"quant_method": "gguf", "file_type": "Q4_K_M"}}),
        (
            {"tokenizer.ggml.eos_token_id": 2, "tokenizer.chat_template": None},
            {"eos_token_id": 2, "tokenizer_config": {"chat_template": True}},
        ),
    ],
)  # fmt: skip
def test_words(metadata: dict[str, Any], expected: dict[str, object]) -> None:
    found = ggufwords.config(metadata, tied=True)
    assert {word: found.get(word) for word in expected} == expected


def test_what_is_not_there_is_not_said() -> None:
    assert ggufwords.config({}, tied=False) == {"model_type": "", "tie_word_embeddings": False}
    assert "quantization_config" not in ggufwords.config({"general.file_type": 1}, tied=False)
    heads_of_mamba = ggufwords.config(written("mamba", {"attention__head_count": 0}), tied=True)
    assert "num_attention_heads" not in heads_of_mamba


KEYS = sorted({key for keys in (GPT_OSS, QWEN3_NEXT, KIMI_K2, GEMMA_4) for key in keys})
NAMES = [key.partition(".")[2] for key in KEYS if not key.startswith(("general", "tokenizer"))]


@given(
    st.sampled_from(["llama", "gemma4", "qwen3next", "deepseek2", "nemotron_h", "jamba", "kimi-linear", "lfm2"]),
    st.dictionaries(
        st.sampled_from(NAMES),
        st.none()
        | st.integers(0, 2**64)
        | st.floats()
        | st.booleans()
        | st.text(max_size=3)
        | st.lists(st.integers(0, 9)),
    ),
)
def test_any_metadata(arch: str, keys: dict[str, object]) -> None:
    words = ggufwords.config({"general.architecture": arch, **{f"{arch}.{key}": keys[key] for key in keys}}, tied=True)
    assert len(words.get("layer_types", [])) <= ggufwords.MAX_LAYERS
    try:
        geometry.of(ModelFacts(config=words))
    except InputError as refused:
        assert refused.hint  # noqa: PT017
