"""The numbers inside the predicates: each bound from both sides, and what is missing where nothing can be told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules import build

from llmedic.analysis.outcome import Outcome
from llmedic.analysis.predicates import PREDICATES
from llmedic.analysis.predicates.ledger import parameters_b
from llmedic.analysis.view import View
from llmedic.knowledge import vocabulary
from llmedic.model.deployment import Deployment, Flag, HardwareFacts, ModelFacts
from llmedic.model.evidence import BenchRow, Evidence
from llmedic.model.observation import Observation


def busy(**values: float) -> dict[str, float]:
    return {"requests_waiting": 1, **values}


def idle(**values: float) -> dict[str, float]:
    return {"requests_waiting": 0, **values}


def outcome(name: str, **case: object) -> Outcome:
    return PREDICATES[name](build.view(case))


def holds(name: str, **case: object) -> bool | None:
    return outcome(name, **case).holds


@pytest.mark.parametrize("name", [name for name in PREDICATES if name != "a_symptom_is_ticked"])
def test_without_evidence_it_cannot_tell_and_says_what_it_misses(name: str) -> None:
    found = PREDICATES[name](View(Evidence()))

    assert found.holds is None
    assert found.missing


def test_a_symptom_is_ticked_or_not() -> None:
    assert holds("a_symptom_is_ticked") is False
    assert holds("a_symptom_is_ticked", symptoms={"seen": ["none"]}) is False
    assert holds("a_symptom_is_ticked", symptoms={"seen": ["hangs"]}) is True


@pytest.mark.parametrize(
    ("observations", "expected"),
    [
        ({"requests_waiting": 4}, True), ({"requests_waiting": 3}, False),
        ({"kv_cache_usage_ratio": 0.92}, True), ({"kv_cache_usage_ratio": 0.91}, False),
        ({"preemptions_per_min": 0.5}, True), ({"preemptions_per_min": 0.4}, False),
        ({"ttft_s": {"p99": 3.0}}, True), ({"ttft_s": {"p99": 2.9}}, False),
        ({"itl_s": {"p99": 0.5}}, True), ({"itl_s": {"p99": 0.4}}, False),
        ({"http_error_ratio": 0.02}, True), ({"http_error_ratio": 0.01}, False),
        ({"e2e_s": {"before": 1.0, "after": 1.3}}, True), ({"e2e_s": {"before": 1.0, "after": 1.2}}, False),
        ({"e2e_s": {"before": 0.0, "after": 1.2}}, None), ({"e2e_s": 9}, None),
    ],
)  # fmt: skip
def test_something_hurts(observations: dict[str, object], expected: bool | None) -> None:
    assert holds("something_hurts", observations=observations) is expected


def test_a_ticked_symptom_hurts_and_none_does_not() -> None:
    assert holds("something_hurts", symptoms={"seen": ["hangs"]}) is True
    assert holds("something_hurts", symptoms={"seen": ["none"]}) is None


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        ({"p99": 1.0}, {"p99": 0.5}, True), ({"p99": 0.99}, {"p99": 0.5}, False),
        ({"p99": 0.15}, {"p99": 0.06}, False), ({"mean": 1.0}, {"mean": 0.4}, True),
        ({"p50": 1.0}, {"p50": 0.1}, True), ({"p99": 1.0}, {"p99": 0.0}, None), ({"p99": 1.0}, {"p50": 0.4}, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("period", ["previous", "baseline"])
def test_slower_than_before(
    period: str, now: dict[str, float], before: dict[str, float], expected: bool | None
) -> None:
    assert holds("slower_than_before", observations={"ttft_s": now}, **{period: {"ttft_s": before}}) is expected


def test_the_lifetime_is_not_before() -> None:
    assert holds("slower_than_before", observations={"ttft_s": {"p99": 9}}, lifetime={"ttft_s": {"p99": 1}}) is None


@pytest.mark.parametrize(
    ("values", "waiting", "expected"),
    [
        ([32, 32, 32], 1, True), ([32, 32, 28.8], 1, True), ([32, 32, 28], 1, False), ([32, 31, 31], 1, False),
        ([32, 32, 32], 0, False), ([0, 0, 0], 3, False), ([32, 32], 1, None),
    ],
)  # fmt: skip
def test_running_is_pinned(values: list[float], waiting: float, expected: bool | None) -> None:
    series = [[30 * i, value] for i, value in enumerate(values)]

    assert (
        holds("running_is_pinned", observations={"requests_running": series, "requests_waiting": waiting}) is expected
    )


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"requests_waiting": 6}, {"requests_waiting": 2}, True),
        ({"requests_waiting": 6}, {"requests_waiting": 2.1}, False),
        ({"requests_waiting": 3}, {"requests_waiting": 0}, False),
        (busy(kv_cache_usage_ratio=0.9), idle(kv_cache_usage_ratio=0.61), False),
        (busy(kv_cache_usage_ratio=1.0), idle(kv_cache_usage_ratio=0.7), True),
        (busy(requests_running=12), idle(requests_running=8.1), False),
        (busy(requests_running=13), idle(requests_running=8.8), False),
        ({"requests_running": 40}, {"requests_running": 1}, False),
    ],
)  # fmt: skip
def test_ranks_are_uneven(first: dict[str, float], second: dict[str, float], expected: bool) -> None:
    found = outcome("ranks_are_uneven", instances={"a:8000": first, "b:8000": second})

    assert found.holds is expected
    assert any("[a:8000]" in fact.name for fact in found.facts)


@pytest.mark.parametrize(
    ("started", "finished", "running", "expected"),
    [(12, 9, 4, True), (12, 10, 4, False), (13, 10, 4, False), (20, 9, [[0, 2], [30, 8]], True), (9, 9, 4, False)],
)
def test_requests_disappear(started: float, finished: float, running: object, expected: bool) -> None:
    seen = {"first_tokens_count": started, "finished_count": finished, "requests_running": running}

    assert holds("requests_disappear", observations=seen) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", 70), ("Mixtral-8x7B", 56), ("Qwen2.5-0.5B", 0.5), ("gemma-3-270m", 0.27),
        ("some-model", None), ("", None), ("model-8bit", None), ("gpt-4bytes", None),
    ],
)  # fmt: skip
def test_the_size_of_a_model_is_in_its_name(name: str, expected: float | None) -> None:
    found = parameters_b(build.view({"model": {"name": name}}))

    assert found == (pytest.approx(expected) if expected else None)


@pytest.mark.parametrize(
    ("flags", "quantised", "memory", "expected"),
    [
        ({}, "", 130.3, True), ({}, "", 130.5, False),
        ({"tensor_parallel_size": 2}, "", 65.2, False),
        ({"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, "", 32.5, True),
        ({"quantization": "fp8"}, "", 65.1, True), ({"quantization": "awq"}, "", 32.7, False),
        ({}, "-AWQ", 32.7, False),
    ],
)  # fmt: skip
def test_weights_exceed_the_cards(flags: dict[str, object], quantised: str, memory: float, expected: bool) -> None:
    case: dict[str, object] = {"model": {"name": f"Llama-70B{quantised}"}, "hardware": {"memory_gib": memory}}

    assert holds("weights_exceed_the_cards", flags=flags, **case) is expected


@pytest.mark.parametrize(("first", "later", "expected"), [(2000.0, 2499.0, False), (2000.0, 2500.0, True)])
def test_worse_by_a_fifth_across_an_upgrade(first: float, later: float, expected: bool) -> None:
    rows = [{"label": "old", "wall_s": first}, {"label": "new", "wall_s": later}]

    assert holds("measured_across_an_upgrade", bench=rows) is expected
    assert holds("measured_across_an_upgrade", bench=rows[:1]) is None
    assert holds("measured_across_an_upgrade", observations={"wall_s": {"before": first, "after": later}}) is expected


numbers = st.one_of(st.sampled_from([0.0, -1.0, 1.0, 64.0, float("nan"), float("inf")]), st.floats())
rows = st.lists(st.dictionaries(st.sampled_from(vocabulary.names()), numbers, max_size=4), max_size=3)
settings = st.dictionaries(
    st.sampled_from(["tensor_parallel_size", "max_num_seqs", "max_model_len", "block_size", "num_gpu_blocks_override"]),
    st.one_of(numbers, st.booleans(), st.text(), st.none()),
)
config = st.dictionaries(
    st.sampled_from(["num_attention_heads", "intermediate_size", "max_position_embeddings", "eos_token_id"]),
    st.one_of(numbers, st.integers(), st.text(), st.lists(st.integers(), max_size=3)),
)


@given(st.dictionaries(st.sampled_from(vocabulary.names()), numbers, max_size=12), rows, settings, config)
def test_no_evidence_breaks_a_predicate(
    seen: dict[str, float],
    bench: list[dict[str, float]],
    set_: dict[str, float | str | bool | None],
    config: dict[str, object],
) -> None:
    view = View(
        Evidence(
            observations=tuple(Observation(name=k, value=v, unit="", source="metrics") for k, v in seen.items()),
            bench=tuple(BenchRow(label=str(i), values=values) for i, values in enumerate(bench)),
            deployment=Deployment(
                flags=tuple(Flag(name=name, value=value) for name, value in set_.items()),
                model=ModelFacts(name="m-7B", config=config),
                hardware=HardwareFacts(memory_gib=0.0, host_cpus=0),
            ),
        )
    )

    for predicate in PREDICATES.values():
        found = predicate(view)
        assert bool(found.missing) == (found.holds is None)
