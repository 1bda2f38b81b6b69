"""Fifty replicas with five thousand series each: collected and judged in the window plus two seconds."""

from __future__ import annotations

import time

from benchmarks import servers
from llmedic.app.diagnose import diagnose
from llmedic.app.request import DiagnoseRequest, Sources

REPLICAS = 50
SERIES = 5_000
WINDOW_S = 10.0


def main() -> None:
    """Measure one diagnosis of the whole fleet, in this process."""
    with servers.pages(count=REPLICAS, extra_series=SERIES) as urls:
        began = time.perf_counter()
        diagnosis = diagnose(DiagnoseRequest(sources=Sources(targets=tuple(urls)), window_s=WINDOW_S))
        taken = time.perf_counter() - began
    gaps = len(diagnosis.evidence.gaps)
    print(
        f"{REPLICAS} endpoints x {SERIES:,} series, window {WINDOW_S:g} s: {taken:.2f} s "
        f"(target {WINDOW_S + 2:.0f} s), {gaps} gaps, health {diagnosis.verdict.health}"
    )


if __name__ == "__main__":
    main()
