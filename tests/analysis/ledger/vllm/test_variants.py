"""A deployment and what it would be with other flags."""

from __future__ import annotations

from tests.analysis.ledger.servers import deployment, variants

from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.analysis.ledger.vllm.candidate import Load
from llmedic.knowledge import accelerators


def test_changes_are_typed_as_the_release_spells_them() -> None:
    whole = variants(deployment("Qwen3-8B", "H100", "0.33.0"))
    assert whole.typed({"max_num_seqs": 8, "enforce_eager": True}) == "--max-num-seqs 8 --enforce-eager"
    assert whole.typed({"disable_hybrid_kv_cache_manager": False}) == "--no-disable-hybrid-kv-cache-manager"
    assert whole.typed({"kv_cache_memory_bytes": 5}) == "--kv-cache-memory-bytes 5"
    before = variants(deployment("Qwen3-8B", "H100", "0.8.5"))
    assert before.typed({"kv_cache_memory_bytes": 5, "max_num_seqs": 8}) == "", "0.8 cannot take it"


def test_defaults_follow_a_flag() -> None:
    whole = variants(deployment("Qwen3-8B", "H100", "0.11.0", max_model_len=512))
    fewer = whole.other({"max_num_seqs": 4})
    assert fewer is not None
    assert fewer.settings.max_num_batched_tokens == 4 * 512


def test_what_no_server_can_have_is_none() -> None:
    whole = variants(deployment("Qwen3-8B", "H100", decode_context_parallel_size=2, tensor_parallel_size=2))
    assert whole.other({"tensor_parallel_size": 1}) is None
    assert whole.first([{"tensor_parallel_size": 1}]) == ""


def test_another_card_brings_its_defaults_and_nothing_that_was_printed() -> None:
    whole = variants(deployment("Qwen3-8B", "L4", "0.33.0"), free_gib=20, pool=exact(GIB))
    card = accelerators.find("H200")
    assert card is not None
    moved = whole.on(card)
    assert moved.candidate.settings.max_num_seqs == 1024
    assert moved.candidate.known_pool is None
    assert moved.free_bytes is None
    assert moved.card == card
    assert moved.candidate.card.total_bytes == card.memory


def test_the_first_that_starts_is_taken() -> None:
    whole = variants(deployment("Qwen3-32B", "H100", "0.33.0"))
    options = [{"max_model_len": 40960}, {"max_model_len": 8192}, {"max_model_len": 4096}]
    assert whole.first(options) == "--max-model-len 8192"
    assert whole.first(options[:1]) == ""
    assert whole.first([]) == ""


def test_a_change_may_need_another_beside_it() -> None:
    whole = variants(deployment("Llama-3.1-70B-Instruct", "4090", "0.33.0"))
    shorter = whole.first([{"tensor_parallel_size": 8}])
    assert shorter.startswith("--max-model-len ")
    assert shorter.endswith(" --tensor-parallel-size 8")
    assert whole.first([{"tensor_parallel_size": 8}], alone=True) == ""


def test_a_shorter_context_still_holds_the_load() -> None:
    load = Load(concurrency=1, context_tokens=100_000)
    whole = variants(deployment("Llama-3.1-70B-Instruct", "4090", "0.33.0"), load)
    assert whole.least_length == 100_000
    assert whole.first([{"tensor_parallel_size": 8}]) == ""


def test_a_share_that_leaves_too_little_beside_it_comes_down_too() -> None:
    whole = variants(deployment("Qwen3-8B", "4090", "0.11.0", gpu_memory_utilization=0.99, tensor_parallel_size=3))
    found = whole.first([{"tensor_parallel_size": 4}])
    assert found.startswith("--gpu-memory-utilization 0.9")
    assert found.endswith(" --tensor-parallel-size 4")


def test_sound_is_more_than_a_pool() -> None:
    whole = variants(deployment("Qwen3-8B", "H100", "0.33.0", max_model_len=4096), free_gib=78)
    assert whole.sound(whole.candidate)
    assert not variants(whole.deployment, free_gib=60).sound(whole.candidate), "less is free than is asked for"
    assert not whole.sound(whole.candidate.changed(max_num_batched_tokens=512, max_num_seqs=1024))
    assert not whole.sound(whole.candidate.changed(tensor_parallel=3))
    assert not whole.sound(whole.candidate.changed(utilization=0.999))


def test_the_longest_context_is_rounded_down() -> None:
    whole = variants(deployment("Qwen3-8B", "H100", "0.33.0"), pool=exact(300 * 16 * 144 * 1024))
    assert whole.servable(whole.candidate) == 299 * 16 // 256 * 256
    tiny = variants(whole.deployment, pool=exact(3 * 16 * 144 * 1024))
    assert tiny.servable(tiny.candidate) == 32
    assert variants(whole.deployment, pool=exact(-5)).servable(tiny.candidate) >= 0
