"""The page of one layer: heads, latent vectors, states, and what hybrids do to the block size."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.analysis.ledger.layouts import FULL, LATENT, SLIDING, SPARSE, STATE

from llmedic.analysis.ledger.vllm.pages import Page, pages
from llmedic.analysis.ledger.vllm.rules import rules
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.model.geometry import CacheLayer, StateTensor


def page(layer: CacheLayer, **changes: object) -> Page:
    """The page of a lone layer."""
    settings = Settings(**changes)  # type: ignore[arg-type]
    (found,) = pages((layer,), settings, rules(settings.version), 2)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("layer", "changes", "expected"),
    [
        pytest.param(FULL, {}, 2 * 8 * 128 * 2 * 16, id="keys and values of every head"),
        pytest.param(FULL, {"block_tokens": 128}, 2 * 8 * 128 * 2 * 128, id="larger blocks"),
        pytest.param(FULL, {"cache_element_bytes": 1}, 2 * 8 * 128 * 16, id="fp8"),
        pytest.param(FULL, {"cache_element_bytes": 0.5625}, 2 * 8 * 72 * 16, id="nvfp4: 4 bits and a scale per 16"),
        pytest.param(FULL, {"cache_element_bytes": 1, "cache_scale_bytes": 4}, 2 * 8 * 132 * 16, id="scale per head"),
        pytest.param(FULL, {"tensor_parallel": 4}, 2 * 2 * 128 * 2 * 16, id="heads divided over ranks"),
        pytest.param(FULL, {"tensor_parallel": 16}, 2 * 1 * 128 * 2 * 16, id="a head is never cut"),
        pytest.param(LATENT, {"tensor_parallel": 8}, 576 * 2 * 16, id="latent vector on every rank"),
        pytest.param(LATENT, {"latent_token_bytes": 656}, 656 * 16, id="fp8_ds_mla"),
        pytest.param(SPARSE, {}, (576 * 2 + 132) * 16, id="indexer key and its scale"),
        pytest.param(STATE, {}, 8192 * 3 * 2 + 32 * 128 * 128 * 4, id="state"),
        pytest.param(STATE, {"tensor_parallel": 2}, 8192 * 3 + 32 * 128 * 128 * 2, id="state over two ranks"),
        pytest.param(STATE, {"speculative_tokens": 2}, 8192 * 5 * 2 + 32 * 128 * 128 * 4, id="a column per draft"),
        pytest.param(STATE, {"state_element_bytes": 2.0}, 8192 * 3 * 2 + 32 * 128 * 128 * 2, id="narrower state"),
    ],
)
def test_bytes_of_a_page(layer: CacheLayer, changes: dict[str, object], expected: int) -> None:
    assert page(layer, **changes).bytes == expected


def test_a_part_of_a_state_that_divides_over_few_ranks_is_repeated_on_the_others() -> None:
    parts = (StateTensor(name="conv", elements=4096), StateTensor(name="conv groups", elements=512, shares=2))
    layer = CacheLayer(kind="state", state=parts)

    assert page(layer, tensor_parallel=2).bytes == (2048 + 256) * 2
    assert page(layer, tensor_parallel=8).bytes == (512 + 256) * 2


def test_narrow_value_heads_are_stored_as_wide_as_keys_before_their_release() -> None:
    narrow = replace(FULL, head_dim=192, value_dim=128)

    assert page(narrow, version=(0, 13)).bytes == 2 * 8 * 192 * 2 * 16
    assert page(narrow, version=(0, 14)).bytes == 8 * (192 + 128) * 2 * 16
    assert page(replace(narrow, kind="sliding"), version=(0, 19)).bytes == 2 * 8 * 192 * 2 * 16
    assert page(replace(narrow, kind="sliding"), version=(0, 20)).bytes == 8 * (192 + 128) * 2 * 16


def test_the_first_engine_knows_neither_windows_nor_states() -> None:
    found = pages((FULL, SLIDING, STATE), Settings(first_engine=True), rules((), first_engine=True), 2)

    assert [one.kind if one else None for one in found] == ["full", "full", None]


def test_hybrids_raise_the_block_until_a_page_holds_a_state_and_pad_the_state() -> None:
    full, state = pages((FULL, STATE), Settings(), rules(()), 2)

    assert full is not None
    assert state is not None
    assert full.block_tokens == 528  # a state of 2,146,304 bytes, 65,536 bytes per 16 tokens: 32.75
    assert full.bytes == state.bytes == 528 * 4096
    assert state.block_tokens == 0


@pytest.mark.parametrize(
    ("changes", "block"),
    [
        ({"block_tokens": 1024}, 1024),
        ({"kernel_block_tokens": 128}, 640),
        ({"state_mode": "align"}, 528),
        ({"state_mode": "all", "state_chunk_tokens": 256}, 768),
    ],
)
def test_the_block_of_a_hybrid_follows_kernel_mode_and_flag(changes: dict[str, object], block: int) -> None:
    settings = Settings(**changes)  # type: ignore[arg-type]
    full, state = pages((FULL, STATE), settings, rules(()), 2)

    assert full is not None
    assert state is not None
    assert full.block_tokens == block
    assert state.block_tokens == (0 if settings.state_mode == "none" else block)
