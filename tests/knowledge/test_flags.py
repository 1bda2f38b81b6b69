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


@pytest.mark.parametrize(
    ("name", "version", "spelled"),
    [
        ("guided_decoding_backend", "0.6.6", "--guided-decoding-backend"),
        ("guided_decoding_backend", "0.10.2", "--guided-decoding-backend"),
        ("guided_decoding_backend", "0.11.2", "--structured-outputs-config.backend"),
        ("guided_decoding_backend", "", "--structured-outputs-config.backend"),
        ("num_speculative_tokens", "0.7.3", "--num-speculative-tokens"),
        ("num_speculative_tokens", "0.11.0", "--speculative-config.num_speculative_tokens"),
        ("num_speculative_tokens", "0.33.0", "--spec-tokens"),
        ("max_seq_len_to_capture", "0.5.5", "--max-seq-len-to-capture"),
        ("max_seq_len_to_capture", "0.33.0", ""),
        ("attention_backend", "0.11.2", ""),
        ("attention_backend", "0.14.1", "--attention-backend"),
        ("max_concurrent_requests", "0.11.2", ""),
        ("max_concurrent_requests", "0.33.0", "--max-num-queued-reqs"),
    ],
)
def test_a_spelling_follows_the_release(name: str, version: str, spelled: str) -> None:
    assert flags.spelling(name, "vllm", version) == spelled


def test_a_setting_can_lack_the_spelling_that_switches_it_off() -> None:
    assert flags.typed("enforce_eager", "vllm", "0.8.5", negated=True) == ""
    assert flags.typed("enforce_eager", "vllm", "0.9.2", negated=True) == "--no-enforce-eager"


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_spans_are_of_spellings_and_not_empty(spec: flags.FlagSpec) -> None:
    typed = {one for table in (spec.spellings, spec.negated) for known in table.values() for one in known}
    assert set(spec.spans) <= typed
    assert all(span.since or span.removed for span in spec.spans.values())


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_nearest_setting_exists(spec: flags.FlagSpec) -> None:
    for engine, spelled in spec.nearest.items():
        assert spelled in flags.by_spelling(engine), "else its life span is not known"


def test_an_own_name_becomes_neutral() -> None:
    assert flags.neutral("sglang", "max_running_requests") == "max_num_seqs"
    assert flags.neutral("llama.cpp", "-np") == "max_num_seqs"
    assert flags.neutral("vllm", "--some-new-flag") == "some_new_flag"
