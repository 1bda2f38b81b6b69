"""From which value on something is a symptom: bounds that layers, limits and predicates share, each with its reason.

A bound without a source is a judgement, and the corpus of known incidents decides about it. Rules write their own
bounds beside their conditions, in `knowledge/data/rules`.
"""

from __future__ import annotations

WAITING = 4
"""Requests that wait: one to three wait for the next step or a place in the batch on a healthy server too."""
FULL_POOL = 0.95
"""KV usage: cached blocks that can be evicted count as free, so the rest is held by running requests."""
NEARLY_FULL_POOL = 0.92
"""KV usage as a mere sign: a preemption frees blocks, and 0.92 was seen in a window with 36 of them."""
PREEMPTIONS_PER_MIN = 0.5
"""One preemption in two minutes: each is computed again, and a pool that is large enough has none."""
TTFT_S = 3.0
"""Seconds to the first token after which a person thinks that nothing happens."""
ITL_S = 0.5
"""Seconds between two tokens that a reader sees as a stall."""
SLOWER = 1.3
"""A latency that moved by 30 %: less than that lies within one bucket of its histogram."""
FAILED_RATIO = 0.02
"""Share of requests that failed: single errors are clients' mistakes, one in fifty is the service's."""
ABORTED_RATIO = 0.2
"""Share of requests that were aborted: people close tabs, but not one in five."""
GPU_TEMP_C = 86
"""°C: some data-centre GPUs begin to slow down from there on (`nvidia-smi -q` tells the card's own limit)."""
GPU_BANDWIDTH_RATIO = 0.9
"""Share of the memory's peak bandwidth; kernels that only copy hardly get further."""
HOST_CPU_RATIO = 0.95
"""Share of all cores that is busy: nothing is left for a thread that becomes runnable."""
CPU_WAIT_RATIO = 0.35
"""Share of time that an engine's threads were runnable but not running: below a third the GPU usually hides it."""
FULL_CORE = 0.9
"""Cores that one busy thread takes as sampled: it never shows as a whole one."""
