"""Asks the real engine's own planner what a KV cache holds, without a model, a card or a server.

Reads a JSON list of questions from standard input and writes a JSON list of answers to standard output.
A question: the layers of the whole model as the engine's cache specs, the layers of each pipeline stage, the bytes of a
device, and what the planner reads of the engine's configuration. An answer: blocks, tokens, concurrency and the longest
request; or the error with which the engine would not start.

usage: plan_cache.py < questions.json     (with the Python of the real engine's environment, vLLM 0.32; offline)
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import torch
from vllm.v1.core import kv_cache_utils as planner
from vllm.v1.kv_cache_interface import (
    ChunkedLocalAttentionSpec,
    FullAttentionSpec,
    KVCacheSpec,
    MambaSpec,
    MLAAttentionSpec,
    SlidingWindowSpec,
)
from vllm.v1.kv_cache_layout import KVCacheLayout

DTYPES = {1: torch.uint8, 2: torch.bfloat16, 4: torch.float32}


def specs(number: int, layer: dict[str, Any]) -> dict[str, KVCacheSpec]:
    """The cache of one layer, by name; sparse attention has two."""
    name, block, dtype = f"layer.{number}", layer["block"], DTYPES[layer["bytes"]]
    if layer["kind"] == "state":
        shapes, dtypes = ((layer["size"],),), (torch.uint8,)
        state = MambaSpec(
            block_size=block,
            shapes=shapes,
            dtypes=dtypes,
            page_size_padded=layer["padded"],
            mamba_cache_mode=layer["mode"],
            num_speculative_blocks=layer["drafts"],
            num_prefill_checkpoint_blocks=layer["checkpoints"],
        )
        return {name: state}
    if layer["kind"] == "mla":
        latent = MLAAttentionSpec(block_size=block, num_kv_heads=1, head_size=layer["latent"], dtype=dtype)
        index = MLAAttentionSpec(block_size=block, num_kv_heads=1, head_size=layer["index"] or 1, dtype=torch.uint8)
        return {name: latent, f"{name}.index": index} if layer["index"] else {name: latent}
    heads = {
        "block_size": block,
        "num_kv_heads": layer["heads"],
        "head_size": layer["head_dim"],
        "head_size_v": layer["value_dim"],
        "dtype": dtype,
    }
    match layer["kind"]:
        case "sliding":
            return {name: SlidingWindowSpec(**heads, sliding_window=layer["window"])}
        case "chunked":
            return {name: ChunkedLocalAttentionSpec(**heads, attention_chunk_size=layer["window"])}
        case _:
            return {name: FullAttentionSpec(**heads)}


def configuration(question: dict[str, Any]) -> Any:
    """What the planner reads of a VllmConfig."""
    layout = KVCacheLayout[question["layout"]]
    return SimpleNamespace(
        model_config=SimpleNamespace(
            max_model_len=question["max_model_len"], original_max_model_len=question["max_model_len"]
        ),
        cache_config=SimpleNamespace(
            num_gpu_blocks_override=question["override"] or None,
            get_resolved_kv_cache_layout=lambda: layout,
            prefix_cache_retention_interval=None,
            mamba_cache_mode=question["mode"],
        ),
        scheduler_config=SimpleNamespace(disable_hybrid_kv_cache_manager=not question["hybrid"]),
        parallel_config=SimpleNamespace(
            decode_context_parallel_size=question["context_parallel"],
            tensor_parallel_size=question["tensor_parallel"],
        ),
        attention_config=SimpleNamespace(hisparse_config=None),
        speculative_config=None,
        kv_transfer_config=None,
        num_prefill_lookahead_tokens=0,
        max_in_flight_tokens=question["in_flight"],
    )


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What the engine would print, at the longest request that fits where max_model_len does not."""
    config = configuration(question)
    each = [specs(number, layer) if layer else {} for number, layer in enumerate(question["layers"])]
    stages = [
        {name: spec for number in range(first, last) for name, spec in each[number].items()}
        for first, last in question["stages"]
    ]
    merged = {name: spec for stage in stages for name, spec in stage.items()}
    groups = planner.get_kv_cache_groups(config, dict(merged))
    available = [question["available"]] * len(stages)
    longest = min(longest_of(config, groups, stage, question) for stage in stages)
    if not longest:
        return {"longest": 0}
    config.model_config.max_model_len = min(longest, question["max_model_len"])
    plans = planner.get_kv_cache_configs(config, stages, available)
    tokens, concurrency = planner.get_kv_cache_capacity(config, planner.generate_scheduler_kv_cache_config(plans))
    return {"longest": longest, "blocks": plans[0].num_blocks, "tokens": tokens, "concurrency": concurrency}


def longest_of(config: Any, groups: list[Any], stage: dict[str, KVCacheSpec], question: dict[str, Any]) -> int:
    """The longest request of one pipeline stage, by the engine's own search."""
    own = planner._project_kv_cache_groups_to_worker(groups, stage)
    block = planner._pool_bytes_per_block(config, own)
    size = question["override"] * block if question["override"] else question["available"]
    return int(planner._estimate_max_model_len_from_groups(config, own, size - block))


def main() -> int:
    found = []
    for question in json.load(sys.stdin):
        try:
            found.append(answer(question))
        except (NotImplementedError, ValueError) as refused:
            found.append({"error": f"{type(refused).__name__}: {refused}"})
    json.dump(found, sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
