"""Which engine a command line starts."""

from __future__ import annotations

import pytest

from llmedic.knowledge import launchers


@pytest.mark.parametrize(
    ("command_line", "engine"),
    [
        ("vllm serve Qwen3-32B", "vllm"),
        ("python -m vllm.entrypoints.openai.api_server --model Q", "vllm"),
        ("docker run vllm/vllm-openai:v0.11.0 --model Q", "vllm"),
        ("vllm serve /models/sglang/Q", "vllm"),
        ("python3 -m sglang.launch_server --model-path Q", "sglang"),
        ("docker run lmsysorg/sglang:latest sglang serve", "sglang"),
        ('["/app/llama-server", "-m", "Q.gguf"]', "llama.cpp"),
        ("docker run ghcr.io/ggml-org/llama.cpp:server -m Q.gguf", "llama.cpp"),
        ("text-generation-launcher --model-id Q", "tgi"),
        ("docker run ghcr.io/huggingface/text-generation-inference:2.2 --model-id Q", "tgi"),
        ("OLLAMA_NUM_PARALLEL=4 ollama serve", "ollama"),
        ("OLLAMA_NUM_PARALLEL=4", "ollama"),
        ("--mem-fraction-static 0.6", "sglang"),
        ("--gpu-memory-utilization 0.9", "vllm"),
        ("serve it", ""),
        ("", ""),
    ],
)
def test_the_engine_of_a_command_line(command_line: str, engine: str) -> None:
    assert launchers.engine_of(command_line) == engine
