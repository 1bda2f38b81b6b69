"""What keeps a server from starting is said with its arithmetic, and what is advised really starts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.ledger.servers import applied, deployment, typed, variants

from llmedic.analysis.ledger import account
from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.analysis.ledger.vllm import problems, solve
from llmedic.analysis.ledger.vllm.candidate import Load
from llmedic.errors import CallerError
from llmedic.knowledge import accelerators, models
from llmedic.model.deployment import Deployment, Flag, HardwareFacts, ModelFacts
from llmedic.model.geometry import CacheLayer
from llmedic.model.ledger import Ledger, Problem, Range

CARDS = tuple(name for name, card in accelerators.accelerators().items() if card.vendor == "nvidia")
RELEASES = ("0.6.6", "0.8.5", "0.9.2", "0.10.2", "0.11.0", "0.14.0", "0.17.0", "0.19.0", "0.21.0", "0.28.0", "0.33.0")
AFTER_START = {"prompt-exceeds-context-limit", "request-larger-than-kv-pool", "kv-pool-exhausted-preemption"}


def ledger(whole: Deployment, load: Load | None = None) -> Ledger:
    wanted = account.Wanted(
        context_tokens=load.context_tokens if load else None, concurrency=load.concurrency if load else None
    )
    return account.of(whole, (), wanted).ledger


def only(whole: Deployment, cause: str, load: Load | None = None, free_gib: float | None = None) -> Problem:
    """The one problem of a cause; what it advises is typed in, and the server starts without it."""
    server = variants(whole, load, free_gib=free_gib)
    (found,) = (one for one in problems.of(server) if one.cause == cause)
    if found.change:
        after = variants(applied(whole, found.change), load, free_gib=free_gib)
        left = problems.of(after)
        assert problems.verdict(after.candidate, left) == "yes"
        assert cause not in {one.cause for one in left}
    return found


def test_weights_that_do_not_fit_ask_for_more_shards() -> None:
    found = only(deployment("Qwen3-32B", "L4"), "weights-do-not-fit")
    assert (found.severity, found.starts) == ("critical", "no")
    assert found.text.startswith("the weights take 61.")
    assert found.text.endswith(" GiB of each device, which has 22.03 (21.95 to 22.04) GiB")
    assert typed(found.change, "0.19.0").keys() >= {"tensor_parallel_size"}


def test_a_degree_that_is_enough_with_a_shorter_context_only_names_both() -> None:
    found = only(deployment("Llama-3.1-70B-Instruct", "4090", count=8), "weights-do-not-fit")
    assert typed(found.change, "0.19.0").keys() == {"tensor_parallel_size", "max_model_len"}


def test_more_shards_than_there_are_cards_are_not_advised() -> None:
    assert only(deployment("Qwen3-32B", "L4", count=2), "weights-do-not-fit").change == ""


def test_less_free_than_wanted_asks_for_a_smaller_share() -> None:
    found = only(deployment("Qwen3-8B", "H100", max_model_len=8192), "memory-fraction-above-free", free_gib=40)
    assert found.text == "40.00 GiB are free at start, 71.26 GiB are wanted"
    assert found.change == "--gpu-memory-utilization 0.5"


def test_too_little_free_for_any_share() -> None:
    found = only(deployment("Qwen3-8B", "H100"), "memory-fraction-above-free", free_gib=10)
    assert (found.starts, found.change) == ("no", "")


def test_nothing_left_lowers_the_peak_of_activations_first() -> None:
    whole = deployment(
        "Llama-3.1-8B-Instruct",
        "4090",
        version="0.11.0",
        max_num_seqs=1024,
        max_model_len=2048,
        gpu_memory_utilization=0.83,
    )
    found = only(whole, "startup-no-memory-for-kv")
    assert "leaves -" in found.text
    assert found.text.startswith("19.52 (19.52 to 19.63) GiB - 1")
    assert ": nothing for the KV cache" in found.text
    assert typed(found.change, "0.11.0").keys() == {"max_num_seqs"}


def test_a_length_that_does_not_fit_is_shortened() -> None:
    found = only(deployment("Qwen3-8B", "4090", max_num_seqs=64), "max-model-len-exceeds-kv-pool")
    assert found.severity == "critical"
    assert "one request of 40,960 tokens needs 5.62 GiB of KV cache, the pool has" in found.text
    assert typed(found.change, "0.19.0").keys() == {"max_model_len"}


def test_where_the_interval_leaves_it_open_the_sentence_says_so() -> None:
    whole = deployment("Qwen3-8B", "H100", max_model_len=40960)
    needed = (40960 // 16) * 16 * 144 * 1024
    for low, likely, high, severity, starts, ending in (
        (0.8, 0.9, 1.1, "critical", "perhaps", "it likely does not start"),
        (0.9, 1.01, 1.1, "warning", "perhaps", "it may not start"),
        (0.7, 0.8, 0.9, "critical", "no", "GiB"),
    ):
        server = variants(whole, pool=Range(low=low * needed, likely=likely * needed, high=high * needed))
        (found,) = problems.of(server)
        assert (found.severity, found.starts) == (severity, starts)
        assert found.text.split("; ")[-1].endswith(ending)
        assert problems.verdict(server.candidate, (found,)) == starts


def test_a_layout_that_the_release_refuses_asks_for_fewer_stages() -> None:
    found = variants(deployment("gemma-3n-E4B-it", "H200", "0.9.2", pipeline_parallel_size=3))
    (problem,) = (one for one in problems.of(found) if one.severity == "critical")
    assert (problem.text, problem.starts) == (found.candidate.plan().refusal, "no")
    assert problem.change == "--pipeline-parallel-size 2"


def test_a_layout_that_only_the_hybrid_manager_can_keep_switches_it_on() -> None:
    found = variants(deployment("Qwen3-8B", "H200", "0.33.0", disable_hybrid_kv_cache_manager=True))
    layers = tuple(
        CacheLayer(kind="sliding" if window else "full", kv_heads=8, head_dim=128, window_tokens=window)
        for window in (0, 512, 1024) * 4
    )
    shape = replace(found.candidate.geometry, layers=layers)
    (problem,) = problems.of(replace(found, candidate=replace(found.candidate, geometry=shape)))
    assert "different windows" in problem.text
    assert problem.change == "--no-disable-hybrid-kv-cache-manager"


@pytest.mark.parametrize(
    ("values", "flag"),
    [({"kv_cache_memory_bytes": 100 * GIB}, "kv_cache_memory_bytes"),
     ({"num_gpu_blocks_override": 1_000_000}, "num_gpu_blocks_override")],
)  # fmt: skip
def test_a_cache_that_was_asked_for_has_to_fit_the_card(values: dict[str, int], flag: str) -> None:
    whole = deployment("Qwen3-8B", "H100", "0.33.0", **values)
    (found,) = problems.of(variants(whole))
    assert found.starts == "no"
    assert " GiB was asked for: with 15." in found.text
    assert found.text.endswith("it is more than 79.18 (79.10 to 79.21) GiB")
    assert typed(found.change, "0.33.0").keys() == {flag}
    assert ledger(applied(whole, found.change)).starts == "yes"


def test_a_cache_too_small_for_one_request_is_raised_where_a_shorter_context_were_of_no_use() -> None:
    whole = deployment("Qwen3-8B", "H100", "0.33.0", kv_cache_memory_bytes=2**26)
    found = only(whole, "max-model-len-exceeds-kv-pool")
    assert typed(found.change, "0.33.0").keys() == {"kv_cache_memory_bytes"}


def test_graphs_beside_the_budget_ask_for_a_smaller_share() -> None:
    whole = deployment("Qwen3-0.6B", "4090", "0.11.0", gpu_memory_utilization=0.99)
    found = only(whole, "cuda-graph-capture-oom")
    assert (found.severity, found.starts) == ("warning", "perhaps")
    assert found.text.startswith("CUDA graphs take 0.")
    assert " GiB beside the 23.28 (23.28 to 23.41) GiB asked for, and the device has 23.52" in found.text
    assert typed(found.change, "0.11.0").keys() == {"gpu_memory_utilization"}


def test_a_share_without_room_for_the_driver() -> None:
    whole = deployment("Qwen3-0.6B", "4060", "0.33.0", gpu_memory_utilization=0.99)
    found = only(whole, "memory-fraction-above-free")
    assert found.text.endswith("GiB are asked for, and a driver's own context takes about 0.30 GiB")
    assert found.change


def test_a_server_whose_log_shows_its_pool_has_taken_every_hurdle() -> None:
    whole = deployment("Qwen3-0.6B", "4090", "0.11.0", gpu_memory_utilization=0.99, tensor_parallel_size=3)
    assert [one for one in problems.of(variants(whole, pool=exact(8 * GIB))) if one.severity != "info"] == []


def test_requests_longer_than_what_is_served() -> None:
    whole = deployment("Qwen3-8B", "H100", max_model_len=8192)
    found = only(whole, "prompt-exceeds-context-limit", Load(concurrency=2, context_tokens=20_000))
    assert found.text == "requests of 20,000 tokens are longer than the 8,192 that are served: they are refused"
    assert found.change == "--max-model-len 20000"
    beyond = only(whole, "prompt-exceeds-context-limit", Load(concurrency=2, context_tokens=2_000_000))
    assert beyond.change == "", "longer than the model was made for"


def test_a_request_larger_than_the_pool() -> None:
    """Releases that check the bytes of a request, and not its blocks, start with one block too few."""
    whole = deployment("Qwen3-8B", "H100")
    block_bytes = 16 * 144 * 1024
    fits, one_less = (variants(whole, pool=exact(blocks * block_bytes)) for blocks in (2561, 2560))
    assert problems.of(fits) == ()
    (problem,) = problems.of(one_less)
    assert (problem.severity, problem.starts, problem.cause) == ("warning", "yes", "request-larger-than-kv-pool")
    assert problem.text == (
        "this release starts, but one request of 40,960 tokens needs 2,560 blocks, the pool has 2,559"
    )


def test_a_request_of_the_load_that_the_pool_cannot_hold() -> None:
    load = Load(concurrency=1, context_tokens=40_000)
    (problem,) = problems.planned(variants(deployment("Qwen3-8B", "H100"), load, pool=exact(2490 * 16 * 144 * 1024)))
    assert problem.text == "as planned, one request of 40,000 tokens needs 2,500 blocks, the pool has 2,489"
    assert (problem.severity, problem.cause) == ("warning", "request-larger-than-kv-pool")


def test_more_requests_than_the_pool_holds() -> None:
    found = only(
        deployment("Qwen3-32B", "H200"), "kv-pool-exhausted-preemption", Load(concurrency=200, context_tokens=8000)
    )
    assert found.severity == "warning"
    assert "200 requests of 8,000 tokens need 100,000 blocks" in found.text
    assert int(str(typed(found.change, "0.19.0")["max_num_seqs"])) < 200


def test_the_cap_that_is_advised_is_the_one_that_is_solved_for() -> None:
    load = Load(concurrency=40, context_tokens=12_000)
    whole = deployment("Qwen3-32B", "A100-SXM4-40GB", "0.33.0", count=8, tensor_parallel_size=4)
    found = only(whole, "kv-pool-exhausted-preemption", load)
    (solution,) = solve.solve(variants(whole, load), load, ("max-num-seqs",))
    assert found.change == solution.change != ""


def test_a_load_that_fits_is_told_so_and_one_that_perhaps_fits_is_a_warning() -> None:
    whole = deployment("Qwen3-32B", "L40S", "0.33.0", count=2, tensor_parallel_size=2)
    first = problems.of(variants(whole, Load(concurrency=2, context_tokens=4096)))[0]
    assert (first.severity, first.starts) == ("info", "yes")
    assert first.text.startswith("2 requests of 4,096 tokens need 512 blocks, the pool has at least ")
    assert first.text.endswith(": they fit at once")
    found = only(whole, "kv-pool-exhausted-preemption", Load(concurrency=4, context_tokens=16384))
    assert "4 requests of 16,384 tokens need 4,096 blocks" in found.text
    assert found.text.endswith("it is not certain that they fit at once")
    assert found.severity == "warning"


def test_requests_that_the_cap_leaves_waiting() -> None:
    load = Load(concurrency=40, context_tokens=4000)
    whole = deployment("Qwen3-32B", "H200", "0.33.0", max_num_seqs=24)
    found = only(whole, "max-num-seqs-too-low", load)
    assert found.text == "16 of 40 requests wait: max_num_seqs admits 24 at once"
    assert found.change == "--max-num-seqs 40"


def test_a_load_of_which_only_the_number_is_known_is_of_the_longest_requests() -> None:
    whole = deployment("Qwen3-32B", "H200", "0.33.0")
    found = account.of(whole, (), account.Wanted(concurrency=500)).ledger.problems
    assert any("requests of 40,960 tokens need" in one.text for one in found)


def test_fewer_devices_are_not_advised_where_the_load_does_not_fit_on_them() -> None:
    whole = deployment("Qwen3-32B", "A100-SXM4-40GB", "0.33.0", count=8, tensor_parallel_size=8)
    said = [one.cause for one in problems.of(variants(whole))]
    loaded = [one.cause for one in problems.of(variants(whole, Load(concurrency=40, context_tokens=12_000)))]
    assert "tp-oversplit-small-model" in said
    assert "tp-oversplit-small-model" not in loaded


def test_replicas_share_a_load() -> None:
    load = Load(concurrency=40, context_tokens=8000)
    whole = deployment("Qwen3-32B", "H200", data_parallel_size=8, max_num_seqs=256)
    assert [one for one in problems.of(variants(whole, load)) if one.cause in AFTER_START] == []


def test_a_planned_length_warns_before_it_bites() -> None:
    """Mean input 300 -> 5,000 tokens, as in a published incident review."""
    whole = deployment("Qwen3-32B", "H200", "0.33.0")
    wanted = account.Wanted(context_tokens=300, concurrency=64, plan_context=5000)
    found = account.of(whole, (), wanted)
    assert found.ledger.starts == "yes"
    fits, problem = found.ledger.problems
    assert (fits.severity, fits.text.split(",")[0]) == ("info", "64 requests of 300 tokens need 1")
    assert (problem.severity, problem.cause) == ("warning", "kv-pool-exhausted-preemption")
    assert problem.text.startswith("as planned, 64 requests of 5,000 tokens need 20,032 blocks")
    smaller = account.of(applied(whole, problem.change), (), wanted)
    assert [one.severity for one in smaller.ledger.problems] == ["warning", "info"]
    assert smaller.ledger.problems[0].text.startswith("13 of 64 requests wait: max_num_seqs admits 51")


def test_what_does_not_divide_is_a_problem_with_a_change_that_starts() -> None:
    whole = deployment("Qwen3-32B", "H100", tensor_parallel_size=3)
    found = ledger(whole)
    assert found.starts == "no"
    assert found.problems[0].text == "64 attention heads do not divide by 3"
    assert ledger(applied(whole, found.problems[0].change)).starts == "yes"


def test_without_a_card_nothing_is_said() -> None:
    found = ledger(deployment("Qwen3-32B"))
    assert (found.starts, found.problems) == ("unknown", ())


SHARES = st.none() | st.sampled_from([0.3, 0.5, 0.8, 0.95, 0.99])
LENGTHS = st.none() | st.sampled_from([1000, 8192, 32768, 131072])


@st.composite
def deployments(draw: st.DrawFn) -> Deployment:
    found = models.find(draw(st.sampled_from(models.names())))
    assert found is not None
    values = {
        "tensor_parallel_size": draw(st.none() | st.sampled_from([2, 3, 4, 8])),
        "pipeline_parallel_size": draw(st.none() | st.just(2)),
        "gpu_memory_utilization": draw(SHARES),
        "max_model_len": draw(LENGTHS),
        "max_num_seqs": draw(st.none() | st.sampled_from([8, 64, 1024])),
        "kv_cache_memory_bytes": draw(st.none() | st.sampled_from([2**28, 2**32, 2**35])),
        "enforce_eager": draw(st.none() | st.just(True)),
    }
    return Deployment(
        engine="vllm",
        version=draw(st.sampled_from(RELEASES)),
        flags=tuple(Flag(name=name, value=value) for name, value in values.items() if value is not None),
        model=ModelFacts(name=found.name, config=found.config),
        hardware=HardwareFacts(accelerator=draw(st.sampled_from(CARDS)), count=draw(st.sampled_from([None, 1, 8]))),
    )


@settings(max_examples=60, deadline=None)
@given(
    deployments(), st.none() | st.builds(Load, concurrency=st.integers(1, 200), context_tokens=st.integers(1, 50_000))
)
def test_whatever_is_advised_starts(whole: Deployment, load: Load | None) -> None:
    try:
        found = ledger(whole, load)
    except CallerError:
        return
    assert (found.starts == "no") == any(one.starts == "no" for one in found.problems)
    for problem in found.problems:
        if problem.change:
            after = ledger(applied(whole, problem.change), load)
            assert problem.severity == "info" or after.starts == "yes", problem
            assert problem.text not in {one.text for one in after.problems}
