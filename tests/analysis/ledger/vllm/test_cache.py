"""Blocks, printed tokens, concurrency and the longest request of a pool, over releases."""

from __future__ import annotations

import inspect
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.ledger.layouts import FULL, LATENT, SLIDING, STATE, model

from llmedic.analysis.ledger.vllm import cache, groups, pages, requests, stages
from llmedic.analysis.ledger.vllm.cache import CachePlan
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.model.geometry import CacheLayer
from llmedic.model.ledger import Range

BLOCK = 2 * 8 * 128 * 2 * 16
"""Bytes of a block in one full layer."""


def planned(*layers: CacheLayer | None, draft: tuple[CacheLayer, ...] = (), **changes: object) -> CachePlan:
    settings = Settings(**{"in_flight_tokens": 2048, **changes})  # type: ignore[arg-type]
    return cache.plan(model(*layers, draft=draft), settings)


def test_a_block_takes_a_page_of_every_layer() -> None:
    plan = planned(*[FULL] * 32)

    assert plan.bytes_per_block == 32 * BLOCK
    assert plan.bytes_per_token == 32 * BLOCK / 16
    assert plan.blocks(10 * 2**30) == 10 * 2**30 // (32 * BLOCK) == 5120
    assert plan.blocks_per_request(4097) == 257


@pytest.mark.parametrize(
    ("version", "tokens", "concurrency"),
    [
        ((0, 7), 81920, 20.48),
        ((0, 9, 0), 81920, 20.48),
        ((0, 10), 81920, 20.48),
        ((0, 20, 1), 81920, 20.48),
    ],
)
def test_one_group_prints_the_same_in_every_release(version: tuple[int, ...], tokens: int, concurrency: float) -> None:
    plan = planned(*[FULL] * 32, version=version, first_engine=version < (0, 8))

    assert plan.printed_tokens(5120, 4000) == tokens
    assert plan.concurrency(5120, 4000) == pytest.approx(concurrency)


def test_several_groups_print_the_blocks_of_one_until_0_20_1() -> None:
    old = planned(*[SLIDING, SLIDING, SLIDING, FULL] * 4, version=(0, 20, 0))
    new = planned(*[SLIDING, SLIDING, SLIDING, FULL] * 4, version=(0, 20, 1))

    assert old.printed_tokens(4000, 100_000) == 1000 * 16
    assert new.printed_tokens(4000, 100_000) == int(4000 / (6250 + 3 * 193) * 100_000)
    assert old.concurrency(4000, 100_000) == new.concurrency(4000, 100_000) == 4000 / 6829


def test_context_parallel_ranks_multiply_the_tokens() -> None:
    assert planned(LATENT, context_parallel=8, version=(0, 11)).printed_tokens(100, 8192) == 100 * 16 * 8
    assert planned(LATENT, context_parallel=8).printed_tokens(100, 8192) == int(100 / 64 * 8192)


def test_a_draft_head_counts_while_speculation_is_on() -> None:
    assert planned(FULL, FULL, draft=(FULL,)).bytes_per_block == 2 * BLOCK
    assert planned(FULL, FULL, draft=(FULL,), speculative_tokens=2).bytes_per_block == 3 * BLOCK


def test_the_stage_with_most_layers_decides() -> None:
    plan = planned(*[FULL] * 7, draft=(FULL,), pipeline_parallel=2, speculative_tokens=1)

    assert plan.stage_block_bytes == (4 * BLOCK, 4 * BLOCK)
    assert planned(*[FULL] * 7, pipeline_parallel=2).stage_block_bytes == (4 * BLOCK, 3 * BLOCK)
    assert planned(*[FULL] * 7, pipeline_parallel=2, version=(0, 7)).stage_block_bytes == (3 * BLOCK, 4 * BLOCK)
    assert planned(*[FULL] * 10, pipeline_parallel=4).stage_block_bytes == tuple(n * BLOCK for n in (2, 3, 3, 2))


def test_groups_of_the_whole_model_leave_a_stage_a_share_of_each() -> None:
    plan = planned(*[SLIDING, FULL] * 4, pipeline_parallel=2)

    assert len(plan.groups) == 2
    assert plan.stage_block_bytes == (2 * BLOCK, 2 * BLOCK)


def test_more_stages_than_layers_leave_none_empty() -> None:
    assert planned(FULL, pipeline_parallel=4).stage_block_bytes == (BLOCK,)


def test_a_stage_without_a_cache_beside_one_with_it_does_not_start() -> None:
    assert planned(FULL, None, pipeline_parallel=2).refusal
    assert not planned(None, None, pipeline_parallel=2).refusal


