"""The numbers of well-known models: totals as published, or as transformers 5.19 counts them from the configuration."""

from __future__ import annotations

import pytest
from tests.analysis.ledger.geometry import configs
from tests.analysis.ledger.geometry.configs import Config, dense
from tests.analysis.ledger.geometry.reading import gib, parameters, read

TOTALS: list[tuple[str, Config, int]] = [
    ("Llama-3.1-8B", configs.LLAMA_8B, 8_030_261_248),
    ("Qwen3-8B", configs.QWEN3_8B, 8_190_735_360),
    ("Qwen2.5-7B", configs.QWEN25_7B, 7_615_616_512),
    ("Mixtral-8x7B", configs.MIXTRAL, 46_702_792_704),
    ("Qwen3-30B-A3B", configs.QWEN3_30B, 30_532_122_624),
    ("gpt-oss-20b", configs.GPT_OSS_20B, 20_914_757_184),
    ("DeepSeek-V3", configs.DEEPSEEK_V3, 671_026_419_200),
    ("gemma-3-27b", configs.GEMMA3_27B, 27_432_406_640),
    ("Qwen3-Next-80B", configs.QWEN3_NEXT, 79_674_391_296),
    ("Qwen3.5-27B", configs.QWEN35_27B, 27_356_728_560),
    ("Llama-4-Scout, text", configs.LLAMA4_SCOUT, 107_769_861_120),
    ("granite-4.0-micro", configs.GRANITE_MICRO, 3_402_836_480),
    ("granite-4.0-tiny", configs.GRANITE_TINY, 6_939_037_248),
    ("Nemotron-3-Nano-30B", configs.NEMOTRON_NANO, 31_577_937_344),
    ("Jamba", configs.JAMBA, 51_570_323_328),
    ("Falcon-7B", configs.FALCON_7B, 6_921_720_704),
    ("GPT-2", configs.GPT2, 124_439_808),
    ("ChatGLM3-6B", configs.CHATGLM3, 6_243_584_000),
    ("DBRX", configs.DBRX, 131_596_523_520),
    ("MPT-7B", configs.MPT_7B, 6_649_286_656),
    ("BLOOM", configs.BLOOM, 176_247_271_424),
    ("OPT-6.7B", configs.OPT_67B, 6_658_473_984),
    ("Phi-3.5-MoE", configs.PHI35_MOE, 41_873_153_344),
    ("Falcon-40B", configs.FALCON_40B, 41_303_293_952),
    ("gemma-2-9b", dense("gemma2", 42, 3584, 16, 8, 14336, 256000), 9_241_705_984),
    ("LLaVA-1.6-Mistral", configs.LLAVA_16, 7_566_747_648),
]


@pytest.mark.parametrize(("name", "config", "total"), TOTALS, ids=[name for name, *_ in TOTALS])
def test_a_model_has_as_many_parameters_as_published(name: str, config: Config, total: int) -> None:
    assert parameters(read(config)) == total, name


def test_parts_hold_what_their_names_say() -> None:
    shape = read(configs.LLAMA_8B)
    layer = {part.name: part for part in shape.weights if part.layer == 7}
    assert layer["attention"].parameters == 2 * 4096 * 4096
    assert layer["key-value"].parameters == 2 * 4096 * 8 * 128
    assert layer["key-value"].split == "key-value"
    assert layer["mlp"].parameters == 3 * 4096 * 14336
    outside = {part.name: part.split for part in shape.weights if part.layer is None}
    assert outside == {"embedding": "vocabulary", "norm": "none", "lm head": "vocabulary"}
    assert shape.bytes_each == 2
    assert gib(shape) == pytest.approx(14.958, abs=0.001)


def test_a_tied_head_is_the_embedding() -> None:
    untied = read(configs.LLAMA_8B)
    tied = read(configs.LLAMA_8B | {"tie_word_embeddings": True})
    assert parameters(untied) - parameters(tied) == 128256 * 4096
    assert not any(part.name == "lm head" for part in tied.weights)


def test_the_outer_section_decides_whether_the_head_is_tied() -> None:
    text = configs.LLAMA_8B | {"tie_word_embeddings": True}
    assert any(
        part.name == "lm head"
        for part in read({"model_type": "llava", "tie_word_embeddings": False, "text_config": text}).weights
    )


def test_experts_are_apart_from_what_every_token_meets() -> None:
    shape = read(configs.DEEPSEEK_V3)
    assert (shape.experts, shape.experts_per_token, shape.expert_width) == (256, 8, 2048)
    names = {part.name for part in shape.weights if part.layer == 3}
    assert {"experts", "shared experts", "router"} <= names
    assert not {"experts", "router"} & {part.name for part in shape.weights if part.layer == 2}
    assert shape.mlp_width == 18432
    assert next(part.split for part in shape.weights if part.name == "experts") == "expert"


def test_weights_in_half_of_float32() -> None:
    """vLLM serves a float32 checkpoint in 16 bits; the flag decides otherwise."""
    config = configs.LLAMA_8B | {"torch_dtype": "float32"}
    assert read(config).bytes_each == 2
    assert read(config, dtype="float32").bytes_each == 4
    assert gib(read(config, dtype="float32")) == pytest.approx(2 * gib(read(config)))


def test_an_engine_may_load_less_than_the_checkpoint_ships_or_more() -> None:
    """Gemma 4: layers that read an earlier cache have no keys and values; others use the keys' matrix twice."""
    shared = {part.name for part in read(configs.GEMMA4_E2B).weights if part.layer == 20}
    assert "key-value" not in shared
    twice = next(part for part in read(configs.GEMMA4_31B).weights if part.layer == 5 and part.name == "key-value")
    assert twice.parameters == 5376 * 4 * 512
    assert twice.bytes == 2 * 2 * 5376 * 4 * 512


def test_odd_names_of_the_first_years() -> None:
    shape = read(configs.CHATGLM3)
    assert (shape.positions, shape.query_heads, shape.vocabulary) == (8192, 32, 65024)
    assert shape.layers[0] is not None
    assert shape.layers[0].kv_heads == 2
    assert read(configs.FALCON_7B).layers[0].kv_heads == 1  # type: ignore[union-attr]
