"""How long the commands take from the shell: help, a bundle, a live server beyond its window.

Beside each figure stands a bare interpreter's start (`python -c pass`) in the same round, because that is the floor
and it moves with the machine.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks import servers

ROUNDS = 15
LIVE_ROUNDS = 3
LIVE_WINDOW_S = 3.0
BUNDLE = Path(__file__).parents[1] / "tests" / "bundles" / "long-context-surge.zip"
LLMEDIC = (sys.executable, "-m", "llmedic")


def seconds(command: Sequence[str]) -> float:
    """Wall time of one run; exit codes 0 to 3 are answers."""
    began = time.perf_counter()
    code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
    taken = time.perf_counter() - began
    if code > 3:
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    return taken


def row(name: str, found: Sequence[float], floor: Sequence[float], target: str) -> None:
    """One line: median, spread, floor in the same run, target."""
    print(
        f"{name:<34} median {median(found):6.3f} s  (min {min(found):.3f}, max {max(found):.3f})"
        f"  bare python {median(floor):.3f} s  target {target}"
    )


def main() -> None:
    """Measure all of them."""
    for name, command, target in (
        ("llmedic --help", (*LLMEDIC, "--help"), "0.150 s"),
        ("llmedic diagnose BUNDLE", (*LLMEDIC, "diagnose", str(BUNDLE), "--format", "json"), "0.7 s"),
    ):
        floors, found = [], []
        for _ in range(ROUNDS):
            floors.append(seconds((sys.executable, "-c", "pass")))
            found.append(seconds(command))
        row(name, found, floors, target)
    with servers.pages(count=1, extra_series=0) as urls:
        window = f"{LIVE_WINDOW_S:g}s"
        live = [seconds((*LLMEDIC, "diagnose", urls[0], "--window", window)) for _ in range(LIVE_ROUNDS)]
    floors = [seconds((sys.executable, "-c", "pass"))]
    row(f"llmedic diagnose URL, window {window}", live, floors, f"{LIVE_WINDOW_S + 0.7:.1f} s")


if __name__ == "__main__":
    main()
