"""What each layer caches, family by family."""

from __future__ import annotations

import pytest
from tests.analysis.ledger.geometry import configs
from tests.analysis.ledger.geometry.configs import dense
from tests.analysis.ledger.geometry.reading import kinds, read

from llmedic.errors import InputError
from llmedic.model.geometry import CacheLayer, StateTensor


def test_every_layer_of_a_plain_model_keeps_everything() -> None:
    shape = read(configs.LLAMA_8B)
    assert shape.layers == (CacheLayer(kind="full", kv_heads=8, head_dim=128),) * 32
    assert not shape.unsure


def test_layers_slide_as_layer_types_says() -> None:
    shape = read(configs.GPT_OSS_20B)
    assert shape.layers[0] == CacheLayer(kind="sliding", kv_heads=8, head_dim=64, window_tokens=128)
    assert shape.layers[1] == CacheLayer(kind="full", kv_heads=8, head_dim=64)
    assert kinds(shape) == {"sliding": 12, "full": 12}


def test_the_pattern_of_a_family_without_layer_types() -> None:
    assert kinds(read(configs.GEMMA3_27B)) == {"sliding": 52, "full": 10}
    assert kinds(read(dense("gemma2", 26, 2304, 8, 4, 9216, 256000))) == {"sliding": 13, "full": 13}
    assert read(dense("gemma2", 26, 2304, 8, 4, 9216, 256000)).layers[0].window_tokens == 4096  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"sliding_window": 4096}, "sliding"),
        ({"sliding_window": None}, "full"),
        ({"sliding_window": 0}, "full"),
        ({"sliding_window": 4096, "use_sliding_window": False}, "full"),
    ],
)
def test_a_window_for_all_layers(fields: dict[str, object], kind: str) -> None:
    assert kinds(read(dense("mistral", 4, 4096, 32, 8, 14336, 32000, **fields))) == {kind: 4}


def test_a_chunk_for_layers_with_rotary_positions() -> None:
    shape = read(configs.LLAMA4_SCOUT)
    assert kinds(shape) == {"chunked": 36, "full": 12}
    assert shape.layers[0] == CacheLayer(kind="chunked", kv_heads=8, head_dim=128, window_tokens=8192)
    assert shape.layers[3] == CacheLayer(kind="full", kv_heads=8, head_dim=128)


def test_one_latent_vector_for_all_heads() -> None:
    assert read(configs.DEEPSEEK_V3).layers == (CacheLayer(kind="mla", latent_dim=576),) * 61
    assert read(configs.DEEPSEEK_V32).layers[0] == CacheLayer(kind="mla", latent_dim=576, index_dim=128)


def test_an_indexer_shared_between_layers_is_cached_once() -> None:
    kinds = ["full", "full", "full"] + ["shared"] * 58
    shape = read(configs.DEEPSEEK_V32 | {"model_type": "glm_moe_dsa", "indexer_types": kinds})
    assert [layer.index_dim for layer in shape.layers if layer] == [128] * 3 + [0] * 58


def test_layers_that_read_an_earlier_cache_have_none() -> None:
    shape = read(configs.GEMMA4_E2B)
    assert kinds(shape) == {"sliding": 12, "full": 3, "nothing": 20}
    assert shape.layers[4] == CacheLayer(kind="full", kv_heads=1, head_dim=512)
    assert shape.layers[3] == CacheLayer(kind="sliding", kv_heads=1, head_dim=256, window_tokens=512)


def test_full_layers_with_heads_of_their_own() -> None:
    shape = read(configs.GEMMA4_31B)
    assert shape.layers[5] == CacheLayer(kind="full", kv_heads=4, head_dim=512)
    assert shape.layers[0] == CacheLayer(kind="sliding", kv_heads=16, head_dim=256, window_tokens=1024)


def test_a_delta_net_keeps_a_convolution_and_a_state() -> None:
    shape = read(configs.QWEN3_NEXT)
    assert kinds(shape) == {"state": 36, "full": 12}
    conv = StateTensor(name="conv", elements=8192 * 3, elements_per_draft=8192)
    assert shape.layers[0] == CacheLayer(kind="state", state=(conv, StateTensor(name="ssm", elements=32 * 128 * 128)))
    later = read(configs.QWEN35_27B).layers[0]
    assert later is not None
    assert later.state[1] == StateTensor(name="ssm", elements=48 * 128 * 128, bytes_each=4)


def test_mamba2_repeats_groups_that_are_too_few() -> None:
    layer = read(configs.GRANITE_TINY).layers[0]
    assert layer is not None
    assert layer.state == (
        StateTensor(name="conv", elements=3072 * 3, elements_per_draft=3072),
        StateTensor(name="conv groups", elements=256 * 3, elements_per_draft=256, shares=1),
        StateTensor(name="ssm", elements=48 * 64 * 128),
    )


