"""The command line as people type it, for every engine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.collect import flags, redact
from llmedic.knowledge import flags as known
from llmedic.model.raw import Raw


def parsed(text: str, engine: str = "vllm") -> dict[str, object]:
    return {flag.name: flag.value for flag in flags.parse_args(text, engine, "args")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--max-num-seqs 8", {"max_num_seqs": 8}),
        ("--max-num-seqs=8", {"max_num_seqs": 8}),
        ("--max_num_seqs 8", {"max_num_seqs": 8}),
        ("-tp 2 -pp=4", {"tensor_parallel_size": 2, "pipeline_parallel_size": 4}),
        ("--enable-prefix-caching", {"enable_prefix_caching": True}),
        ("--no-enable-prefix-caching", {"enable_prefix_caching": False}),
        ("--enable-chunked-prefill=False", {"enable_chunked_prefill": False}),
        ("--enable-chunked-prefill False --seed 0", {"enable_chunked_prefill": False, "seed": 0}),
        ("--max-model-len 16k", {"max_model_len": 16_000}),
        ("--max-model-len 16K", {"max_model_len": 16_384}),
        ("--gpu-memory-utilization .9", {"gpu_memory_utilization": 0.9}),
        ("--gpu-memory-utilization 0.95", {"gpu_memory_utilization": 0.95}),
        (
            '--speculative-config \'{"method": "eagle", "num_speculative_tokens": 3}\'',
            {"speculative_config": '{"method": "eagle", "num_speculative_tokens": 3}'},
        ),
        ("--compilation-config.level 3", {"compilation_config.level": 3}),
        ("--brand-new-flag x --other-switch", {"brand_new_flag": "x", "other_switch": True}),
        ("--no-brand-new-switch", {"brand_new_switch": False}),
        ("vllm serve meta-llama/Llama-3 --port 8000", {"model": "meta-llama/Llama-3", "port": 8000}),
        ("--max-num-seqs 8 \\\n  --max-num-seqs 16", {"max_num_seqs": 16}),
        ("--unclosed 'quote --dtype half", {"unclosed": "'quote", "dtype": "half"}),
        ("", {}),
    ],
)
def test_vllm(text: str, expected: dict[str, object]) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    ("engine", "text", "expected"),
    [
        (
            "sglang",
            "--max-running-requests 8 --disable-radix-cache --context-length 4096 --tp 2",
            {"max_num_seqs": 8, "enable_prefix_caching": False, "max_model_len": 4096, "tensor_parallel_size": 2},
        ),
        (
            "llama.cpp",
            "llama-server -m x.gguf -c 8192 -np 4 -ngl 99 --no-cache-prompt -cb",
            {
                "model": "x.gguf",
                "ctx_size": 8192,
                "max_num_seqs": 4,
                "n_gpu_layers": 99,
                "enable_prefix_caching": False,
                "cont_batching": True,
            },
        ),
        (
            "tgi",
            "--num-shard 2 --max-concurrent-requests 128 -p 80",
            {"tensor_parallel_size": 2, "max_concurrent_requests": 128, "port": 80},
        ),
        ("ollama", "OLLAMA_NUM_PARALLEL=4 ollama serve", {"max_num_seqs": 4}),
        ("", "--max-num-seqs 8", {"max_num_seqs": 8}),
    ],
)
def test_other_engines(engine: str, text: str, expected: dict[str, object]) -> None:
    assert parsed(text, engine) == expected


@pytest.mark.parametrize(
    "text",
    [
        "--api-key sk-very-secret",
        "--api-key=sk-very-secret",
        "--hf-token sk-very-secret",
        "--my-secret sk-very-secret",
        "--some-password=sk-very-secret",
        "--auth-token sk-very-secret",
    ],
)
def test_secrets_are_never_kept(text: str) -> None:
    found = flags.parse_args(text, "vllm", "args")
    assert [flag.value for flag in found] == [redact.HIDDEN]


def test_a_secret_inside_a_value_is_not_kept() -> None:
    (found,) = flags.parse_args(["--kv-transfer-config", '{"url":"redis://u:sk-very-secret@h"}'], "vllm", "args")

    assert "sk-very-secret" not in str(found.value)
    assert str(found.value).startswith('{"url":"redis://')


def test_only_settings_that_hold_secrets_are_called_so() -> None:
    secret = {
        spec.name
        for spec in known.specs().values()
        for table in (spec.spellings, spec.negated)
        for spelled in (one for several in table.values() for one in several)
        if redact.is_secret_name(spelled)
    }
    assert secret == {spec.name for spec in known.specs().values() if spec.type == "secret"}


def test_a_flag_about_tokens_is_no_secret() -> None:
    assert parsed("--max-num-batched-tokens 2048 --tokenizer x") == {"max_num_batched_tokens": 2048, "tokenizer": "x"}


def test_a_flag_remembers_how_it_was_typed_and_where() -> None:
    (flag,) = flags.parse_args(["-np", "4"], "llama.cpp", "process")
    assert (flag.spelled, flag.origin) == ("-np", "process")


def test_capture_and_read_are_the_two_steps() -> None:
    raws = flags.capture("--max-num-seqs 8 --api-key x", engine="vllm")
    assert {flag.name: flag.value for flag in flags.read(raws).deployment.flags} == {
        "max_num_seqs": 8,
        "api_key": "<redacted>",
    }
    assert flags.capture("  ") == ()


def test_a_raw_that_is_not_json_is_read_as_typed_and_an_error_is_a_gap() -> None:
    typed = Raw(source="flags", kind="args", body=b"--max-num-seqs 8", meta={"engine": "vllm", "origin": "case"})
    failed = Raw(source="flags", kind="args", error="permission denied", hint="sudo llmedic diagnose --pid 1")
    evidence = flags.read([typed, failed])
    assert evidence.deployment.flags[0].origin == "case"
    assert evidence.gaps[0].how == "sudo llmedic diagnose --pid 1"


@given(st.text(max_size=200), st.sampled_from(["vllm", "sglang", "llama.cpp", "tgi", "ollama", "", "new"]))
def test_no_text_raises(text: str, engine: str) -> None:
    found = flags.parse_args(text, engine, "args")
    assert len({flag.name for flag in found}) == len(found)


@given(st.lists(st.text(max_size=30), max_size=20))
def test_no_words_raise(words: list[str]) -> None:
    flags.parse_args(words, "vllm", "args")


@given(st.binary(max_size=200))
def test_no_bytes_raise(body: bytes) -> None:
    flags.read([Raw(source="flags", kind="args", body=body, meta={"engine": "vllm"})])


@pytest.mark.parametrize("number", ["9" * 400, "1e400", "-1e30"])
def test_a_number_beyond_any_server_stays_the_word_that_was_typed(number: str) -> None:
    assert parsed(f"--max-model-len {number}") == {"max_model_len": number}
