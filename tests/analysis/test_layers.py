"""One status per layer: cause, symptom, ok with its numbers, or not evaluated with what would show it."""

from __future__ import annotations

import pytest
from tests.rules import build

from llmedic.analysis import layers
from llmedic.knowledge import causes, texts
from llmedic.model.verdict import LAYERS, Layer

EMPTY: build.Case = {}


def of(case: build.Case, named: tuple[str, ...] = (), beneath: tuple[str, ...] = ()) -> dict[str, Layer]:
    found = layers.of(
        build.view(case), [causes.cause(one) for one in named], [causes.cause(one) for one in beneath], "en"
    )
    assert tuple(layer.layer for layer in found) == LAYERS
    return {layer.layer: layer for layer in found}


def test_nothing_seen_is_nowhere_ok() -> None:
    found = of(EMPTY)

    assert {layer.status for layer in found.values()} == {"not-evaluated"}
    assert all(layer.summary for layer in found.values())


@pytest.mark.parametrize(
    ("layer", "case", "number"),
    [
        ("load", {"observations": {"request_rate_per_s": {"before": 10, "after": 12}}}, "12"),
        ("load", {"observations": {"prompt_tokens_mean": 900}, "baseline": {"prompt_tokens_mean": 800}}, "900"),
        ("capacity", {"observations": {"kv_cache_usage_ratio": [[0, 0.3], [30, 0.42]]}}, "42 %"),
        ("hardware", {"observations": {"gpu_temp_c": 61}}, "61 C"),
        ("params", {"flags": {"dtype": "half", "port": 80}}, "2"),
        ("deployment", {"log": "INFO one\nINFO x.py:1] Loading model weights took 15.2 GB"}, "2"),
        ("gateway", {"observations": {"aborted_ratio": 0.01}}, "1 %"),
    ],
)
def test_a_layer_is_ok_by_what_was_seen_of_it_alone(layer: str, case: build.Case, number: str) -> None:
    found = of(case)

    assert {name for name, one in found.items() if one.status == "ok"} == {layer}
    assert number in found[layer].summary


def test_a_log_with_an_error_is_not_ok() -> None:
    found = of({"log": "INFO one\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."})[
        "deployment"
    ]

    assert (found.status, found.summary) == ("symptom", "log lines read: 2, errors: cuda-oom")


def test_indicators_are_said_in_words() -> None:
    case: build.Case = {"observations": {"requests_running": 8, "kv_cache_usage_ratio": 0.4}}

    assert of(case)["capacity"].summary == "running 8, KV usage 40 %"
    assert set(layers.INDICATORS["capacity"]) <= set(texts.INDICATORS)


def test_load_without_a_before_is_not_judged() -> None:
    assert of({"observations": {"request_rate_per_s": 12}})["load"].status == "not-evaluated"


def test_metrics_that_name_one_setting_do_not_settle_the_parameters() -> None:
    assert of({"observations": {"kv_cache_tokens": 5}})["params"].status == "not-evaluated"


def test_a_cause_and_what_it_brings_about() -> None:
    found = of({"observations": {"requests_waiting": 9}}, ("qps-surge",), ("overload-deep-queue",))

    assert (found["load"].status, found["capacity"].status) == ("cause", "symptom")
    assert found["load"].summary == causes.cause("qps-surge").title.en
    assert found["hardware"].status == "not-evaluated"


def test_a_layer_with_a_cause_is_not_called_a_symptom() -> None:
    found = of(EMPTY, ("max-num-seqs-too-low",), ("overload-deep-queue",))

    assert found["capacity"].status == "cause"
    assert found["capacity"].summary == causes.cause("max-num-seqs-too-low").title.en


def test_a_reader_of_chinese_gets_chinese() -> None:
    found = layers.of(build.view({"log": "x"}), [causes.cause("qps-surge")], [], "zh")

    assert all(any("\u4e00" <= letter <= "\u9fff" for letter in layer.summary) for layer in found)


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("kv_cache_usage_ratio", 0.99, "symptom"),
        ("kv_cache_usage_ratio", 0.9, "ok"),
        ("requests_waiting", 4, "symptom"),
        ("requests_waiting", 3, "ok"),
        ("preemptions_per_min", 6, "symptom"),
    ],
)
def test_a_strained_layer_is_not_called_ok_for_want_of_a_cause(name: str, value: float, status: str) -> None:
    assert of({"observations": {name: value}})["capacity"].status == status
