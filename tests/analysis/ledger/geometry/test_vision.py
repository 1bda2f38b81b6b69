"""What an image encoder needs at its widest."""

from __future__ import annotations

from tests.analysis.ledger.geometry import configs
from tests.analysis.ledger.geometry.reading import read
from tests.analysis.ledger.geometry.test_towers import QWEN2_VL, QWEN3_VL_8B, QWEN25_VL


def test_attention_or_feed_forward_is_the_widest() -> None:
    gated = read(QWEN25_VL)
    assert gated.encoder_numbers == 2 * 1280 + 3 * 3420 > 7 * 1280
    assert read(QWEN3_VL_8B).encoder_numbers == 2 * 1152 + 2 * 4304 > 7 * 1152


def test_the_first_of_them_names_its_width_otherwise() -> None:
    assert read(QWEN2_VL).encoder_numbers == 2 * 1280 + 2 * 4 * 1280


def test_patches_merge_into_tokens() -> None:
    merged = QWEN3_VL_8B | {"vision_config": {**QWEN3_VL_8B["vision_config"], "spatial_merge_size": 2}}
    assert read(merged).encoder_patches == 4
    assert read(merged).encoder_item_tokens == 16384


def test_a_text_model_has_none() -> None:
    shape = read(configs.LLAMA_8B)
    assert (shape.encoder_numbers, shape.encoder_patches, shape.encoder_item_tokens) == (0, 0, 0)


def test_an_encoder_of_unknown_width() -> None:
    unknown = QWEN3_VL_8B | {"vision_config": {**QWEN3_VL_8B["vision_config"], "hidden_size": None}}
    assert read(unknown).encoder_numbers == 0
