"""Which lines of a start-up log tell which term of the ledger.

Sizes are in GiB whatever was printed: the log reader turns MiB and bytes into GiB by the ending of a field's
name. SGLang prints
"GB" and divides by 2**30 (get_available_gpu_memory in sglang/srt/utils), so its GB are GiB too.
"""

from __future__ import annotations

from collections.abc import Mapping

RANKS: Mapping[str, Mapping[str, str]] = {
    "vllm-memory-usage": {
        "total": "total", "requested": "requested", "weights": "weights", "peak": "activation", "other": "non_torch",
        "graphs": "cuda_graphs", "pool": "kv_cache", "pool_gib": "kv_cache", "free": "free",
    },
    "vllm-memory-usage-consumed": {
        "total": "total", "requested": "requested", "consumed": "consumed", "peak": "activation_and_graphs",
        "graphs": "cuda_graphs", "pool": "kv_cache", "free": "free",
    },
    "vllm-profile-terms": {"weights": "weights", "peak": "activation", "other": "non_torch", "consumed": "consumed"},
    "vllm-profile-v0": {"weights": "weights", "peak": "activation", "other": "non_torch", "pool": "kv_cache"},
    "vllm-profile-v066": {"total": "total", "peak": "torch_peak", "pool": "kv_cache"},
    "vllm-usable-memory-v0": {"total": "total", "requested": "requested"},
    "vllm-requested-memory": {"requested": "requested", "free": "free"},
    "vllm-free-memory-low": {"total": "total", "desired": "requested", "free": "free"},
    "vllm-weights": {"gib": "weights"},
    "vllm-phase-load-weights": {"gib": "weights"},
    "vllm-graph-estimate": {"gib": "cuda_graphs_estimate"},
    "vllm-graph-pool": {"actual": "cuda_graphs", "estimated": "cuda_graphs_estimate"},
    "vllm-captured": {"gib": "cuda_graphs"},
    "vllm-decoder-reserve": {"gib": "media_decoder"},
    "vllm-pool-given": {"pool": "kv_cache", "free": "free"},
    "vllm-kv-below-length-gib": {"available": "kv_cache", "needed": "one_request"},
    "vllm-pool-gib": {"gib": "kv_cache"},
    "sglang-phase-load": {"free": "free"},
    "sglang-phase-loaded": {"weights": "weights"},
    "sglang-phase-captured": {"graphs": "cuda_graphs"},
    "cuda-oom": {"total_gib": "total"},
    "hip-oom": {"total_gib": "total"},
    "llama-device-free": {"free_gib": "free"},
    "ollama-device": {"total_gib": "total", "free_gib": "free"},
}  # fmt: skip
"""Log pattern -> its field -> the term it is. Each rank prints a line of its own; the earlier pattern counts, because
it lists all terms of one rank."""

COUNTS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "vllm-pool-tokens": {"tokens": ("kv_tokens", "tokens")},
    "vllm-pool-blocks": {"blocks": ("blocks", "blocks")},
    "vllm-pool-blocks-device": {"blocks": ("blocks", "blocks")},
    "vllm-pool-concurrency": {"times": ("concurrency", "requests")},
    "sglang-capacity": {"pool": ("kv_tokens", "tokens")},
    "tgi-blocks": {"blocks": ("blocks", "blocks")},
    "tgi-max-total": {"tokens": ("kv_tokens", "tokens")},
}
"""Log pattern -> its field -> what it counts, and the unit."""

DEVICES: Mapping[str, Mapping[str, str]] = {
    "llama-model-buffer": {"size_gib": "weights"},
    "llama-kv-buffer-size": {"size_gib": "kv_cache"},
    "llama-state-buffer": {"size_gib": "state"},
    "llama-compute-buffer-size": {"size_gib": "compute_buffers"},
    "ollama-weights": {"size_gib": "weights"},
    "ollama-kv-cache": {"size_gib": "kv_cache"},
    "ollama-compute-graph": {"size_gib": "compute_buffers"},
}
"""Log pattern with a device in each line -> its field -> the term. Several lines of one device add up: a model with
windows has two caches on each."""

ADDED: Mapping[str, Mapping[str, str]] = {
    "sglang-pool": {"keys": "kv_cache", "values": "kv_cache", "pool": "kv_cache"},
    "llama-kv-size": {"size_gib": "kv_cache"},
    "llama-kv-self-size": {"size_gib": "kv_cache"},
}
"""Log pattern of which a process prints a line for each of its pools -> the fields that add up -> the term."""

TIGHTEST = frozenset({"kv_cache", "kv_tokens", "blocks", "concurrency", "free", "total", "requested"})
"""Of several ranks the smallest counts for these, the largest for what is taken."""


def is_host(device: str) -> bool:
    """Whether a buffer of llama.cpp lies in the host's memory ("CPU", "CPU_Mapped", "CUDA_Host")."""
    return device.startswith(("CPU", "Host", "BLAS", "AMX")) or device.endswith("_Host")
