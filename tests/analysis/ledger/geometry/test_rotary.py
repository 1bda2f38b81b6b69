"""Tables of positions, against what real servers printed beside the checkpoint's bytes."""

from __future__ import annotations

import pytest
from tests.analysis.ledger.geometry import configs
from tests.analysis.ledger.geometry.configs import Config
from tests.analysis.ledger.geometry.reading import read

from llmedic.knowledge import models


def table_gib(config: Config) -> float:
    shape = read(config)
    return shape.rotary_numbers * shape.bytes_each / 2**30


def test_one_table_serves_all_layers() -> None:
    """14.99 GiB printed for 14.96 of weights."""
    assert table_gib(configs.LLAMA_8B) == pytest.approx(0.031, abs=0.001)


@pytest.mark.parametrize(("name", "printed_gib"), [("google/gemma-4-31B-it", 0.375), ("google/gemma-3-12b-it", 0.125)])
def test_sliding_and_full_layers_rotate_apart(name: str, printed_gib: float) -> None:
    found = models.find(name)
    assert found is not None
    assert table_gib(dict(found.config)) == pytest.approx(printed_gib, rel=0.01)


def test_sectioned_rotation_has_four_times_the_table() -> None:
    plain = configs.QWEN25_7B | {"max_position_embeddings": 32768}
    vision = plain | {"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}
    assert read(vision).rotary_numbers == 4 * read(plain).rotary_numbers == 4 * 32768 * 128


def test_a_part_of_a_head_is_rotated() -> None:
    half = configs.LLAMA_8B | {"partial_rotary_factor": 0.5}
    assert 2 * read(half).rotary_numbers == read(configs.LLAMA_8B).rotary_numbers


@pytest.mark.parametrize("share", [0, -1, 2, "half", True, None])
def test_a_share_that_is_none_counts_as_whole(share: object) -> None:
    odd = configs.LLAMA_8B | {"partial_rotary_factor": share}
    assert read(odd).rotary_numbers == read(configs.LLAMA_8B).rotary_numbers


def test_latent_attention_rotates_a_head_of_its_own() -> None:
    found = models.find("deepseek-ai/DeepSeek-V3")
    assert found is not None
    assert read(found.config).rotary_numbers == found.config["max_position_embeddings"] * 64  # type: ignore[operator]
