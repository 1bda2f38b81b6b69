"""What a vLLM server asks of a card, and the pool size that its start-up log suggests instead."""

from __future__ import annotations

from math import ceil

from llmedic.analysis.ledger.ranges import GIB, MIB
from llmedic.analysis.ledger.settings import Settings
from llmedic.model.ledger import Range, Term

SUGGESTION_MARGIN_BYTES = 150 * MIB
"""`redundancy_buffer_memory` of `compile_or_warm_up_model` in vllm/v1/worker/gpu_worker.py, 0.11 to 0.33."""


def requested(total_bytes: Range, settings: Settings) -> Term:
    """The share of the card that the server may take: ceil(total x utilization).

    Source: request_memory in vllm/v1/worker/utils.py, 0.33; earlier releases do not round up, which is one byte.
    """
    share = settings.utilization
    size = Range(low=ceil(total_bytes.low * share), likely=ceil(total_bytes.likely * share),
                 high=ceil(total_bytes.high * share))  # fmt: skip
    return Term(id="requested", size=size, basis="computed", how=f"{total_bytes.likely / GIB:.2f} GiB x {share:g}")


def suggested_cache_bytes(requested_bytes: float, used_bytes: float, graphs_bytes: float) -> int:
    """The `--kv-cache-memory-bytes` that the log offers "to fit into requested memory".

    used_bytes    weights, activation and memory outside PyTorch; graphs_bytes: CUDA graphs as they were captured.
    """
    return int(requested_bytes - used_bytes - graphs_bytes - SUGGESTION_MARGIN_BYTES)