def test_nemotron_keeps_its_state_in_float32() -> None:
    shape = read(configs.NEMOTRON_NANO)
    assert kinds(shape) == {"state": 23, "nothing": 23, "full": 6}
    assert shape.layers[0] is not None
    assert shape.layers[0].state[-1].bytes_each == 4
    narrow = read(configs.NEMOTRON_NANO | {"mamba_ssm_cache_dtype": "bfloat16"}).layers[0]
    assert narrow is not None
    assert narrow.state[-1].bytes_each == 2


def test_mamba1_beside_attention() -> None:
    shape = read(configs.JAMBA)
    assert kinds(shape) == {"state": 28, "full": 4}
    assert shape.layers[0] == CacheLayer(
        kind="state",
        state=(
            StateTensor(name="conv", elements=8192 * 3, elements_per_draft=8192),
            StateTensor(name="ssm", elements=8192 * 16),
        ),
    )


def test_two_caches_in_a_layer_are_two_entries() -> None:
    config = dense(
        "falcon_h1",
        4,
        1024,
        8,
        2,
        2048,
        32784,
        head_dim=128,
        mamba_d_ssm=1536,
        mamba_n_heads=24,
        mamba_d_head=64,
        mamba_d_state=128,
        mamba_n_groups=1,
        mamba_d_conv=4,
    )
    assert [layer.kind for layer in read(config).layers if layer] == ["full", "state"] * 4


def test_a_short_convolution() -> None:
    config = dense(
        "lfm2", 4, 2048, 32, 8, 12288, 65536, conv_L_cache=3, layer_types=["conv", "conv", "full_attention", "conv"]
    )
    shape = read(config)
    assert shape.layers[0] == CacheLayer(
        kind="state", state=(StateTensor(name="conv", elements=4096, elements_per_draft=2048),)
    )
    assert shape.layers[2] == CacheLayer(kind="full", kv_heads=8, head_dim=64)


def test_lightning_attention() -> None:
    config = dense(
        "minimax_text_01", 8, 6144, 64, 8, 9216, 200064, head_dim=128, num_local_experts=32, num_experts_per_tok=2,
        attn_type_list=[0, 0, 0, 0, 0, 0, 0, 1],
    )  # fmt: skip
    shape = read(config)
    assert kinds(shape) == {"state": 7, "full": 1}
    assert shape.layers[0] == CacheLayer(kind="state", state=(StateTensor(name="kv", elements=64 * 128 * 128),))


def test_kimi_linear_counts_its_layers_from_one() -> None:
    config = configs.DEEPSEEK_V3 | {
        "model_type": "kimi_linear",
        "num_hidden_layers": 4,
        "q_lora_rank": None,
        "num_nextn_predict_layers": 0,
        "linear_attn_config": {
            "kda_layers": [1, 2, 3],
            "full_attn_layers": [4],
            "num_heads": 32,
            "head_dim": 128,
            "short_conv_kernel_size": 4,
        },
    }
    shape = read(config)
    assert [layer.kind for layer in shape.layers if layer] == ["state", "state", "state", "mla"]
    assert shape.layers[0] is not None
    assert shape.layers[0].state == (
        StateTensor(name="conv", elements=3 * 4096 * 3, elements_per_draft=3 * 4096),
        StateTensor(name="ssm", elements=32 * 128 * 128, bytes_each=4),
    )


def test_values_narrower_than_keys() -> None:
    config = dense(
        "mimo_v2_flash", 2, 4096, 64, 4, 16384, 152576, head_dim=192, v_head_dim=128, sliding_window_size=128,
        hybrid_layer_pattern=[0, 1], swa_num_attention_heads=64, swa_num_key_value_heads=8, swa_head_dim=192,
        swa_v_head_dim=128, n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=2048,
        moe_layer_freq=[0, 1],
    )  # fmt: skip
    assert read(config).layers == (
        CacheLayer(kind="full", kv_heads=4, head_dim=192, value_dim=128),
        CacheLayer(kind="sliding", kv_heads=8, head_dim=192, value_dim=128, window_tokens=128),
    )


def test_a_pruned_model_says_what_each_block_has() -> None:
    def block(group: int, factor: float) -> dict[str, object]:
        return {
            "attention": {"no_op": not group, "n_heads_in_group": group or None},
            "ffn": {"no_op": not factor, "ffn_mult": factor or None},
        }

    blocks = [block(8, 5.25), block(0, 2.625), block(16, 0)]
    config = dense("nemotron-nas", 3, 8192, 64, 8, 1, 128256, block_configs=blocks)
    shape = read(config | {"num_key_value_heads": None, "intermediate_size": None})
    assert [layer.kv_heads if layer else 0 for layer in shape.layers] == [8, 0, 4]
    assert [sum(p.parameters for p in shape.weights if p.layer == i and p.name == "mlp") for i in range(3)] == [
        3 * 8192 * 28672,
        3 * 8192 * 14336,
        0,
    ]


