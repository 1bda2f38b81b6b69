"""Layer groups: which layers share a table, how large a group is, and what a release cannot start with."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.ledger.layouts import CHUNKED, FULL, LATENT, SLIDING, STATE

from llmedic.analysis.ledger.vllm.groups import Grouping, group
from llmedic.analysis.ledger.vllm.pages import pages
from llmedic.analysis.ledger.vllm.rules import rules
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.model.geometry import CacheLayer

WIDE = replace(FULL, head_dim=256)


def grouped(*layers: CacheLayer | None, version: tuple[int, ...] = (), hybrid: bool = True) -> Grouping:
    """The groups of a model."""
    known = rules(version)
    found = enumerate(pages(layers, Settings(version=version), known, 2))
    return group({number: page for number, page in found if page}, known, hybrid=hybrid)


def sizes(found: Grouping) -> list[int]:
    return [len(one.layers) for one in found.groups]


def test_a_model_that_caches_nothing_has_no_groups() -> None:
    assert grouped(None, None) == Grouping(())


def test_layers_of_one_kind_share_a_group_and_layers_without_a_cache_are_left_out() -> None:
    assert [one.layers for one in grouped(FULL, None, FULL).groups] == [(0, 2)]


def test_layers_that_are_alike_on_a_rank_are_of_one_kind() -> None:
    narrow = replace(FULL, kv_heads=2)
    settings = Settings(tensor_parallel=8)
    found = dict(enumerate(page for page in pages((FULL, narrow, SLIDING, SLIDING), settings, rules(()), 2) if page))

    assert sizes(group(found, rules(()), hybrid=True)) == [2, 2]


def test_layers_of_other_widths_share_a_group_since_0_11() -> None:
    assert sizes(grouped(FULL, WIDE, version=(0, 11))) == [2]
    assert grouped(FULL, WIDE, version=(0, 10)).refusal


def test_a_repeating_pattern_makes_groups_as_large_as_the_rarest_kind() -> None:
    found = grouped(*[SLIDING, SLIDING, SLIDING, FULL] * 3)

    assert sizes(found) == [3, 3, 3, 3]
    assert [one.page.kind for one in found.groups] == ["sliding", "sliding", "sliding", "full"]
    assert found.groups[0].layers == (0, 4, 8)


def test_before_0_11_a_group_holds_neighbours() -> None:
    assert grouped(*[SLIDING, SLIDING, FULL] * 2, version=(0, 10)).groups[0].layers == (0, 1)


@pytest.mark.parametrize(("version", "expected"), [((0, 11), [7, 6, 12]), ((0, 12), [13, 12])])
def test_kinds_of_nearly_equal_count_share_a_size_since_0_12(version: tuple[int, ...], expected: list[int]) -> None:
    assert sizes(grouped(*[FULL, SLIDING] * 12, FULL, version=version)) == expected


def test_the_factor_grew_from_1_25_to_1_5_in_0_18() -> None:
    layers = [FULL] * 10 + [SLIDING] * 14

    assert sizes(grouped(*layers, version=(0, 17))) == [10, 7, 7]
    assert sizes(grouped(*layers, version=(0, 18))) == [10, 14]


def test_smaller_pages_get_larger_blocks_since_0_12() -> None:
    narrow = replace(SLIDING, kv_heads=2)
    found = grouped(FULL, narrow, version=(0, 12))

    assert [one.page.block_tokens for one in found.groups] == [16, 64]
    assert {one.page.bytes for one in found.groups} == {FULL.kv_heads * FULL.head_dim * 4 * 16}
    assert grouped(FULL, narrow, version=(0, 11)).refusal


def test_pages_that_do_not_divide_are_padded_since_0_24() -> None:
    odd = replace(SLIDING, kv_heads=3)

    assert grouped(FULL, odd, version=(0, 23)).refusal
    assert {one.page.bytes for one in grouped(FULL, odd, version=(0, 24)).groups} == {8 * 128 * 4 * 16}


def test_mla_beside_sliding_layers_that_do_not_divide_keeps_every_token_since_0_27() -> None:
    assert grouped(LATENT, SLIDING, version=(0, 26)).refusal
    found = grouped(LATENT, SLIDING, version=(0, 27))

    assert sizes(found) == [2]
    assert not found.refusal


@pytest.mark.parametrize(("version", "hybrid"), [((0, 9, 0), True), ((0, 21), False)])
@pytest.mark.parametrize("local", [SLIDING, CHUNKED])
def test_without_groups_local_layers_keep_every_token(
    version: tuple[int, ...], hybrid: bool, local: CacheLayer
) -> None:
    found = grouped(FULL, local, local, version=version, hybrid=hybrid)

    assert sizes(found) == [3]
    assert {page.kind for page in found.groups[0].pages} == {"full"}


def test_a_model_of_sliding_layers_alone_keeps_its_window_without_groups() -> None:
    assert {page.kind for page in grouped(SLIDING, SLIDING, hybrid=False).groups[0].pages} == {"sliding"}


def test_two_windows_without_a_full_layer_need_the_manager() -> None:
    assert grouped(SLIDING, CHUNKED, hybrid=False).refusal


def test_two_windows_beside_full_layers_need_the_manager_too() -> None:
    near = replace(SLIDING, window_tokens=128)

    assert grouped(FULL, SLIDING, near, hybrid=False).refusal
    assert not grouped(FULL, SLIDING, near).refusal


def test_states_have_groups_of_their_own() -> None:
    found = grouped(*[STATE, STATE, STATE, FULL] * 2)

    assert sizes(found) == [2, 2, 2, 2]
    assert len({one.page.bytes for one in found.groups}) == 1


@given(st.lists(st.sampled_from([FULL, SLIDING, CHUNKED, STATE, None]), min_size=1, max_size=40))
def test_every_layer_is_in_one_group_and_all_pages_are_equal(layers: list[CacheLayer | None]) -> None:
    found = grouped(*layers)
    members = sorted(number for one in found.groups for number in one.layers)

    assert members == [number for number, layer in enumerate(layers) if layer is not None]
    assert not found.refusal
    assert len({page.bytes for one in found.groups for page in one.pages}) <= 1
