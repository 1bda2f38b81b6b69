"""Settings have one neutral name, and a spelling, a default and a life span for each engine."""

from __future__ import annotations

import pytest

from llmedic.knowledge import flags

SPECS = list(flags.specs().values())


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_setting_is_spelled_for_some_engine(spec: flags.FlagSpec) -> None:
    assert any(spec.spellings.values()) or any(spec.negated.values())
    assert {default.engine for default in spec.defaults} <= set(spec.spellings) | set(spec.negated)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama.cpp", "tgi", "ollama"])
def test_no_spelling_means_two_settings(engine: str) -> None:
    typed = [
        spelling for spec in SPECS for table in (spec.spellings, spec.negated) for spelling in table.get(engine, ())
    ]
    assert len(typed) == len(set(typed))


def test_a_default_follows_the_release() -> None:
    assert flags.default("gpu_memory_utilization", "vllm", "0.11.2") == 0.9
    assert flags.default("gpu_memory_utilization", "vllm", "0.33.0") == 0.92
    assert flags.default("enable_prefix_caching", "vllm", "0.6.6.post1") is False
    assert flags.default("enable_prefix_caching", "vllm") is True
    assert flags.default("tensor_parallel_size", "ollama") is None


def test_a_removed_setting_does_not_exist() -> None:
    assert flags.exists("swap_space", "vllm", "0.6.6")
    assert not flags.exists("swap_space", "vllm", "0.33.0")
    assert not flags.exists("swap_space", "vllm")
    assert not flags.exists("max_num_queued_reqs", "vllm", "0.8.5")
    assert not flags.exists("gpu_memory_utilization", "sglang", "0.5.2")


def test_a_spelling_falls_back_to_the_nearest_setting() -> None:
    assert flags.spelling("max_num_seqs", "sglang") == "--max-running-requests"
    assert flags.spelling("gpu_memory_utilization", "sglang") == "--mem-fraction-static"
    assert flags.spelling("enable_prefix_caching", "sglang") == "--disable-radix-cache"
    assert flags.spelling("no_such_setting", "vllm") == ""


def test_an_own_name_becomes_neutral() -> None:
    assert flags.neutral("sglang", "max_running_requests") == "max_num_seqs"
    assert flags.neutral("llama.cpp", "-np") == "max_num_seqs"
    assert flags.neutral("vllm", "--some-new-flag") == "some_new_flag"


@pytest.mark.parametrize(
    ("text", "number"), [("0.8.5.post1", (0, 8, 5)), ("v1.2", (1, 2)), ("b4621", (4621,)), ("", ())]
)
def test_releases_compare_as_numbers(text: str, number: tuple[int, ...]) -> None:
    assert flags.key(text) == number