def test_encoders_cache_nothing() -> None:
    bert = dense("bert", 12, 768, 12, 12, 3072, 30522, max_position_embeddings=512, type_vocab_size=2)
    assert kinds(read(bert)) == {"nothing": 12}
    assert kinds(read(configs.LLAMA_8B | {"is_causal": False})) == {"nothing": 32}


def test_what_a_nested_section_leaves_out_is_the_default_of_its_type() -> None:
    shape = read(configs.LLAVA_16)
    assert shape.layers == (CacheLayer(kind="full", kv_heads=8, head_dim=128),) * 32
    assert shape.multimodal
    small = read(configs.GEMMA3_27B | {"text_config": {"model_type": "gemma3_text", "num_hidden_layers": 34}})
    assert (small.query_heads, small.vocabulary) == (8, 262208)


def test_the_architecture_tells_the_type_where_the_type_does_not() -> None:
    config = {**configs.QWEN3_30B, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "somebody's"}
    assert read(config).layers == read(configs.QWEN3_30B).layers
    assert not read(config).unsure


def test_an_unknown_type_of_usual_shape_is_computed_and_marked() -> None:
    shape = read(configs.LLAMA_8B | {"model_type": "brand_new"})
    assert kinds(shape) == {"full": 32}
    assert "brand_new" in shape.unsure[0]


@pytest.mark.parametrize(
    "field",
    ["kv_lora_rank", "compress_ratios", "mamba_d_state", "cross_attention_layers", "block_types", "swa_head_dim"],
)
def test_a_layout_that_the_type_does_not_explain_is_refused(field: str) -> None:
    for kind in ("llama", "brand_new"):
        with pytest.raises(InputError, match=field):
            read(configs.LLAMA_8B | {"model_type": kind, field: 512})


def test_draft_layers_are_beside_the_model() -> None:
    shape = read(configs.DEEPSEEK_V3)
    assert shape.draft_layers == (CacheLayer(kind="mla", latent_dim=576, draft=True),)
    # Printed for the multi-token prediction module: 14 B, of which 1.9 B are copies of embedding and head.
    assert sum(part.parameters for part in shape.draft_weights) == pytest.approx(11.5e9, rel=0.02)
    assert {part.name for part in shape.draft_weights} == {"draft"}
    assert read(configs.QWEN35_27B).draft_layers == (CacheLayer(kind="full", kv_heads=4, head_dim=256, draft=True),)
    assert not read(configs.LLAMA_8B).draft_layers


def test_an_indexer_beside_keys_and_values_is_an_entry_of_its_own() -> None:
    config = dense(
        "minimax_m3_vl_text", 2, 6144, 64, 4, 3072, 200064, head_dim=128, dense_intermediate_size=12288,
        num_local_experts=8, num_experts_per_tok=4, moe_layer_freq=[0, 1], shared_intermediate_size=3072,
        sparse_attention_config={
            "sparse_attention_freq": [0, 1], "sparse_index_dim": 128, "sparse_num_index_heads": 4,
        },
    )  # fmt: skip
    attended = CacheLayer(kind="full", kv_heads=4, head_dim=128)
    assert read(config).layers == (attended, attended, CacheLayer(kind="mla", latent_dim=128))


def test_sliding_layers_with_query_heads_of_their_own() -> None:
    config = dense(
        "step3p5", 2, 4096, 64, 8, 11264, 128896, head_dim=128, sliding_window=512, moe_layers_enum="1",
        layer_types=["full_attention", "sliding_attention", "sliding_attention"], moe_num_experts=8, moe_top_k=2,
        moe_intermediate_size=1280, share_expert_dim=1280, use_head_wise_attn_gate=True,
        attention_other_setting={"attention_type": "sliding_attention", "num_attention_heads": 96},
    )  # fmt: skip
    shape = read(config)
    assert shape.layers[1] == CacheLayer(kind="sliding", kv_heads=8, head_dim=128, window_tokens=512)
    queries = [
        next(part.parameters for part in shape.weights if part.layer == i and part.name == "attention") for i in (0, 1)
    ]
    assert queries == [heads * (2 * 4096 * 128 + 4096) for heads in (64, 96)]
    assert {part.name for part in shape.weights if part.layer == 1} >= {"experts", "shared experts"}


def test_a_section_without_a_type_is_a_llama_only_where_that_is_so() -> None:
    section = {"vocab_size": 32064}
    assert len(read({"model_type": "llava", "text_config": section}).layers) == 32
    with pytest.raises(InputError, match="missing"):
        read({"model_type": "somebody_vl", "text_config": section})


def test_a_window_that_keeps_one_token_more() -> None:
    shape = read(dense("cohere2", 4, 4096, 32, 8, 14336, 256000, sliding_window=4096))
    assert [layer.window_tokens for layer in shape.layers if layer] == [4097, 4097, 4097, 0]
