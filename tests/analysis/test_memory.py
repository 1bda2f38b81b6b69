"""The ledger as a witness: what it says of a start, between the ends of an interval nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from llmedic.analysis import change, crosscheck
from llmedic.analysis.outcome import Outcome
from llmedic.analysis.predicates import ledger, memory
from llmedic.analysis.view import View
from llmedic.model.deployment import Deployment, Flag, FlagValue, HardwareFacts, ModelFacts
from llmedic.model.evidence import Evidence
from llmedic.model.observation import Observation

BLOCK_BYTES = 16 * 144 * 1024
"""Of Qwen3-8B."""
GIB = 2**30


def view(
    model: str = "Qwen/Qwen3-8B", card: str = "NVIDIA H100 80GB HBM3", version: str = "0.11.0",
    seen: Mapping[str, float] | None = None, *, count: int | None = None, gib: float | None = None, **flags: FlagValue,
) -> View:  # fmt: skip
    """A vLLM server of a catalogued model, and what was observed of it."""
    whole = Deployment(
        engine="vllm",
        version=version,
        flags=tuple(Flag(name=name, value=value) for name, value in flags.items()),
        model=ModelFacts(name=model),
        hardware=HardwareFacts(accelerator=card, count=count, memory_gib=gib),
    )
    observed = tuple(
        Observation(name=name, value=value, unit="", source="metrics") for name, value in (seen or {}).items()
    )
    return View(Evidence(deployment=whole, observations=observed))


CHECKS: tuple[Callable[[View], Outcome], ...] = (
    memory.weights_leave_no_room,
    memory.ledger_leaves_no_cache,
    memory.longest_length_exceeds_the_cache,
    memory.graphs_do_not_fit_beside,
)


@pytest.mark.parametrize("check", CHECKS)
def test_an_unknown_model_says_nothing(check: Callable[[View], Outcome]) -> None:
    found = check(view("acme/unknown"))
    assert found.holds is None
    assert found.missing == memory.NEEDED


@pytest.mark.parametrize("check", CHECKS)
def test_an_unknown_card_says_nothing(check: Callable[[View], Outcome]) -> None:
    assert check(view(card="")).holds is None


@pytest.mark.parametrize(("gib", "holds"), [(12.0, True), (15.28, None), (24.0, False)])
def test_weights_against_the_card(gib: float, holds: bool | None) -> None:
    found = memory.weights_leave_no_room(view(card="", gib=gib))
    assert found.holds is holds
    assert holds is None or found.facts[0].name == "weights per device"


@pytest.mark.parametrize(("gib", "holds"), [(16.0, True), (18.7, None), (24.0, False)])
def test_what_is_left_for_the_cache(gib: float, holds: bool | None) -> None:
    found = memory.ledger_leaves_no_cache(view(card="", gib=gib))
    assert found.holds is holds
    if holds is not None:
        assert found.facts[0].compared_to is not None
        assert found.facts[0].compared_to.startswith(f"{gib * 0.9:.2f} - 15.2")


@pytest.mark.parametrize(("blocks", "holds"), [(2559, True), (2600, False)])
def test_one_longest_request_against_the_pool(blocks: int, holds: bool) -> None:
    found = memory.longest_length_exceeds_the_cache(view(seen={"kv_blocks_count": blocks}))
    assert found.holds is holds
    assert found.facts[0].value == "5.62 GiB"


def test_an_interval_around_the_longest_request_decides_nothing() -> None:
    open_ = memory.longest_length_exceeds_the_cache(view(seen={"kv_cache_gib": 2560 * BLOCK_BYTES / GIB}))
    assert open_.holds is None


def test_a_negative_pool_is_another_cause() -> None:
    assert memory.longest_length_exceeds_the_cache(view(card="", gib=16)).holds is False


def test_graphs_beside_the_budget() -> None:
    assert memory.graphs_do_not_fit_beside(view()).holds is False
    assert memory.graphs_do_not_fit_beside(view(gpu_memory_utilization=0.995)).holds is True
    assert memory.graphs_do_not_fit_beside(view(gpu_memory_utilization=0.985)).holds is None
    assert memory.graphs_do_not_fit_beside(view(version="0.33.0", gpu_memory_utilization=0.995)).holds is False


def test_layers_that_all_keep_every_token_need_no_layout() -> None:
    assert memory.blocks(view(seen={"kv_blocks_count": 5000}), 1000) is None
    hybrid = memory.blocks(view("google/gemma-3-12b-it", seen={"kv_blocks_count": 5000}), 4000)
    assert hybrid is not None
    assert hybrid[0] > 250
    assert hybrid[1] <= 5000


def test_tokens_in_the_pool() -> None:
    assert memory.pool_tokens(view(seen={"kv_cache_tokens": 123.0})) == 123
    assert memory.pool_tokens(view(seen={"kv_blocks_count": 1000})) == 16_000
    assert memory.pool_tokens(view()) is None
    assert memory.pool_tokens(view("acme/unknown")) is None


def test_the_longest_request_that_surely_fits() -> None:
    assert memory.longest_request(view(seen={"kv_blocks_count": 1000})) == 999 * 16
    assert memory.longest_request(view("acme/unknown")) is None


@pytest.mark.parametrize("check", [*CHECKS, ledger.weights_exceed_the_cards])
def test_several_cards_and_no_degree_say_nothing(check: Callable[[View], Outcome]) -> None:
    found = check(view("meta-llama/Llama-3.1-405B", count=8, gib=80))
    assert found.holds is None
    assert found.missing == (memory.SHARDS,)


@pytest.mark.parametrize("seen", ["kv_cache_tokens", "kv_blocks_count", "kv_cache_gib"])
@pytest.mark.parametrize(
    "check", [memory.weights_leave_no_room, memory.ledger_leaves_no_cache, ledger.weights_exceed_the_cards]
)
def test_a_pool_that_is_there_shows_that_the_weights_fit(check: Callable[[View], Outcome], seen: str) -> None:
    for model in ("meta-llama/Llama-3.1-405B", "acme/unknown-405B"):
        there = view(model, gib=80, seen={seen: 79392.0 if seen != "kv_cache_gib" else 9.7})
        assert check(there).holds is not True
    assert ledger.weights_exceed_the_cards(view("meta-llama/Llama-3.1-405B", gib=80)).holds is True
    assert ledger.weights_exceed_the_cards(view("acme/unknown-405B", gib=80)).holds is True


def test_the_fewest_shards() -> None:
    assert memory.fewest_shards(view("Qwen/Qwen3-32B", "NVIDIA L4", max_model_len=4096)) == 4
    assert memory.fewest_shards(view("Qwen/Qwen3-32B", "NVIDIA L4", count=2, tensor_parallel_size=1)) == 0
    assert memory.fewest_shards(view("acme/unknown")) is None


def test_values_of_changes_come_from_the_ledger() -> None:
    too_long = view(seen={"kv_blocks_count": 1000}, max_model_len=40960)
    assert change.model_len_from_pool(too_long) == str(16_000 // 256 * 256)
    larger = view("Qwen/Qwen3-32B", "NVIDIA L4", max_model_len=4096, tensor_parallel_size=1)
    assert change.tensor_parallel_raise(larger) == "4"
    nowhere = view("Qwen/Qwen3-32B", "NVIDIA L4", count=1, tensor_parallel_size=1)
    assert change.tensor_parallel_raise(nowhere) == ""
    seen = {"kv_blocks_count": 5000, "prompt_tokens_mean": 3000, "output_tokens_mean": 1000}
    hybrid = view("google/gemma-3-12b-it", seen=seen, max_num_seqs=256)
    needed, there = memory.blocks(hybrid, 4000) or (0, 0)
    assert change.seqs_from_pool(hybrid) == str(there // needed)


def test_a_neighbour_on_the_card_is_a_disagreement() -> None:
    alone = view().server
    assert alone is not None
    expected = alone.pool().likely / GIB
    assert crosscheck.of(view(seen={"kv_cache_gib": expected})) == ()
    (found,) = crosscheck.of(view(seen={"kv_cache_gib": expected - 20}))
    assert (found.about, found.second.name) == ("KV pool", "KV cache by the ledger")
    assert "another process holds memory of the card" in found.meaning


def test_blocks_of_a_hybrid_do_not_contradict_its_tokens() -> None:
    """Blocks are shared by layer groups: blocks x block size is not what such a server prints."""
    server = view("google/gemma-3-12b-it", max_model_len=32768).server
    assert server is not None
    blocks = server.plan().blocks(server.pool().likely)
    tokens = server.plan().printed_tokens(blocks, 32768)
    assert abs(tokens - blocks * 16) > 0.02 * tokens
    seen: dict[str, float] = {"kv_blocks_count": blocks, "kv_cache_tokens": tokens}
    assert crosscheck.of(view("google/gemma-3-12b-it", seen=seen, max_model_len=32768, block_size=16)) == ()
    wrong: dict[str, float] = {**seen, "kv_cache_tokens": tokens * 2}
    (found,) = crosscheck.of(view("google/gemma-3-12b-it", seen=wrong, max_model_len=32768, block_size=16))
    assert "hybrid or sliding-window layers share blocks" in found.meaning
