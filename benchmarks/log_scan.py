"""Measures the log reader against grep on a synthetic vLLM log: time, and memory of the reader.

    python benchmarks/log_scan.py [GIB]

Both read the same file from the page cache with the same literals. The target is at most three times grep's time and
at most 256 MiB, for one gibibyte.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from llmedic.collect import logs
from llmedic.knowledge import logs as patterns

GIB = 1 << 30
ROUNDS = 3

_ACCESS = 'INFO:     10.0.{a}.{b}:{port} - "POST /v1/chat/completions HTTP/1.1" {status}\n'
_RECEIVED = (
    "(APIServer pid=7) INFO 11-30 {clock} [logger.py:40] Received request chatcmpl-{id}: params: n=1, max_tokens={n}\n"
)
_ADDED = "(APIServer pid=7) INFO 11-30 {clock} [async_llm.py:270] Added request chatcmpl-{id}.\n"
_STATS = (
    "(APIServer pid=7) INFO 11-30 {clock} [loggers.py:118] Engine 000: Avg prompt throughput: {n}.5 tokens/s, "
    "Avg generation throughput: 1157.2 tokens/s, Running: 51 reqs, Waiting: {b} reqs, GPU KV cache usage: 87.1%, "
    "Prefix cache hit rate: 70.0%\n"
)
_WARNING = (
    "WARNING 11-30 {clock} [scheduler.py:1508] Sequence group cmpl-{id} is preempted by PreemptionMode.RECOMPUTE mode "
    "because there is not enough KV cache space. total_num_cumulative_preemption={n}\n"
)
_TRACEBACK = (
    "ERROR 11-30 {clock} [serving_chat.py:200] Traceback (most recent call last):\n"
    'ERROR 11-30 {clock} [serving_chat.py:200]   File "/app/vllm/serving_chat.py", line 190, in'
    " create_chat_completion\n"
    "ERROR 11-30 {clock} [serving_chat.py:200] ValueError: This model's maximum context length is 8192 tokens. "
    "However, you requested {n}9 tokens.\n"
)
_MIX = ((_ACCESS, 500), (_RECEIVED, 240), (_ADDED, 240), (_STATS, 12), (_WARNING, 2), (_TRACEBACK, 1))


def _lines(seed: int) -> Iterator[str]:
    generator = random.Random(seed)
    forms, weights = zip(*_MIX, strict=True)
    clock = 0
    while True:
        form = generator.choices(forms, weights)[0]
        clock += 1
        yield form.format(
            a=generator.randrange(256),
            b=generator.randrange(256),
            port=generator.randrange(1024, 65536),
            status=generator.choices(("200 OK", "400 Bad Request", "500 Internal Server Error"), (990, 8, 2))[0],
            clock=f"{clock // 36000 % 24:02}:{clock // 600 % 60:02}:{clock // 10 % 60:02}",
            id=f"{generator.getrandbits(64):016x}",
            n=generator.randrange(10, 2000),
        )


def _write(path: Path, size: int) -> None:
    """One block of 32 MiB of different lines, repeated: grep and the reader do not remember what they saw."""
    block = bytearray()
    for line in _lines(1):
        block += line.encode()
        if len(block) > 32 << 20:
            break
    with path.open("wb") as file:
        for _ in range(size // len(block) + 1):
            file.write(block)


def _grep(path: Path, literals: Path) -> tuple[float, int]:
    started = time.perf_counter()
    result = subprocess.run(
        ["grep", "-c", "-F", "-f", str(literals), str(path)],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    return time.perf_counter() - started, int(result.stdout or 0)


def _ours(path: Path) -> tuple[float, float, str]:
    started = time.perf_counter()
    child = subprocess.run([sys.executable, __file__, "--read", str(path)], capture_output=True, text=True, check=True)
    elapsed = time.perf_counter() - started
    peak, *rest = child.stdout.split(maxsplit=1)
    return elapsed, float(peak), rest[0].strip()


def _read(path: Path) -> None:
    found = logs.read(logs.capture([path]))
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    events = ", ".join(f"{event.id} x{event.count}" for event in found.events[:6])
    print(f"{peak_mib:.0f} {found.log_lines:,} lines, {len(found.observations)} observations, {events}")


def main() -> None:
    """Measure one gibibyte."""
    measure(1.0)


def measure(size_gib: float) -> int:
    """Time and memory on a log of that size; 0 when the targets are met."""
    with tempfile.TemporaryDirectory() as folder:
        log, literals = Path(folder) / "vllm.log", Path(folder) / "literals"
        literals.write_text("".join(f"{literal}\n" for literal in patterns.literals()))
        _write(log, int(size_gib * GIB))
        grep = [_grep(log, literals) for _ in range(ROUNDS)]
        ours = [_ours(log) for _ in range(ROUNDS)]
    ours_s, grep_s = min(item[0] for item in ours), min(item[0] for item in grep)
    peak = max(item[1] for item in ours)
    print(f"log            {size_gib:g} GiB, {len(patterns.literals())} literals, {grep[0][1]:,} matching lines")
    print(f"grep           {grep_s:.2f} s ({size_gib / grep_s:.2f} GiB/s)")
    print(f"llmedic        {ours_s:.2f} s ({size_gib / ours_s:.2f} GiB/s), interpreter start and reading included")
    print(f"ratio          {ours_s / grep_s:.2f} (target 3)")
    print(f"peak memory    {peak:.0f} MiB (target 256)")
    print(f"found          {ours[0][2]}")
    return 0 if ours_s <= 3 * grep_s and peak <= 256 else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        _read(Path(sys.argv[2]))
        sys.exit(0)
    sys.exit(measure(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0))
