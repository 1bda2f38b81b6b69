"""The whole ledger of a vLLM server: where each term comes from, and what is left open."""

from __future__ import annotations

import pytest
from tests.analysis.ledger.servers import deployment, variants

from llmedic.analysis.ledger import account, subject
from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.analysis.ledger.vllm import balance
from llmedic.errors import UsageError
from llmedic.model.deployment import Deployment, HardwareFacts, ModelFacts
from llmedic.model.ledger import Ledger, Range


def ledger(whole: Deployment, known: balance.Known | None = None) -> Ledger:
    known = known or balance.Known(terms={})
    server = variants(whole, pool=known.pool).candidate
    return balance.ledger(server, whole, subject.card(whole.hardware), known, None)


def test_the_terms_add_up() -> None:
    found = ledger(deployment("Qwen3-32B", "H200", "0.33.0", tensor_parallel_size=2))
    assert found.requested is not None
    assert found.pool is not None
    assert found.pool.size.likely == pytest.approx(
        found.requested.size.likely - sum(term.size.likely for term in found.terms)
    )
    assert [term.id for term in found.terms] == ["weights", "activation", "non_torch", "cuda_graphs"]
    assert found.pool.how.count(" - ") == len(found.terms)
    assert (found.starts, found.devices, found.gaps) == ("yes", 2, ())
    assert found.cache is not None
    assert found.cache.longest_request.likely == 40_960


@pytest.mark.parametrize(
    ("version", "values", "era", "formula"),
    [
        ("0.33.0", {}, "vllm-graphs-inside", "CUDA graph estimate"),
        ("0.11.0", {}, "vllm-graphs-outside", "weights - activation peak - non-torch"),
        ("0.7.3", {}, "vllm-first-engine", "KV cache = total x 0.9 - "),
        ("0.33.0", {"kv_cache_memory_bytes": 2**30}, "vllm-cache-given", "KV cache = --kv-cache-memory-bytes"),
    ],
)
def test_the_era_names_the_formula(version: str, values: dict[str, int], era: str, formula: str) -> None:
    found = ledger(deployment("Qwen3-8B", "H100", version, **values))
    assert found.era == era
    assert formula in found.formula
    assert (era == "vllm-graphs-outside") == bool(found.outside and "graphs-outside" in era)


def test_without_a_card_there_is_a_gap_and_no_pool() -> None:
    found = ledger(deployment("Qwen3-8B"))
    assert (found.total, found.requested, found.pool, found.cache, found.starts) == (None, None, None, None, "unknown")
    assert found.gaps == (balance.GAP_CARD,)
    assert found.terms[0].id == "weights"


