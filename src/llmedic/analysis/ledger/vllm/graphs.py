"""CUDA graphs: how many batch sizes are captured, and what the budget pays for them.

Up to 0.19 graphs are captured after the pool is sized and lie outside the requested memory. Since 0.20 an estimate is
taken from the budget: the first capture of a mode, and each further batch size at the price of the second one, at
least 1 MiB (profile_cudagraph_memory in vllm/v1/worker/gpu_model_runner.py). The second model runner estimates nothing
before 0.29. Estimate and truth differ widely: 33.06 and 8.57 GiB, 0.43 and 0.64, 1.59 and 2.00.
"""

from __future__ import annotations

from llmedic.analysis.ledger.ranges import GIB, MIB, stacked, times
from llmedic.analysis.ledger.vllm.activation import second_runner
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.knowledge import memory
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import Term

INSIDE_SINCE = (0, 20)
SECOND_RUNNER_INSIDE_SINCE = (0, 29)
COUNTED_ON_DEMAND_SINCE = (0, 18)
"""VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS (vllm/envs.py); the first runner alone asks it before 0.29."""
LARGEST_CAPTURE = 512
"""Upper end of max_cudagraph_capture_size where nobody sets it (vllm/config/vllm.py)."""


def inside(geometry: Geometry, settings: Settings, release: str) -> bool:
    """Whether this release takes an estimate of its graphs from the budget."""
    second = second_runner(geometry, release)
    if settings.graphs_counted is not None and not second and _since(settings, COUNTED_ON_DEMAND_SINCE):
        return settings.graphs_counted
    return _since(settings, SECOND_RUNNER_INSIDE_SINCE if second else INSIDE_SINCE)


def _since(settings: Settings, release: tuple[int, int]) -> bool:
    return not settings.version or settings.version >= release


def capture_sizes(largest: int) -> tuple[int, ...]:
    """Batch sizes captured up to a largest one: 1, 2, 4, every eighth up to 256, every sixteenth beyond."""
    return (*(size for size in (1, 2, 4) if size <= largest), *range(8, min(largest + 1, 256), 8),
            *range(256, largest + 1, 16))  # fmt: skip


def count(settings: Settings) -> int:
    """Graphs of both modes: mixed batches up to twice max_num_seqs (at most 512), and pure decoding batches."""
    per_request = 1 + settings.speculative_tokens
    largest = min(settings.max_num_seqs * per_request * 2, LARGEST_CAPTURE, settings.max_num_batched_tokens)
    decode = min(settings.max_num_seqs * per_request, largest)
    return len(capture_sizes(largest)) + len(capture_sizes(decode))


def graphs(geometry: Geometry, settings: Settings, release: str) -> Term:
    """The memory of all graphs, as estimated where the release estimates it."""
    captured = count(settings)
    first = memory.figure(_first(geometry, settings, release), release)
    each = memory.figure("graph_each_state_mib" if _recurrent(geometry) else "graph_each_mib", release)
    size = stacked((times(first, GIB), times(each, captured * MIB)))
    return Term(id="cuda_graphs", size=size, basis="calibrated", how=f"{captured} captured batch sizes")


def _first(geometry: Geometry, settings: Settings, release: str) -> str:
    """The figure of the first capture."""
    if _recurrent(geometry):
        return "graph_first_state_gib"
    if second_runner(geometry, release) and inside(geometry, settings, release):
        return "graph_first_second_runner_gib"
    return "graph_first_gib"


def _recurrent(geometry: Geometry) -> bool:
    return any(layer is not None and layer.kind == "state" for layer in geometry.layers)