def test_a_given_number_of_blocks_is_taken_as_it_is() -> None:
    plan = planned(FULL, blocks_override=100)

    assert plan.blocks(0) == plan.blocks(2**40) == 100
    assert plan.longest_request(0, 10**6) == 99 * 16
    assert planned(FULL).blocks(-5.0) == 0


def test_a_model_without_a_cache_holds_nothing() -> None:
    plan = planned(None, None)

    assert (plan.blocks(2**30), plan.concurrency(0, 100), plan.longest_request(2**30, 100)) == (0, 0.0, 0)


def test_states_alone_print_whole_requests() -> None:
    assert planned(STATE, version=(0, 11)).printed_tokens(7, 4096) == 7 * 4096
    assert planned(STATE).printed_tokens(7, 4096) == 7 * 4096


def test_the_block_that_is_never_handed_out_is_missed_since_0_29() -> None:
    assert planned(FULL, version=(0, 28)).longest_request(10 * BLOCK, 10**6) == 160
    assert planned(FULL, version=(0, 29)).longest_request(10 * BLOCK, 10**6) == 144
    assert planned(FULL, version=(0, 29)).longest_request(BLOCK, 10**6) == 0
    assert planned(FULL).longest_request(10 * BLOCK, 100) == 100


def test_the_check_of_0_14_to_0_18_counts_the_first_group_alone() -> None:
    layers = [FULL, SLIDING] * 4
    pool = (4 * 63 + 4 * 64) * BLOCK

    assert planned(*layers, version=(0, 13)).longest_request(pool, 10**6) == 1008
    assert planned(*layers, version=(0, 14)).longest_request(pool, 10**6) == 127 * 16
    assert planned(*layers, version=(0, 19)).longest_request(pool, 10**6) == 1008


def test_the_check_of_0_14_to_0_16_counts_all_stages() -> None:
    pool = 10 * 2 * BLOCK

    assert planned(*[FULL] * 4, pipeline_parallel=2, version=(0, 16)).longest_request(pool, 10**6) == 5 * 16
    assert planned(*[FULL] * 4, pipeline_parallel=2, version=(0, 17)).longest_request(pool, 10**6) == 10 * 16


def test_the_first_engine_checks_all_tokens() -> None:
    assert planned(FULL, SLIDING, first_engine=True).longest_request(20 * BLOCK, 10**6) == 160


def test_settings_that_do_not_touch_the_layout_share_a_plan() -> None:
    geometry = model(FULL, SLIDING)
    plan = cache.plan(geometry, Settings(max_num_seqs=8, utilization=0.5))

    assert cache.plan(geometry, Settings(max_num_seqs=9, max_model_len=7)) is plan
    assert cache.plan(geometry, Settings(in_flight_tokens=4096)) is not plan
    assert cache.plan(model(FULL, SLIDING), Settings()) is not plan


def test_every_setting_that_the_arithmetic_reads_makes_a_plan_of_its_own() -> None:
    """What `pages`, `groups`, `requests` and `stages` read of the settings is in the key."""
    modules = (pages, groups, requests, stages)
    read = {name for module in modules for name in re.findall(r"settings\.(\w+)", inspect.getsource(module))}

    assert read <= set(cache.LAYOUT)
    assert len(read) > 10


def test_a_fit_says_what_each_end_of_the_interval_holds() -> None:
    found = cache.fit(planned(*[FULL] * 2), Range(low=100 * BLOCK, likely=200 * BLOCK, high=300 * BLOCK), 800)

    assert (found.blocks.low, found.blocks.likely, found.blocks.high) == (50, 100, 150)
    assert found.blocks_per_request == 50
    assert (found.concurrency.low, found.concurrency.high) == (1.0, 3.0)
    assert found.printed_tokens.likely == 1600
    assert (found.longest_request.low, found.longest_request.high) == (784, 800)
    assert (found.bytes_per_block, found.block_tokens, found.groups) == (2 * BLOCK, 16, 1)


@given(
    layers=st.lists(st.sampled_from([FULL, SLIDING, STATE]), min_size=1, max_size=12),
    pool=st.integers(0, 2**34),
    version=st.sampled_from([(0, 10), (0, 13), (0, 16), (0, 20), (0, 28), ()]),
)
def test_the_longest_request_fits_and_one_token_more_does_not(
    layers: list[CacheLayer], pool: int, version: tuple[int, ...]
) -> None:
    plan = planned(*layers, version=version)
    longest = plan.longest_request(pool, 1 << 20)

    assert longest == 0 or plan.fits(pool, longest)
    assert longest == 1 << 20 or not plan.fits(pool, longest + 1)
