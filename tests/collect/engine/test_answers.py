from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.collect.engine import answers, raws
from llmedic.model.raw import Raw

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["data", "models", "id", "version", "n_ctx", "total_slots", "vllm_config", "model_path", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def said(kind: str, body: object) -> answers.Said:
    return answers.said([Raw(source="engine", kind=kind, status=200, body=json.dumps(body).encode())])


def flags(found: answers.Said) -> dict[str, object]:
    return {flag.name: flag.value for flag in found.flags}


@given(st.sampled_from(sorted(raws.PATHS)), anything)
def test_any_json_is_read_or_skipped(kind: str, body: object) -> None:
    found = said(kind, body)
    assert isinstance(found.version, str)
    assert all(value > 0 or name == "requests_running" for name, value in found.values.items())


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b'{"data":' * 100_000, b"\xff", b"1e999"])
def test_what_is_not_json_is_skipped(body: bytes) -> None:
    raw = Raw(source="engine", kind=raws.MODELS, status=200, body=body)
    assert answers.said([raw]) == answers.Said()


def test_a_name_is_a_short_text() -> None:
    assert said(raws.VERSION, {"version": {"a": [1]}}).version == ""
    assert said(raws.VERSION, {"version": "0" * 1000}).version == ""
    assert said(raws.MODELS, {"data": [{"root": 7, "id": "m"}]}).model == "m"


@pytest.mark.parametrize(
    ("text", "value"),
    [("True", True), ("false", False), ("None", None), ("", None), ("16", 16.0), ("0.92", 0.92), ("fp8", "fp8")],
)
def test_labels_stand_for_values(text: str, value: object) -> None:
    assert answers.typed(text) == value
    assert type(answers.typed(text)) is type(value)


def test_models_of_vllm() -> None:
    found = said(raws.MODELS, {"data": [{"id": "m", "root": "org/m", "owned_by": "vllm", "max_model_len": 32768}]})
    assert (found.engine, found.model, flags(found)) == ("vllm", "org/m", {"max_model_len": 32768.0})


def test_server_info_of_vllm() -> None:
    config = {
        "scheduler_config": {"max_num_seqs": 256, "max_num_batched_tokens": 8192},
        "cache_config": {"gpu_memory_utilization": 0.9, "enable_prefix_caching": True},
        "parallel_config": {"tensor_parallel_size": 2},
        "model_config": {"max_model_len": 4096, "quantization": None},
    }
    found = said(raws.SERVER_INFO, {"vllm_config": config})
    assert found.engine == "vllm"
    assert flags(found) == {
        "max_model_len": 4096.0,
        "gpu_memory_utilization": 0.9,
        "enable_prefix_caching": True,
        "max_num_seqs": 256.0,
        "max_num_batched_tokens": 8192.0,
        "tensor_parallel_size": 2.0,
    }
    assert {flag.spelled for flag in found.flags} >= {"--max-num-seqs", "--tensor-parallel-size"}


def test_server_info_of_sglang_keeps_its_own_names_where_the_meaning_differs() -> None:
    info = {
        "model_path": "m",
        "chunked_prefill_size": 4096,
        "mem_fraction_static": 0.85,
        "tp_size": 2,
        "disable_radix_cache": True,
        "api_key": "k",
    }
    found = said(raws.SERVER_INFO, {**info, "max_total_num_tokens": 90000})
    assert found.engine == "sglang"
    assert flags(found) == {
        "tensor_parallel_size": 2.0,
        "chunked_prefill_size": 4096.0,
        "mem_fraction_static": 0.85,
        "enable_prefix_caching": False,
    }
    assert found.values == {"kv_cache_tokens": 90000.0}


def test_older_slots_of_llama_cpp_tell_their_state_by_number() -> None:
    found = said(raws.SLOTS, [{"n_ctx": 2048, "state": 1}, {"n_ctx": 2048, "state": 0}])
    assert found.values == {"requests_running": 1.0, "context_per_slot_tokens": 2048.0}


def test_info_of_tgi() -> None:
    found = said(raws.INFO, {"model_id": "m", "version": "3.3.7", "max_batch_total_tokens": 16000})
    assert (found.engine, found.version, flags(found)) == ("tgi", "3.3.7", {"max_batch_total_tokens": 16000.0})
