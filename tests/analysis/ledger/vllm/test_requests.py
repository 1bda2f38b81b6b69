"""Blocks that a request holds in a group."""

from __future__ import annotations

import pytest

from llmedic.analysis.ledger.vllm import requests
from llmedic.analysis.ledger.vllm.pages import Page
from llmedic.analysis.ledger.vllm.rules import rules
from llmedic.analysis.ledger.vllm.settings import Settings

FULL = Page(kind="full", block_tokens=16, bytes=1, shape=())
LATENT = Page(kind="mla", block_tokens=64, bytes=1, shape=())
SLIDING = Page(kind="sliding", block_tokens=16, bytes=1, shape=(), window_tokens=1024)
CHUNKED = Page(kind="chunked", block_tokens=16, bytes=1, shape=(), window_tokens=1024)
STATE = Page(kind="state", block_tokens=0, bytes=1, shape=())
STATE_BLOCKS = Page(kind="state", block_tokens=512, bytes=1, shape=())


def held(page: Page, tokens: int, **changes: object) -> int:
    settings = Settings(**{"in_flight_tokens": 2048, **changes})  # type: ignore[arg-type]
    return requests.blocks(page, tokens, settings, rules(settings.version))


@pytest.mark.parametrize(
    ("page", "tokens", "changes", "expected"),
    [
        pytest.param(FULL, 100, {}, 7, id="a started block counts"),
        pytest.param(FULL, 100, {"context_parallel": 4}, 2, id="25 tokens per rank"),
        pytest.param(LATENT, 129, {}, 3, id="latent"),
        pytest.param(SLIDING, 100, {}, 8, id="short of the window: one block more than full"),
        pytest.param(SLIDING, 10**6, {}, 193, id="window and what is in flight"),
        pytest.param(SLIDING, 10**6, {"in_flight_tokens": 4096}, 321, id="two batches in flight"),
        pytest.param(SLIDING, 10**6, {"retained_tokens": 1}, 193, id="retained for draft modules: 3,072 tokens"),
        pytest.param(CHUNKED, 10**6, {}, 192, id="chunk"),
        pytest.param(CHUNKED, 100, {}, 7, id="short of the chunk"),
        pytest.param(STATE, 10**6, {}, 1, id="one state"),
        pytest.param(STATE, 10**6, {"speculative_tokens": 2}, 3, id="one more per draft token"),
        pytest.param(STATE_BLOCKS, 5120, {"state_mode": "align"}, 2, id="running and last cached"),
        pytest.param(STATE_BLOCKS, 5120, {"state_mode": "align", "checkpoint_blocks": 1}, 3, id="and a checkpoint"),
        pytest.param(STATE_BLOCKS, 5120, {"state_mode": "all"}, 10, id="a state per block"),
        pytest.param(STATE_BLOCKS, 5120, {"state_mode": "all", "speculative_tokens": 3}, 13, id="and per draft token"),
    ],
)
def test_blocks_of_a_request(page: Page, tokens: int, changes: dict[str, object], expected: int) -> None:
    assert held(page, tokens, **changes) == expected


@pytest.mark.parametrize(
    ("version", "page", "expected"),
    [
        ((0, 11, 0), STATE_BLOCKS, 1),
        ((0, 11, 2), STATE_BLOCKS, 10),
        ((0, 11, 2), STATE, 1),
        ((0, 15), STATE, 3),
        ((0, 21), STATE, 3),
    ],
)
def test_states_of_earlier_releases(version: tuple[int, ...], page: Page, expected: int) -> None:
    assert held(page, 5120, version=version, speculative_tokens=2) == expected


def test_a_state_per_block_counts_drafts_since_0_22() -> None:
    assert held(STATE_BLOCKS, 5120, version=(0, 21), state_mode="all", speculative_tokens=2) == 10
    assert held(STATE_BLOCKS, 5120, version=(0, 22), state_mode="all", speculative_tokens=2) == 12
