"""Encoders beside the decoder, against what transformers 5.19 counts."""

from __future__ import annotations

import pytest
from tests.analysis.ledger.geometry import configs
from tests.analysis.ledger.geometry.configs import Config, dense
from tests.analysis.ledger.geometry.reading import parameters, read

QWEN25_VL: Config = configs.QWEN25_7B | {
    "model_type": "qwen2_5_vl",
    "vision_config": {
        "depth": 32,
        "hidden_size": 1280,
        "intermediate_size": 3420,
        "num_heads": 16,
        "out_hidden_size": 3584,
    },
}
QWEN2_VL: Config = configs.QWEN25_7B | {
    "model_type": "qwen2_vl",
    "vision_config": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "hidden_size": 3584},
}
QWEN3_VL_8B: Config = {
    "model_type": "qwen3_vl",
    "tie_word_embeddings": False,
    "text_config": configs.QWEN3_8B | {"model_type": "qwen3_vl_text"},
    "vision_config": {
        "model_type": "qwen3_vl",
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "out_hidden_size": 4096,
        "deepstack_visual_indexes": [8, 16, 24],
    },
}
MISTRAL_SMALL: Config = {
    "model_type": "mistral3",
    "spatial_merge_size": 2,
    "text_config": dense("mistral", 40, 5120, 32, 8, 32768, 131072, head_dim=128, sliding_window=None),
    "vision_config": {
        "model_type": "pixtral",
        "hidden_size": 1024,
        "image_size": 1540,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "patch_size": 14,
    },
}
INTERNVL3_8B: Config = {
    "model_type": "internvl",
    "text_config": dense("qwen2", 28, 3584, 28, 4, 18944, 151674),
    "vision_config": {
        "model_type": "internvl_vision",
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "intermediate_size": 4096,
        "attention_bias": True,
        "image_size": [448, 448],
        "patch_size": [14, 14],
    },
}
GEMMA4_E2B: Config = {
    "model_type": "gemma4",
    "text_config": configs.GEMMA4_E2B,
    "vision_config": {"model_type": "gemma4_vision", "hidden_size": 768, "intermediate_size": 3072, "head_dim": 64},
    "audio_config": {
        "model_type": "gemma4_audio",
        "hidden_size": 1024,
        "num_hidden_layers": 12,
        "output_proj_dims": 1536,
    },
}
WHISPER_TINY: Config = {
    "model_type": "whisper",
    "d_model": 384,
    "encoder_layers": 4,
    "encoder_ffn_dim": 1536,
    "decoder_layers": 4,
    "decoder_attention_heads": 6,
    "decoder_ffn_dim": 1536,
    "num_mel_bins": 80,
    "max_source_positions": 1500,
    "max_target_positions": 448,
    "vocab_size": 51865,
}


@pytest.mark.parametrize(
    ("config", "total"),
    [
        (QWEN25_VL, 8_292_166_656),
        (QWEN2_VL, 8_291_375_616),
        (QWEN3_VL_8B, 8_767_123_696),
        (MISTRAL_SMALL, 24_011_361_280),
        (INTERNVL3_8B, 7_944_373_760),
        (GEMMA4_E2B, 5_104_297_504),
    ],
    ids=["Qwen2.5-VL-7B", "Qwen2-VL-7B", "Qwen3-VL-8B", "Mistral-Small-3.2", "InternVL3-8B", "gemma-4-E2B"],
)
def test_a_model_with_its_encoders(config: Config, total: int) -> None:
    shape = read(config)
    assert parameters(shape) == total
    assert shape.multimodal
    assert not shape.unsure
    assert any(part.name == "vision" for part in shape.weights)


def test_whisper_caches_the_audio_once() -> None:
    shape = read(WHISPER_TINY)
    assert parameters(shape) == pytest.approx(37_760_640, rel=0.001)
    own, audio = shape.layers[:2]
    assert own is not None
    assert audio is not None
    assert (own.kind, audio.kind) == ("full", "state")
    assert audio.state[0].elements == 2 * 1500 * 384
    assert shape.unsure


@pytest.mark.parametrize("section", ["vision_config", "audio_config", "img_processor"])
def test_an_encoder_of_unknown_kind_is_said_to_be_missing(section: str) -> None:
    shape = read(configs.LLAMA_8B | {section: {"model_type": "brand_new_tower"}})
    assert "encoder" in shape.unsure[0]
    assert shape.multimodal
    assert parameters(shape) == 8_030_261_248


def test_encoders_that_a_checkpoint_leaves_whole() -> None:
    def vision(ignore: list[str]) -> float:
        config = QWEN3_VL_8B | {"quantization_config": {"quant_method": "fp8", "modules_to_not_convert": ignore}}
        return sum(part.bytes for part in read(config).weights if part.name == "vision")

    assert vision(["lm_head", "model.visual.blocks.0.attn.qkv"]) > 1.9 * vision(["lm_head"])
