"""Quantisation support as the engines' sources have it, by release and compute capability."""

from __future__ import annotations

import pytest

from llmedic.knowledge import quantisations, releases

METHODS = tuple(quantisations.methods().values())


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_method_is_consistent(method: quantisations.Method) -> None:
    assert method.rules
    assert all((method.what, method.source, method.date))
    assert 2 <= method.bits <= 8
    for rule in method.rules:
        assert rule.kernel
        assert bool(rule.arch) != bool(rule.low), "a rule speaks of CUDA or of AMD"
        assert not rule.high or rule.low <= rule.high
        assert not rule.removed or releases.numbers(rule.since) < releases.numbers(rule.removed)


def test_every_word_names_one_method() -> None:
    words = [quantisations._key(word) for method in METHODS for word in (method.name, *method.aliases)]
    assert len(words) == len(set(words))
    for method in METHODS:
        for word in (method.name, *method.aliases):
            found = quantisations.find(word)
            assert found is not None
            assert found.name == method.name


@pytest.mark.parametrize(
    ("method", "capability", "version", "runs", "kernel"),
    [
        ("fp8", 8.0, "0.5.0", "no", ""),
        ("fp8", 8.0, "0.5.1", "weight-only", "Marlin"),
        ("fp8", 7.5, "0.13.0", "no", ""),
        ("fp8", 7.5, "0.14.1", "weight-only", "Marlin"),
        ("fp8", 9.0, "0.8.5", "yes", "CUTLASS or torch scaled_mm"),
        ("fp8", 7.0, "", "no", ""),
        ("fp8-block", 8.6, "0.8.5", "no", ""),
        ("fp8-block", 8.6, "0.9.2", "weight-only", "Marlin"),
        ("compressed-tensors-fp8", 7.5, "0.15.0", "no", ""),
        ("awq", 7.0, "", "no", ""),
        ("awq", 7.5, "0.11.0", "yes", "AWQ"),
        ("awq", 7.5, "0.33.0", "yes", "Marlin"),
        ("awq", 8.9, "0.11.0", "yes", "Marlin"),
        ("gptq", 7.0, "0.33.0", "yes", "ExLlama"),
        ("gptq_marlin", 7.5, "0.12.0", "no", ""),
        ("compressed-tensors", 7.5, "0.11.2", "no", ""),
        ("compressed-tensors", 7.5, "0.12.0", "yes", "Marlin"),
        ("nvfp4", 9.0, "0.8.5", "no", ""),
        ("modelopt_fp4", 9.0, "0.9.0", "weight-only", "Marlin"),
        ("nvfp4", 12.0, "0.33.0", "yes", "FlashInfer or CUTLASS"),
        ("mxfp4", 8.0, "0.10.1", "weight-only", "Marlin"),
        ("mxfp4", 7.5, "0.33.0", "no", ""),
        ("mxfp4", 9.0, "0.10.0", "no", ""),
        ("mxfp8", 9.0, "0.19.0", "no", ""),
        ("mxfp8", 9.0, "0.20.0", "weight-only", "Marlin"),
        ("int8", 12.0, "0.33.0", "no", ""),
        ("w8a8", 8.0, "0.33.0", "yes", "CUTLASS"),
        ("bitsandbytes", 8.0, "0.27.0", "yes", "bitsandbytes"),
        ("bitsandbytes", 8.0, "0.28.0", "no", ""),
        ("gguf", 8.0, "", "no", ""),
    ],
)
def test_vllm_by_release(method: str, capability: float, version: str, runs: str, kernel: str) -> None:
    found = quantisations.support(method, capability, "vllm", version)
    assert (found.runs, found.kernel) == (runs, kernel)
    assert found.why


