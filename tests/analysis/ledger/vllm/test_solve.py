"""Every answer holds, its neighbour does not, and typed in it really does what was asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.analysis.ledger.servers import applied, deployment, typed, variants

from llmedic.analysis.ledger.vllm import grid, solve
from llmedic.analysis.ledger.vllm.candidate import Load, holds
from llmedic.errors import UsageError
from llmedic.knowledge import accelerators
from llmedic.model.deployment import Deployment, FlagValue
from llmedic.model.ledger import Solution

LOAD = Load(concurrency=8, context_tokens=4000)


def answer(whole: Deployment, goal: str, load: Load = LOAD) -> Solution:
    return solve.solve(variants(whole, load), load, (goal,))[0]


def fits(whole: Deployment, load: Load = LOAD, **values: FlagValue) -> bool:
    """Whether the load surely fits the deployment with other flags."""
    found = variants(whole).other(values)
    return found is not None and holds(found, load) == "yes"


def value(found: Solution, name: str, version: str = "0.19.0") -> float:
    number = typed(found.change, version)[name]
    assert isinstance(number, int | float)
    return number


def test_the_most_requests() -> None:
    whole = deployment("Qwen3-32B", "H200", "0.19.0")
    found = answer(whole, "max-num-seqs")
    best = int(value(found, "max_num_seqs"))
    assert fits(whole, Load(concurrency=best, context_tokens=4000), max_num_seqs=best)
    assert not fits(whole, Load(concurrency=best + 1, context_tokens=4000), max_num_seqs=best + 1)
    assert found.text == f"{best} requests of 4,000 tokens fit at once, {best + 1} do not"
    assert found.pool is not None
    assert found.concurrency is not None


def test_the_most_requests_of_every_replica() -> None:
    one = value(answer(deployment("Qwen3-8B", "H100"), "max-num-seqs"), "max_num_seqs")
    each = value(answer(deployment("Qwen3-8B", "H100", data_parallel_size=2), "max-num-seqs"), "max_num_seqs")
    assert each == one


def test_tiny_requests_end_where_nobody_looks_further() -> None:
    whole = deployment("SmolLM2-135M-Instruct", "H200", max_num_batched_tokens=8192, max_model_len=512)
    found = answer(whole, "max-num-seqs", Load(concurrency=1, context_tokens=16))
    assert found.text == "4,096 requests of 16 tokens fit at once, and more were not tried"


def test_no_request_at_all() -> None:
    found = answer(deployment("Qwen3-32B", "L4"), "max-num-seqs")
    assert (found.change, found.text) == ("", "not even one request of 4,000 tokens fits")
    assert found.pool is None


def test_the_longest_context() -> None:
    whole = deployment("Llama-3.1-8B-Instruct", "L40S")
    found = answer(whole, "max-model-len")
    best = int(value(found, "max_model_len"))
    assert best % 256 == 0
    assert fits(whole, replace(LOAD, context_tokens=best), max_model_len=best)
    assert not fits(whole, replace(LOAD, context_tokens=best + 256), max_model_len=best + 256)
    assert found.text.endswith("the longest that fits")


def test_the_longest_context_ends_at_the_models_own() -> None:
    found = answer(deployment("Qwen3-8B", "H200"), "max-model-len")
    assert found.change == "--max-model-len 40960"
    assert found.text.endswith("as long as the model was made for")


def test_a_context_of_any_length_is_too_long() -> None:
    found = answer(deployment("Qwen3-32B", "L4"), "max-model-len")
    assert (found.change, found.text) == ("", "8 requests of any length do not fit at once")


def test_the_least_share() -> None:
    whole = deployment("Qwen3-8B", "H100")
    found = answer(whole, "gpu-memory-utilization")
    best = value(found, "gpu_memory_utilization")
    assert fits(whole, gpu_memory_utilization=best)
    assert not fits(whole, gpu_memory_utilization=round(best - 0.01, 2))


def test_no_share_is_enough() -> None:
    found = answer(deployment("Qwen3-32B", "L4"), "gpu-memory-utilization")
    assert found.text == "8 requests of 4,000 tokens do not fit with the whole card"


def test_a_share_that_leaves_no_room_beside_it() -> None:
    whole = deployment("Llama-3.1-8B-Instruct", "4090", "0.11.0", max_model_len=4096)
    texts = {
        answer(whole, "gpu-memory-utilization", Load(concurrency=count, context_tokens=4096)).text
        for count in range(4, 20)
    }
    assert any("but what is taken beside it lacks 0." in text for text in texts)


def test_a_cache_that_was_asked_for_does_not_follow_the_share() -> None:
    whole = deployment("Qwen3-8B", "H100", kv_cache_memory_bytes=2**34)
    found = answer(whole, "gpu-memory-utilization")
    assert found.text == "the size of the cache was asked for: the share of the card does not change it"


def test_the_fewest_devices() -> None:
    whole = deployment("Qwen3-32B", "L4", max_model_len=8192)
    found = answer(whole, "tensor-parallel-size")
    best = int(value(found, "tensor_parallel_size"))
    assert fits(whole, tensor_parallel_size=best)
    assert not fits(whole, tensor_parallel_size=best // 2)
    assert found.text == f"8 requests of 4,000 tokens fit on {best} devices"
    assert answer(deployment("Qwen3-8B", "H100"), "tensor-parallel-size").text.endswith("fit on one")


@pytest.mark.parametrize(("count", "said"), [(1, "do not fit on one"), (2, "do not fit on 2 devices either")])
def test_too_few_devices(count: int, said: str) -> None:
    found = answer(deployment("Qwen3-32B", "L4", count=count), "tensor-parallel-size")
    assert found.text == f"8 requests of 4,000 tokens {said}"


def test_the_least_lossy_quantisation() -> None:
    none = answer(deployment("Qwen3-8B", "H100"), "quantization")
    assert (none.change, none.text) == ("", "8 requests of 4,000 tokens fit without quantising further")
    whole, fewer = deployment("Qwen3-32B", "A6000", "0.33.0", max_model_len=4096), replace(LOAD, concurrency=3)
    online = answer(whole, "quantization", fewer)
    assert online.change == "--quantization fp8"
    assert "which vLLM does while it loads" in online.text
    again = applied(whole, online.change)
    assert holds(variants(again).candidate, fewer) == "yes"


def test_weights_that_do_not_fit_cannot_be_quantised_while_they_load_in_earlier_releases() -> None:
    found = answer(deployment("Qwen3-32B", "A6000", "0.11.0", max_model_len=4096), "quantization")
    assert (found.change, found.text) == (
        "checkpoint: awq", "8 requests of 4,000 tokens fit with a checkpoint quantised as awq",
    )  # fmt: skip


def test_a_quantised_checkpoint_gives_way_to_a_smaller_one_only() -> None:
    small = Load(concurrency=2, context_tokens=1000)
    whole = deployment("Qwen/Qwen3-32B-FP8", "4090", "0.33.0", gpu_memory_utilization=0.95, max_num_seqs=8)
    names = [name for name, _ in grid.quantised(variants(whole))]
    assert names == ["", "awq", "gptq", "nvfp4"]
    found = answer(whole, "quantization", small)
    assert found.change in ("checkpoint: awq, --max-model-len 1024", "checkpoint: nvfp4, --max-model-len 1024")


def test_no_quantisation_is_enough() -> None:
    found = answer(deployment("Qwen3-235B-A22B", "L4"), "quantization")
    assert found.text.endswith("do not fit with any quantisation that runs on this card")


def test_the_smallest_common_card() -> None:
    whole = deployment("Qwen3-8B", version="0.33.0", max_model_len=8192)
    found = answer(whole, "gpu")
    card = accelerators.find(found.change)
    assert card is not None
    assert card.common
    for other in grid.cards():
        if other.memory.likely < card.memory.likely:
            placed = deployment("Qwen3-8B", other.name, "0.33.0", max_model_len=8192)
            assert not fits(placed), other.name
    assert fits(deployment("Qwen3-8B", card.name, "0.33.0", max_model_len=8192))


def test_no_card_is_enough() -> None:
    found = answer(deployment("Kimi-K2-Instruct"), "gpu")
    assert found.text.endswith("do not fit on any of the usual cards at this degree")


def test_a_higher_cap_is_part_of_the_answer() -> None:
    load = Load(concurrency=100, context_tokens=500)
    whole = deployment("Qwen3-8B", "H100", max_num_seqs=16)
    found = answer(whole, "tensor-parallel-size", load)
    assert found.change == "--tensor-parallel-size 1 --max-num-seqs 100"
    assert fits(applied(whole, found.change.replace("--tensor-parallel-size 1 ", "")), load)


def test_a_context_longer_than_the_load_has_to_come_down() -> None:
    whole = deployment("Llama-3.1-8B-Instruct", "L4")
    found = answer(whole, "max-num-seqs")
    assert typed(found.change, "0.19.0").keys() == {"max_num_seqs", "max_model_len"}
    assert found.text.endswith("; max_model_len has to come down from 131,072 for it")
    count = int(value(found, "max_num_seqs"))
    assert fits(applied(whole, found.change), Load(concurrency=count, context_tokens=4000))


def test_goals_together_come_last() -> None:
    whole = deployment("Qwen3-32B")
    found = solve.solve(variants(whole), LOAD, ("gpu", "tensor-parallel-size", "gpu"))
    assert [one.goal for one in found] == ["gpu", *["together"] * (len(found) - 1)]
    degrees = [int(one.change.rsplit(" ", 1)[1]) for one in found[1:]]
    assert degrees == sorted(set(degrees))
    assert found[1].change == f"{found[0].change}, --tensor-parallel-size 1"


def test_nothing_together_is_enough() -> None:
    whole = deployment("Kimi-K2-Instruct", "L4", count=1)
    (*_, found) = solve.solve(variants(whole), LOAD, ("tensor-parallel-size", "max-num-seqs"))
    assert (found.goal, found.change) == ("together", "")
    assert found.text == "8 requests of 4,000 tokens fit with no combination of these"


def test_what_cannot_be_asked() -> None:
    whole = variants(deployment("Qwen3-8B", "H100"))
    with pytest.raises(UsageError, match="not something that can be solved for"):
        solve.solve(whole, LOAD, ("speed",))
    with pytest.raises(UsageError, match="needs a card"):
        solve.solve(variants(deployment("Qwen3-8B")), LOAD, ("max-num-seqs",))


def test_every_goal_has_a_solver() -> None:
    assert tuple(solve.SOLVERS) == solve.GOALS


MODELS = st.sampled_from(["Qwen3-8B", "gemma-3-12b-it", "gpt-oss-20b", "Llama-3.1-8B-Instruct", "DeepSeek-V2-Lite"])
PLACES = st.sampled_from(["L4", "4090", "L40S", "A100", "H100"])
ALONE = st.sampled_from(["max-num-seqs", "max-model-len", "gpu-memory-utilization", "tensor-parallel-size"])


@settings(max_examples=40, deadline=None)
@given(
    MODELS, PLACES, ALONE, st.integers(1, 300), st.integers(1, 20_000), st.sampled_from(["0.9.2", "0.11.0", "0.33.0"])
)
def test_an_answer_holds_when_it_is_typed(
    model: str, card: str, goal: str, count: int, tokens: int, version: str
) -> None:
    whole, load = deployment(model, card, version), Load(concurrency=count, context_tokens=tokens)
    found = answer(whole, goal, load)
    assume(found.change)
    values = typed(found.change, version)
    if goal == "max-num-seqs":
        load = replace(load, concurrency=int(str(values["max_num_seqs"])))
    if goal == "max-model-len":
        load = replace(load, context_tokens=int(str(values["max_model_len"])))
    assert fits(whole, load, **values)


@settings(max_examples=15, deadline=None)
@given(MODELS, PLACES, st.integers(100, 4000))
def test_longer_requests_are_never_more(model: str, card: str, tokens: int) -> None:
    whole = deployment(model, card, max_model_len=8192)
    counts = [
        typed(found.change, "0.19.0").get("max_num_seqs", 0) if found.change else 0
        for length in (tokens, tokens + 1000)
        for found in [answer(whole, "max-num-seqs", Load(concurrency=1, context_tokens=length))]
    ]
    assert counts[0] >= counts[1]  # type: ignore[operator]


def test_together_is_no_more_than_is_needed() -> None:
    """A share as it is, where that is enough; the first quantisation per degree; nothing beyond a plain one."""
    load = Load(concurrency=40, context_tokens=12_000)
    server = variants(deployment("Qwen3-32B", "A100-SXM4-40GB", "0.33.0", count=8, tensor_parallel_size=4), load)
    plain = solve.solve(server, load, ("gpu-memory-utilization", "tensor-parallel-size"))
    assert [one.change for one in plain if one.goal == "together"] == ["--tensor-parallel-size 8"]
    goals = ("quantization", "gpu-memory-utilization", "max-num-seqs", "tensor-parallel-size")
    mixed = solve.solve(server, load, goals)
    changes = [one.change for one in mixed if one.goal == "together"]
    assert changes[-1] == "--tensor-parallel-size 8 --max-num-seqs 40"
    assert [change.startswith("checkpoint: awq, --tensor-parallel-size 4") for change in changes] == [True, False]
