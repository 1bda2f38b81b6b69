"""SGLang's defaults, pools and verdicts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.analysis.ledger.sglang import ledger, pool, settings
from llmedic.analysis.ledger.sglang.fraction import capture_sizes, fraction
from llmedic.errors import InputError, UsageError
from llmedic.model.deployment import Deployment, Flag, FlagValue, HardwareFacts, ModelFacts
from llmedic.model.geometry import CacheLayer, Geometry, StateTensor, WeightPart
from llmedic.model.ledger import Range, Term

GIB = 2**30
H100, RTX_4090, L40S, H200, B200 = 81559, 24564, 46068, 143771, 183359


def geometry(
    *layers: CacheLayer, weights_gib: float = 14.0, architecture: str = "LlamaForCausalLM", multimodal: bool = False
) -> Geometry:
    part = WeightPart(name="mlp", parameters=1, bytes=weights_gib * GIB, split="tensor", layer=0)
    return Geometry(
        architecture=architecture,
        layers=layers or (CacheLayer(kind="full", kv_heads=8, head_dim=128),) * 32,
        weights=(part,),
        hidden_size=4096,
        vocabulary=128256,
        query_heads=32,
        mlp_width=14336,
        positions=131072,
        multimodal=multimodal,
    )


def server(version: str = "0.5.23", flags: dict[str, FlagValue] | None = None, **config: object) -> Deployment:
    return Deployment(
        engine="sglang",
        version=version,
        flags=tuple(Flag(name=name, value=value) for name, value in (flags or {}).items()),
        model=ModelFacts(config=config),
        hardware=HardwareFacts(),
    )


def card(gib: float) -> Term:
    return Term(id="total", size=Range(low=gib * GIB, likely=gib * GIB, high=gib * GIB), basis="given")


def share(version: str, smi: float, flags: dict[str, FlagValue] | None = None, **config: object) -> float:
    shape = geometry(multimodal="vision_config" in config)
    deployment = server(version, flags, **config)
    return fraction(shape, settings.resolve(shape, deployment, smi), deployment, smi).likely


@pytest.mark.parametrize(
    ("version", "smi", "flags", "expected"),
    [
        ("0.4.6", H100, {}, 0.88),
        ("0.4.6", H100, {"tensor_parallel_size": 8}, 0.81),
        ("0.4.6", H200, {}, 1 - 13312 / H200),
        ("0.4.10", H100, {}, round(1 - 10 * 1024 / H100, 3)),
        ("0.4.10", RTX_4090, {}, round(1 - 2.9 * 1024 / RTX_4090, 3)),
        ("0.4.10", B200, {}, round(1 - 32 * 1024 / B200, 3)),
        ("0.5.2", H100, {"speculative_algorithm": "STANDALONE"}, round(1 - 16 * 1024 / H100, 3)),
        (
            "0.5.2",
            H100,
            {"speculative_algorithm": "EAGLE", "enable_dp_attention": True},
            round(1 - 16 * 1024 / H100, 3),
        ),
        ("0.5.5", H100, {}, round(1 - (512 + 8192 * 1.5 + 512 + 128) / H100, 3)),
        ("0.5.5", RTX_4090, {}, round(1 - (512 + 3072 + 48 + 128) / RTX_4090, 3)),
        ("0.5.5", H100, {"speculative_algorithm": "NGRAM"}, round(1 - (512 + 8192 * 1.5 + 512 + 128) / H100, 3)),
        ("0.5.5", H100, {"chunked_prefill_size": -1}, round(1 - (512 + 16384 * 1.5 + 512 + 128) / H100, 3)),
        ("0.5.12", L40S, {}, round(1 - (512 + 6144 + 64 + 128 + capture_sizes(4096) * 8) / L40S, 3)),
        ("0.5.12", L40S, {"enforce_eager": True, "disable_piecewise_cuda_graph": True}, round(1 - 6784 / L40S, 3)),
        (
            "0.5.12",
            L40S,
            {"speculative_algorithm": "EAGLE"},
            round(1 - (6848 + capture_sizes(4096) * 8 + 4096) / L40S, 3),
        ),
        ("0.5.23", L40S, {"speculative_algorithm": "EAGLE"}, round(1 - (6848 + capture_sizes(4096) * 8) / L40S, 3)),
        ("0.5.23", RTX_4090, {}, round(1 - (512 + 6144 + 96 + 128 + capture_sizes(4096) * 8) / RTX_4090, 3)),
        ("", H100, {"mem_fraction_static": 0.7}, 0.7),
        ("0.5.5", H100, {"max_num_seqs": 16, "chunked_prefill_size": 512}, round(1 - 10 * 1024 / H100, 3)),
    ],
)
def test_the_share_of_a_release_and_card(
    version: str, smi: float, flags: dict[str, FlagValue], expected: float
) -> None:
    assert share(version, smi, flags) == pytest.approx(expected, abs=1e-9)


def test_attention_in_parallel_needs_more_beside() -> None:
    flags: dict[str, FlagValue] = {"tensor_parallel_size": 8, "data_parallel_size": 8, "enable_dp_attention": True}
    plain = 512 + 8192 * 1.5 + 512 * 2 + 1024
    assert share("0.5.5", H100, flags) == round(1 - (plain + 512 * 8 * 4.5) / H100, 3)
    small = {**flags, "max_cudagraph_capture_size": 256}
    assert share("0.5.5", H100, small) == round(1 - (plain - 512 + 256 * 8 * 3) / H100, 3)


def test_models_that_see_get_less_by_the_size_of_their_encoder() -> None:
    small = share("0.5.5", H100, vision_config={"num_hidden_layers": 24, "hidden_size": 1024})
    large = share("0.5.5", H100, vision_config={"num_hidden_layers": 48, "hidden_size": 2048})
    assert small == pytest.approx(share("0.5.5", H100) * 0.95)
    assert large == pytest.approx(share("0.5.5", H100) * 0.76)
    shape = geometry(multimodal=True)
    deployment = server("0.5.5", vision_config={"hidden_size": "wide"})
    unknown = fraction(shape, settings.resolve(shape, deployment, H100), deployment, H100)
    assert unknown.low < small < unknown.high


def test_prefill_graphs_are_counted_as_the_engine_lists_them() -> None:
    assert capture_sizes(32) == 8
    assert capture_sizes(4096) == 8 + 14 + 8 + 8 + 12
    assert capture_sizes(8192) == 50 + 8


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ({"mem_fraction_static": 1.2}, "share of the card"),
        ({"mem_fraction_static": "most"}, "not a number"),
        ({"kv_cache_dtype": "q8_0"}, "no 'q8_0'"),
        ({"tensor_parallel_size": 0}, "out of range"),
    ],
)
def test_a_value_that_the_engine_would_refuse_is_one_clear_line(flags: dict[str, FlagValue], word: str) -> None:
    with pytest.raises(InputError, match=word):
        ledger(geometry(), server(flags=flags), card(79.2))


def test_degrees_that_do_not_fit_together_are_one_clear_line() -> None:
    flags: dict[str, FlagValue] = {"tensor_parallel_size": 4, "data_parallel_size": 3, "enable_dp_attention": True}
    with pytest.raises(UsageError, match="divisible"):
        ledger(geometry(), server(flags=flags), card(79.2))


def test_the_cache_gets_the_static_share_less_the_weights() -> None:
    found = ledger(geometry(), server(flags={"mem_fraction_static": 0.8}), card(79.2))
    assert found.starts == "yes"
    assert found.pool is not None
    assert found.requested is not None
    weights = found.terms[0].size.likely
    assert found.pool.size.likely == pytest.approx(found.requested.size.likely - weights)
    assert found.requested.size.likely == pytest.approx((79.2 - 0.55) * 0.8 * GIB)
    assert found.cache is not None
    assert found.cache.bytes_per_token == 131072
    assert found.cache.printed_tokens.likely == found.pool.size.likely // 131072
    assert {term.id for term in found.outside} == {"non_torch", "request_slots", "cuda_graphs", "free_outside"}


def test_without_a_card_it_is_unknown_and_says_how_to_know() -> None:
    found = ledger(geometry(), server(), None)
    assert (found.starts, found.pool) == ("unknown", None)
    assert found.terms[0].id == "weights"
    assert found.gaps[0].how.startswith("--gpu")


def test_too_small_a_share_comes_with_the_one_that_starts() -> None:
    flags: dict[str, FlagValue] = {"mem_fraction_static": 0.5}
    found = ledger(geometry(weights_gib=60), server(flags=flags), card(79.2))
    problem = found.problems[0]
    assert (found.starts, problem.cause) == ("no", "startup-no-memory-for-kv")
    better: dict[str, FlagValue] = {"mem_fraction_static": float(problem.change.removeprefix("--mem-fraction-static "))}
    assert ledger(geometry(weights_gib=60), server(flags=better), card(79.2)).starts == "yes"


def test_weights_that_are_too_large_need_more_ranks() -> None:
    found = ledger(geometry(weights_gib=90), server(), card(79.2))
    assert found.problems[0].cause == "weights-do-not-fit"
    assert found.problems[0].change == "--tp-size 2"
    spread = ledger(geometry(weights_gib=90), server(flags={"tensor_parallel_size": 2}), card(79.2))
    assert spread.starts == "yes"


def test_a_context_that_is_longer_than_the_pool_is_told() -> None:
    found = ledger(geometry(), server(flags={"mem_fraction_static": 0.9}), card(23.5))
    problem = found.problems[0]
    assert problem.cause == "max-model-len-exceeds-kv-pool"
    tokens = int(problem.change.removeprefix("--context-length "))
    shorter = server(flags={"mem_fraction_static": 0.9, "max_model_len": tokens})
    assert not ledger(geometry(), shorter, card(23.5)).problems


def test_kv_heads_are_divided_and_repeated() -> None:
    layers = (CacheLayer(kind="full", kv_heads=4, head_dim=128),)

    def each(**flags: FlagValue) -> float:
        shape = geometry(*layers)
        return pool.cells(shape, settings.resolve(shape, server(flags=flags), H100)).full

    assert each() == 4 * 128 * 2 * 2
    assert each(tensor_parallel_size=2) == each() / 2
    assert each(tensor_parallel_size=8) == each() / 4
    assert each(tensor_parallel_size=8, data_parallel_size=8, enable_dp_attention=True) == each()
    assert each(pipeline_parallel_size=2) == each() / 2
    assert each(kv_cache_dtype="fp8_e5m2") == each() / 2


def test_sparse_attention_keeps_scales_and_an_index() -> None:
    shape = geometry(CacheLayer(kind="mla", latent_dim=576, index_dim=128))
    plain = pool.cells(shape, settings.resolve(shape, server(), H100))
    narrow = pool.cells(shape, settings.resolve(shape, server(flags={"kv_cache_dtype": "fp8_e4m3"}), H100))
    assert plain.full == 576 * 2 + 132
    assert narrow.full == 656 + 132


@pytest.mark.parametrize(
    ("architecture", "version", "expected"),
    [
        ("GptOssForCausalLM", "0.5.9", True),
        ("Gemma4ForConditionalGeneration", "0.5.12", False),
        ("Gemma4ForConditionalGeneration", "", True),
        ("gpt-oss", "", True),
        ("Gemma3ForCausalLM", "", False),
    ],
)
def test_only_some_architectures_have_a_sliding_pool(architecture: str, version: str, expected: bool) -> None:
    window = CacheLayer(kind="sliding", kv_heads=8, head_dim=64, window_tokens=128)
    shape = geometry(window, CacheLayer(kind="full", kv_heads=8, head_dim=64), architecture=architecture)
    found = ledger(shape, server(version), card(79.2))
    assert found.cache is not None
    assert found.cache.groups == (2 if expected else 1)
    assert any("keeps every token" in note for note in found.notes) is not expected


def test_recurrent_state_takes_its_ratio_of_the_rest() -> None:
    state = CacheLayer(
        kind="state", state=(StateTensor(name="conv", elements=24576), StateTensor(name="ssm", elements=524288))
    )
    shape = geometry(*[state] * 24, *[CacheLayer(kind="full", kv_heads=4, head_dim=256)] * 8)
    found = ledger(shape, server(), card(79.2))
    assert found.pool is not None
    taken = next(term.size.likely for term in found.terms if term.id == "state")
    assert taken / found.pool.size.likely == pytest.approx(0.9, abs=0.01)
    assert found.pool.size.low < found.pool.size.likely < found.pool.size.high
    one = 24 * (24576 * 2 + 524288 * 4)
    assert pool.state_bytes(shape, settings.resolve(shape, server(), H100)) == one
    fixed = ledger(shape, server(flags={"max_mamba_cache_size": 99}), card(79.2))
    assert next(term.size.likely for term in fixed.terms if term.id == "state") == 100 * one
    resolved = settings.resolve(shape, server(), H100)
    assert pool.running_limit(resolved, 10**6, 99) == 33


def test_running_requests_follow_from_tokens_and_context() -> None:
    resolved = settings.resolve(geometry(), server(), H100)
    assert pool.running_limit(resolved, 10**6, 0) == int(10**6 / 131072 * 512)
    assert pool.running_limit(resolved, 5000, 0) == 2048
    assert pool.running_limit(resolved, 100, 0) == 50


@given(st.floats(0, 1e11), st.integers(1, 256))
def test_pools_never_take_more_than_they_were_given(available: float, page: int) -> None:
    shape = geometry()
    resolved = settings.resolve(shape, server(flags={"block_size": page}), H100)
    one = pool.cells(shape, resolved)
    found = pool.pool(one, available, resolved)
    assert found.tokens % page == 0
    assert found.tokens * one.full <= available


@pytest.mark.parametrize("version", ["0.4.6", "0.4.10", "0.5.2", "0.5.23"])
@pytest.mark.parametrize(
    ("gib", "flags"),
    [
        (0.2, {}),
        (1, {}),
        (4, {"tensor_parallel_size": 8}),
        (24, {"chunked_prefill_size": 20000}),
        (24, {"max_cudagraph_capture_size": 20000}),
        (1, {"mem_fraction_static": 0.9, "chunked_prefill_size": -1}),
    ],
)
def test_a_card_with_too_little_memory_has_a_ledger_without_negative_sizes(
    version: str, gib: float, flags: dict[str, FlagValue]
) -> None:
    state = CacheLayer(kind="state", state=(StateTensor(name="ssm", elements=2**20),))
    for shape in (geometry(weights_gib=140), geometry(*(state,) * 8, weights_gib=140)):
        found = ledger(shape, server(version, flags), card(gib))
        assert found.starts == "no"
        assert "nothing is left" in found.problems[0].text
        assert found.requested is not None
        assert min(term.size.low for term in (found.requested, *found.terms, *found.outside)) >= 0


@pytest.mark.parametrize("flag", ["chunked_prefill_size", "max_cudagraph_capture_size"])
def test_batches_for_which_more_is_set_aside_than_there_is_come_with_smaller_ones(flag: str) -> None:
    found = ledger(geometry(), server(flags={flag: 20000}), card(24)).problems[0]
    typed, value = found.change.split()
    assert typed in ("--chunked-prefill-size", "--cuda-graph-max-bs")
    assert ledger(geometry(), server(flags={flag: int(value)}), card(24)).starts == "yes"


@pytest.mark.parametrize("count", [None, 1, 2, 4, 8])
@pytest.mark.parametrize("weights_gib", [30, 90, 440])
def test_what_is_advised_starts_when_it_is_typed_and_needs_no_card_that_is_not_there(
    count: int | None, weights_gib: float
) -> None:
    shape, machine = geometry(weights_gib=weights_gib), HardwareFacts(count=count)
    found = ledger(shape, replace(server(), hardware=machine), card(24)).problems[0]
    if not found.change:
        assert weights_gib > 14 * (count or 16)
        return
    flag, value = found.change.split()
    assert flag == "--tp-size"
    assert int(value) <= (count or 16)
    assert ledger(shape, server(flags={"tensor_parallel_size": int(value)}), card(24)).starts == "yes"


@pytest.mark.parametrize("total", [None, card(80)])
def test_more_stages_than_layers_do_not_start(total: Term | None) -> None:
    found = ledger(geometry(), server(flags={"pipeline_parallel_size": 33}), total)
    assert found.starts == "no"
    assert found.problems[0].text == "32 layers cannot be divided over 33 pipeline stages"
    assert found.problems[0].change == "--pp-size 32"
    assert ledger(geometry(), server(flags={"pipeline_parallel_size": 32}), card(80)).starts != "no"