@pytest.mark.parametrize(
    ("method", "capability", "engine", "version", "runs"),
    [
        ("fp8", 8.9, "tgi", "3.3.5", "weight-only"),
        ("fp8", 9.0, "tgi", "3.3.5", "yes"),
        ("nvfp4", 9.0, "sglang", "0.5.2", "no"),
        ("nvfp4", 9.0, "sglang", "0.5.23", "weight-only"),
        ("gptq", 7.5, "sglang", "0.5.23", "no"),
        ("gguf", 8.6, "llama.cpp", "b7000", "yes"),
        ("aqlm", 8.0, "sglang", "", "unknown"),
    ],
)
def test_other_engines(method: str, capability: float, engine: str, version: str, runs: str) -> None:
    assert quantisations.support(method, capability, engine, version).runs == runs


@pytest.mark.parametrize(
    ("method", "arch", "version", "runs"),
    [("fp8", "gfx942", "0.33.0", "yes"), ("fp8", "gfx90a", "0.33.0", "unknown"), ("mxfp4", "gfx950", "0.33.0", "yes"),
     ("awq", "gfx1100", "0.11.0", "yes"), ("nvfp4", "gfx942", "0.19.0", "unknown"),
     ("nvfp4", "gfx942", "0.33.0", "emulated")],
)  # fmt: skip
def test_amd_by_architecture(method: str, arch: str, version: str, runs: str) -> None:
    assert quantisations.support(method, None, "vllm", version, arch).runs == runs


def test_the_sentence_says_what_is_missing() -> None:
    assert quantisations.support("nvfp4", 7.0, "vllm", "0.33.0").why == (
        "nvfp4 needs compute capability 7.5, the device has 7"
    )
    assert quantisations.support("gguf", 8.0, "vllm", "0.30.0").why == "vLLM 0.24 and later have no gguf"
    assert quantisations.support("mxfp4", 9.0, "vllm", "0.9.2").why == "mxfp4 came with vLLM 0.10.1"
    assert "weights only" in quantisations.support("fp8", 8.0).why
    assert quantisations.support("int8", 12.0).why.endswith("CUTLASS has no int8 for Blackwell")


@pytest.mark.parametrize(("method", "capability"), [("", 9.0), ("squeeze", 9.0), ("fp8", None)])
def test_what_nobody_read_is_unknown(method: str, capability: float | None) -> None:
    assert quantisations.support(method, capability).runs == "unknown"


@pytest.mark.parametrize(
    ("dtype", "capability", "version", "runs"),
    [("auto", 7.0, "", "yes"), ("bfloat16", None, "", "yes"), ("fp8", 8.0, "0.11.0", "no"),
     ("fp8_e4m3", 8.0, "0.33.0", "yes"),
     ("fp8_e5m2", 9.0, "0.11.0", "yes"), ("fp8", 7.5, "0.33.0", "no"), ("fp8", 8.6, "0.6.6", "yes"),
     ("nvfp4", 9.0, "0.24.0", "no"), ("nvfp4", 10.0, "0.24.0", "yes"), ("nvfp4", 9.0, "0.33.0", "yes"),
     ("q8_0", 9.0, "", "unknown")],
)  # fmt: skip
def test_dtype_of_the_kv_cache(dtype: str, capability: float | None, version: str, runs: str) -> None:
    assert quantisations.kv_cache(dtype, capability, "vllm", version).runs == runs


def test_minimum_of_a_release() -> None:
    assert quantisations.minimum("awq") == 7.5
    assert quantisations.minimum("gptq_marlin", "vllm", "0.12.0") == 8.0
    assert quantisations.minimum("nvfp4", "vllm", "0.8.5") == 10.0
    assert quantisations.minimum("gguf", "vllm", "0.33.0") is None
    assert quantisations.minimum("squeeze") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [("compressed-tensors (AWQ W4A16)", "w4a16"), ("FP8", "fp8"), ("AWQ 4bit", "awq"), ("modelopt_fp4", "nvfp4"),
     ("awqward", None), ("", None)],
)  # fmt: skip
def test_method_that_a_text_speaks_of(text: str, name: str | None) -> None:
    assert getattr(quantisations.mentioned(text), "name", None) == name
