"""llama.cpp's flags, placement and verdicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.analysis.ledger.llamacpp import ledger, settings
from llmedic.analysis.ledger.llamacpp.placement import HOST, place
from llmedic.errors import InputError
from llmedic.model.deployment import Deployment, Flag, FlagValue, HardwareFacts
from llmedic.model.geometry import CacheLayer, Geometry, WeightPart
from llmedic.model.ledger import Ledger, Range, Term

GIB = 2**30
MIB = 2**20


def geometry(layers: int = 32, *, layer_mib: int = 128, tied: bool = False, architecture: str = "llama") -> Geometry:
    parts = [WeightPart(name="embedding", parameters=1, bytes=300 * MIB, split="vocabulary")]
    if not tied:
        parts.append(WeightPart(name="lm head", parameters=1, bytes=400 * MIB, split="vocabulary"))
    for il in range(layers):
        parts.append(WeightPart(name="attention", parameters=1, bytes=layer_mib * MIB / 4, split="tensor", layer=il))
        parts.append(WeightPart(name="experts", parameters=1, bytes=layer_mib * MIB * 3 / 4, split="expert", layer=il))
    return Geometry(
        architecture=architecture,
        layers=(CacheLayer(kind="full", kv_heads=8, head_dim=128),) * layers,
        weights=tuple(parts),
        hidden_size=4096,
        vocabulary=128256,
        query_heads=32,
        mlp_width=14336,
        positions=131072,
    )


def server(version: str = "b10800", *, engine: str = "llama.cpp", cards: int = 1, **flags: FlagValue) -> Deployment:
    return Deployment(
        engine=engine,
        version=version,
        flags=tuple(Flag(name=name, value=value) for name, value in flags.items()),
        hardware=HardwareFacts(count=cards),
    )


def card(gib: float) -> Term:
    return Term(id="total", size=Range(low=gib * GIB, likely=gib * GIB, high=gib * GIB), basis="given")


def size(found: Ledger, key: str) -> float:
    return next(term.size.likely for term in (*found.terms, *found.outside) if term.id == key)


@pytest.mark.parametrize(
    ("version", "flags", "slots", "streams", "slot"),
    [
        ("", {"ctx_size": 8192}, 4, 1, 8192),
        ("b10800", {"ctx_size": 8192, "max_num_seqs": 4}, 4, 4, 2048),
        ("b10800", {"ctx_size": 8192, "max_num_seqs": 4, "kv_unified": True}, 4, 1, 8192),
        ("b6000", {"ctx_size": 8192}, 1, 1, 8192),
        ("b6000", {"ctx_size": 8192, "max_num_seqs": 3}, 3, 3, 2816),
        ("b5000", {"ctx_size": 8192, "max_num_seqs": 4}, 4, 1, 2048),
        ("b10800", {"ctx_size": 1, "max_num_seqs": 2}, 2, 2, 256),
    ],
)
def test_slots_share_a_pool_or_divide_the_context(
    version: str, flags: dict[str, FlagValue], slots: int, streams: int, slot: int
) -> None:
    found = settings.resolve(geometry(), server(version, **flags), None)
    assert (found.slots, found.streams, found.slot_tokens) == (slots, streams, slot)


@pytest.mark.parametrize(("version", "context"), [("b5000", 4096), ("b10800", 131072), ("", 131072)])
def test_the_context_that_is_not_given_is_that_of_the_release(version: str, context: int) -> None:
    assert settings.resolve(geometry(), server(version), None).context_tokens == context


@pytest.mark.parametrize(
    ("gib", "cards", "context"), [(None, 1, 4096), (23.5, 1, 32768), (23.5, 2, 131072), (12, 1, 4096)]
)
def test_ollama_takes_its_context_from_the_memory_of_the_machine(gib: float | None, cards: int, context: int) -> None:
    found = settings.resolve(geometry(), server("0.30.0", engine="ollama", cards=cards), gib)
    assert found.context_tokens == context
    assert "num_ctx is not given" in found.notes[0]


def test_the_context_of_ollama_is_of_one_slot() -> None:
    found = settings.resolve(geometry(), server(engine="ollama", ctx_size=8192, max_num_seqs=4), None)
    assert (found.context_tokens, found.slot_tokens) == (32768, 8192)


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ({"cache_type_k": "fp8"}, "cache type"),
        ({"ctx_size": "many"}, "not a number"),
        ({"ctx_size": -5}, "out of range"),
        ({"tensor_split": "3,x"}, "no list of numbers"),
        ({"tensor_split": "3,-1"}, "negative share"),
        ({"override_tensor": "(=CPU"}, "override_tensor"),
        ({"ubatch_size": float("nan")}, "out of range"),
    ],
)
def test_a_value_that_the_engine_would_refuse_is_one_clear_line(flags: dict[str, FlagValue], word: str) -> None:
    with pytest.raises(InputError, match=word):
        ledger(geometry(), server(**flags), card(24))


@pytest.mark.parametrize(("version", "layers", "output"), [("b10800", 8, 0), ("b6000", 9, HOST)])
def test_the_last_layers_go_to_the_card(version: str, layers: int, output: int) -> None:
    shape = geometry()
    found = place(shape, settings.resolve(shape, server(version, n_gpu_layers=9), None))
    assert found.layers == (HOST,) * (32 - layers) + (0,) * layers
    assert found.output == output
    assert found.cards[0] == layers * 128 * MIB + (400 * MIB if output == 0 else 0)


def test_a_tied_embedding_is_on_the_card_and_in_host_memory() -> None:
    shape = geometry(tied=True)
    found = place(shape, settings.resolve(shape, server(n_gpu_layers=99), None))
    assert found.cards[0] == (32 * 128 + 300) * MIB
    assert found.host == 300 * MIB


def test_experts_stay_in_host_memory_when_told_to() -> None:
    shape = geometry()
    by_count = place(shape, settings.resolve(shape, server(n_cpu_moe=10), None))
    by_name = place(shape, settings.resolve(shape, server(override_tensor=r"blk\.[0-9]\.ffn_.*_exps=CPU"), None))
    assert by_count.host == by_name.host == (300 + 10 * 96) * MIB
    every = place(shape, settings.resolve(shape, server(cpu_moe=True), None))
    assert every.host == (300 + 32 * 96) * MIB
    half = place(shape, settings.resolve(shape, server(override_tensor="ffn_up_exps=CPU,ffn_gate_exps=CUDA1"), None))
    assert half.host == (300 + 32 * 32) * MIB


def test_layers_are_split_over_cards_by_their_shares() -> None:
    shape = geometry()
    even = place(shape, settings.resolve(shape, server(cards=2), None))
    assert (even.layers.count(0), even.layers.count(1), even.output) == (17, 15, 1)
    skewed = place(shape, settings.resolve(shape, server(tensor_split="3,1"), None))
    assert skewed.layers.count(0) == 25
    alone = place(shape, settings.resolve(shape, server(cards=2, split_mode="none"), None))
    assert set(alone.layers) == {0}
    rows = ledger(shape, server(cards=2, split_mode="row"), None)
    assert any("row split" in note for note in rows.notes)


def test_the_cache_of_the_card_is_that_of_its_layers() -> None:
    found = ledger(geometry(), server(ctx_size=8192, n_gpu_layers=9), card(24))
    assert found.pool is not None
    assert found.pool.size.likely == 8 * 8192 * 4096
    assert size(found, "host_kv_cache") == 24 * 8192 * 4096
    away = ledger(geometry(), server(ctx_size=8192, kv_offload="off"), card(24))
    assert away.pool is not None
    assert away.pool.size.likely == 0


def test_what_fits_starts() -> None:
    found = ledger(geometry(), server(ctx_size=8192, max_num_seqs=1), card(24))
    assert found.starts == "yes"
    assert not found.problems
    assert found.cache is not None
    assert found.cache.bytes_per_token == 32 * 4096
    assert found.cache.concurrency.likely == 1


def test_without_a_card_it_is_unknown_and_says_how_to_know() -> None:
    found = ledger(geometry(), server(), None)
    assert found.starts == "unknown"
    assert found.gaps[0].how.startswith("--gpu")


def test_a_context_that_is_too_long_comes_with_the_one_that_fits() -> None:
    wrong = server("b10800", ctx_size=131072, n_gpu_layers=99, max_num_seqs=1)
    found = ledger(geometry(), wrong, card(12))
    assert found.starts == "no"
    problem = found.problems[0]
    assert problem.cause == "startup-no-memory-for-kv"
    assert "--cache-type-k" not in problem.text
    tokens = int(problem.change.removeprefix("--ctx-size "))
    right = server("b10800", ctx_size=tokens, n_gpu_layers=99, max_num_seqs=1)
    assert ledger(geometry(), right, card(12)).starts == "yes"
    more = server("b10800", ctx_size=tokens + 256, n_gpu_layers=99, max_num_seqs=1)
    assert ledger(geometry(), more, card(12)).starts != "yes"


def test_a_narrower_cache_is_named_when_it_alone_is_enough() -> None:
    found = ledger(geometry(), server(ctx_size=65536, n_gpu_layers=99, max_num_seqs=1), card(11))
    assert "--cache-type-k q8_0" in found.problems[0].text


def test_weights_that_are_too_large_come_with_the_layers_that_fit() -> None:
    wrong = server("b10800", ctx_size=8192, n_gpu_layers=33, max_num_seqs=1)
    found = ledger(geometry(layer_mib=1024), wrong, card(24))
    problem = found.problems[0]
    assert (problem.severity, problem.cause) == ("critical", "weights-do-not-fit")
    layers = int(problem.change.removeprefix("--n-gpu-layers "))
    right = server("b10800", ctx_size=8192, n_gpu_layers=layers, max_num_seqs=1)
    assert 0 < layers < 33
    assert ledger(geometry(layer_mib=1024), right, card(24)).starts == "yes"


def test_what_was_not_given_is_fitted_by_the_engine_itself() -> None:
    found = ledger(geometry(layer_mib=1024), server(), card(24))
    assert found.era == "llamacpp-fit"
    assert found.problems[0].severity == "info"
    assert "--fit" in found.problems[0].text
    off = ledger(geometry(layer_mib=1024), server(fit="off"), card(24))
    assert off.problems[0].severity == "critical"


def test_slots_that_divide_the_context_are_told() -> None:
    found = ledger(geometry(), server(ctx_size=8192, max_num_seqs=4), card(24))
    problem = next(problem for problem in found.problems if problem.cause == "slots-share-context")
    assert "2048 tokens" in problem.text
    assert problem.change == "--kv-unified"
    old = ledger(geometry(), server("b5000", ctx_size=8192, max_num_seqs=4), card(24))
    assert old.problems[0].change == "--ctx-size 32768"


def test_quantised_values_need_flash_attention() -> None:
    found = ledger(geometry(), server(ctx_size=8192, cache_type_v="q8_0", flash_attn="off"), card(24))
    assert found.problems[0].change == "--flash-attn on"


def test_a_window_that_the_engine_leaves_out_costs_the_whole_context() -> None:
    layers = (CacheLayer(kind="sliding", kv_heads=8, head_dim=128, window_tokens=4096),) * 2
    shape = Geometry(
        architecture="MistralForCausalLM", layers=layers, weights=(), hidden_size=1, vocabulary=1, query_heads=1
    )
    found = ledger(shape, server(ctx_size=65536, max_num_seqs=1), None)
    assert found.pool is not None
    assert found.pool.size.likely == 2 * 65536 * 4096


@given(st.integers(1, 33), st.integers(256, 200_000), st.integers(1, 8))
def test_more_layers_or_tokens_never_need_less(layers: int, tokens: int, slots: int) -> None:
    def needed(ngl: int, context: int) -> float:
        found = ledger(geometry(), server(n_gpu_layers=ngl, ctx_size=context, max_num_seqs=slots), None)
        assert found.pool is not None
        return found.pool.size.likely + sum(term.size.likely for term in found.terms if term.id == "weights")

    assert needed(layers, tokens) <= needed(min(layers + 1, 33), tokens + 4096)
