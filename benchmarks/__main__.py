"""`python -m benchmarks [NAME …]`: runs the measurements and prints one table row each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from benchmarks import commands, fleet, ledger, log_scan

BENCHMARKS: Mapping[str, Callable[[], None]] = {
    "commands": commands.main,
    "fleet": fleet.main,
    "ledger": ledger.main,
    "log-scan": log_scan.main,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
