"""A server that could be started, and whether a load fits it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.ledger.servers import deployment, variants

from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.analysis.ledger.vllm import candidate
from llmedic.analysis.ledger.vllm.candidate import Candidate, Load, holds, room_beside, room_for_asked, starts
from llmedic.model.ledger import Range

BLOCK_BYTES = 16 * 144 * 1024
"""Of Qwen3-8B: 36 layers, 8 KV heads of 128, 16 tokens, two bytes."""


def server(pool: Range | None = None, card: str = "H100", version: str = "0.33.0", **values: int) -> Candidate:
    values.setdefault("max_model_len", 4096)
    return variants(deployment("Qwen3-8B", card, version, **values), pool=pool).candidate


def blocks(low: int, likely: int | None = None, high: int | None = None) -> Range:
    likely = low if likely is None else likely
    return Range(
        low=low * BLOCK_BYTES, likely=likely * BLOCK_BYTES, high=(likely if high is None else high) * BLOCK_BYTES
    )


def test_the_pool_starts_a_server_that_holds_its_longest_request() -> None:
    assert starts(server(blocks(257))) == "yes"
    assert starts(server(blocks(256))) == "no", "one block is never handed out"
    assert starts(server(blocks(200, 250, 300))) == "perhaps"
    assert starts(server(exact(-1.0))) == "no"


def test_a_load_fits_without_preemption() -> None:
    load = Load(concurrency=10, context_tokens=2048)
    assert holds(server(blocks(1281)), load) == "yes"
    assert holds(server(blocks(1280)), load) == "no"
    assert holds(server(blocks(1200, 1250, 1300)), load) == "perhaps"
    assert holds(server(blocks(5000), max_num_seqs=9), load) == "no"
    assert holds(server(blocks(100)), load) == "no"


def test_replicas_divide_a_load() -> None:
    load = Load(concurrency=10, context_tokens=2048)
    assert candidate.per_replica(server(data_parallel_size=4), load) == 3
    assert holds(server(blocks(3 * 128 + 1), data_parallel_size=4), load) == "yes"


def test_another_step_keeps_the_batches_in_flight() -> None:
    before = server()
    after = before.changed(max_num_batched_tokens=1024)
    settings = before.settings
    assert after.settings.in_flight_tokens == settings.in_flight_tokens // settings.max_num_batched_tokens * 1024


def test_a_known_pool_moves_with_what_is_changed() -> None:
    known, computed = server(blocks(5000)), server()
    grown = computed.changed(utilization=0.95).pool().likely - computed.pool().likely
    assert known.changed(utilization=0.95).pool().likely == blocks(5000).likely + grown
    assert known.changed(max_model_len=100).pool() == blocks(5000)


@given(st.floats(0.3, 0.97), st.floats(0.001, 0.02))
def test_a_larger_share_is_a_larger_pool_and_less_beside_it(share: float, more: float) -> None:
    small, large = server().changed(utilization=share), server().changed(utilization=share + more)
    assert small.pool().likely < large.pool().likely
    assert room_beside(small).likely > room_beside(large).likely


def test_room_for_a_cache_that_was_asked_for() -> None:
    assert room_for_asked(server()) is None
    given_size = server(kv_cache_memory_bytes=10 * GIB)
    room = room_for_asked(given_size)
    taken = sum(term.size.likely for term in given_size.memory().terms)
    assert room is not None
    assert abs(room.likely - (given_size.card.total_bytes.likely - taken - 10 * GIB)) < 1
    assert starts(given_size) == "yes"
    assert starts(server(kv_cache_memory_bytes=70 * GIB)) == "no"
    assert starts(server(num_gpu_blocks_override=70 * GIB // BLOCK_BYTES)) == "no"
    assert room_beside(given_size).likely < room.likely


def test_graphs_before_0_20_lie_beside_the_budget() -> None:
    before, after = room_beside(server(version="0.11.0")), room_beside(server(version="0.33.0"))
    share = 79.18 * GIB * 0.1
    assert before.likely < share - candidate.ALWAYS_FREE_BYTES
    assert before.low < before.likely < before.high
    assert after.high - after.low < 0.01 * GIB


def test_degrees_are_powers_of_two_over_which_the_model_divides() -> None:
    assert candidate.degrees(server()) == (1, 2, 4, 8, 16)
    assert candidate.degrees(server(), 4) == (1, 2, 4)
    few_heads = variants(deployment("Qwen2.5-0.5B-Instruct", "H100")).candidate
    assert candidate.degrees(few_heads) == (1, 2)