def test_a_cache_that_was_asked_for_needs_no_card() -> None:
    found = ledger(deployment("Qwen3-8B", version="0.33.0", kv_cache_memory_bytes=8 * GIB))
    assert found.pool is not None
    assert (found.pool.basis, found.pool.size) == ("given", exact(8 * GIB))
    assert found.cache is not None
    assert found.cache.blocks == exact(8 * GIB // (16 * 144 * 1024))
    assert found.starts == "yes"


def test_blocks_that_were_asked_for() -> None:
    found = ledger(deployment("Qwen3-8B", "H100", "0.33.0", num_gpu_blocks_override=5000))
    assert found.cache is not None
    assert found.cache.blocks == exact(5000)


def test_what_was_printed_is_shown_instead() -> None:
    size = Range(low=15.2 * GIB, likely=15.3 * GIB, high=15.4 * GIB)
    known = balance.Known(terms={"weights": size, "total": exact(79.19 * GIB)}, pool=exact(50 * GIB))
    found = ledger(deployment("Qwen3-8B", "H100", "0.11.0"), known)
    assert found.terms[0].size == size
    assert found.terms[0].basis == "printed"
    assert found.pool is not None
    assert (found.pool.basis, found.pool.size.likely) == ("printed", 50 * GIB)
    assert found.total is not None
    assert found.total.basis == "printed"


def test_a_refused_layout_has_no_cache() -> None:
    found = ledger(deployment("gemma-3n-E4B-it", "H200", "0.9.2", pipeline_parallel_size=3))
    assert (found.cache, found.starts) == (None, "no")


def test_offloaded_weights_and_a_media_decoder() -> None:
    plain = ledger(deployment("Qwen3-8B", "H100", "0.33.0"))
    offloaded = ledger(deployment("Qwen3-8B", "H100", "0.33.0", cpu_offload_gb=4, mm_ipc_gpu_memory_gb=2))
    assert offloaded.terms[0].size.likely == plain.terms[0].size.likely - 4 * GIB
    assert {term.id: term.size for term in offloaded.terms}["media_decoder"] == exact(2 * GIB)


def test_settings_are_shown_with_who_set_them() -> None:
    whole = deployment("Qwen3-8B", "H100", "0.33.0", tensor_parallel_size=2, max_model_len=8192)
    shown = {one.flag: (one.value, one.origin) for one in balance.shown(variants(whole).candidate.settings, whole)}
    assert shown == {
        "--gpu-memory-utilization": ("0.92", "default"),
        "--max-model-len": ("8192", "given"),
        "--max-num-seqs": ("1024", "default"),
        "--max-num-batched-tokens": ("8192", "default"),
        "--tensor-parallel-size": ("2", "given"),
    }


def test_the_longest_request_is_no_longer_than_what_is_served() -> None:
    found = ledger(deployment("Qwen3-8B", "H100", "0.33.0", max_model_len=16384))
    assert found.cache is not None
    assert found.cache.longest_request == exact(16384)


@pytest.mark.parametrize("word", ["auto", "-1"])
def test_a_length_that_fits_itself_starts_with_what_the_pool_holds(word: str) -> None:
    found = ledger(deployment("Qwen3-32B", "H100", "0.33.0", max_model_len=word))
    fixed = ledger(deployment("Qwen3-32B", "H100", "0.33.0"))
    assert (fixed.starts, found.starts) == ("no", "yes")
    assert found.cache is not None
    assert 20_000 < found.cache.max_model_len < 40_960
    assert found.cache.concurrency.likely == pytest.approx(1, abs=0.01)
    (note,) = (note for note in found.notes if note.startswith("max_model_len fits itself to the memory: "))
    assert note.endswith(" tokens")


def test_a_length_that_fits_itself_is_the_models_own_where_that_fits_and_of_no_use_without_a_pool() -> None:
    roomy = ledger(deployment("Qwen3-8B", "H100", "0.33.0", max_model_len="auto"))
    assert roomy.cache is not None
    assert (roomy.starts, roomy.cache.max_model_len) == ("yes", 40_960)
    assert ledger(deployment("Qwen3-32B", "L4", "0.33.0", max_model_len="auto")).starts == "no"


def test_releases_before_know_no_length_that_fits_itself() -> None:
    with pytest.raises(UsageError, match=r"of vLLM 0\.14 and later"):
        ledger(deployment("Qwen3-8B", "H100", "0.13.0", max_model_len="auto"))


def test_a_model_that_keeps_no_cache_is_not_told_that_it_does_not_start() -> None:
    config = {
        "model_type": "bert", "architectures": ["BertModel"], "num_hidden_layers": 12, "num_attention_heads": 12,
        "hidden_size": 768, "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512,
    }  # fmt: skip
    hardware = HardwareFacts(accelerator="NVIDIA L4")
    found = account.of(Deployment(engine="vllm", model=ModelFacts(config=config), hardware=hardware)).ledger
    assert (found.starts, found.pool, found.cache, found.problems) == ("unknown", None, None, ())
    assert "the model keeps no KV cache: nothing to size" in found.notes


def test_weights_under_a_quantisation_that_nobody_knows_may_be_four_bits_wide() -> None:
    known = deployment("Qwen3-8B", "H100", "0.19.0")
    config = {**known.model.config, "quantization_config": {"quant_method": "zzz", "bits": 3}}
    found = ledger(
        Deployment(engine="vllm", version="0.19.0", model=ModelFacts(config=config), hardware=known.hardware)
    )
    weights = next(term.size for term in found.terms if term.id == "weights")
    assert weights.low < 4.2 * GIB < 15 * GIB < weights.high
