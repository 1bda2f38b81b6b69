"""Records the bundles that ship with the tests, from a real vLLM. Run it after a change of the bundle format.

usage: python -m tests.real.record_bundles [NAME ...]     from the repository's root; about a minute each

A bundle that does not lead to the right cause is not kept.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .diagnosis import diagnose, run
from .engine import Engine
from .scenarios import SCENARIOS, Scenario
from .stage import staged

BUNDLES = Path(__file__).resolve().parents[1] / "bundles"
SOURCES = {
    "long-context-surge": "long-context-surge",
    "healthy": "healthy-light",
    "old-incident": "old-incident",
    "kv-preemption": "kv-preemption",
    "frozen-core": "engine-core-stalled",
    "seq-cap": "max-num-seqs-too-low",
}
MAX_BYTES = 300_000


def record(name: str, scenario: Scenario, scratch: Path) -> str:
    """One bundle; returns what diagnosing it says."""
    made, kept = scratch / f"{name}.zip", BUNDLES / f"{name}.zip"
    # A fixed port: the bundle names it, and a repeated recording should differ in its figures only.
    with Engine(scenario.server.launch(scratch), scratch / "engine.log", port=18000) as engine:
        engine.wait_ready()
        with staged(scenario, engine):
            window = f"{scenario.window_s:g}s"
            given = [engine.url, "--log", str(engine.log), "--window", window, "--output", str(made)]
            ended = run(["snapshot", *given], home=scratch)
    if not made.exists():
        return f"no bundle: {ended.stderr.strip()}"
    found = diagnose([str(made)], home=scratch)
    if found.first not in scenario.expected:
        return f"not kept: says {found.health} {found.causes}"
    if made.stat().st_size > MAX_BYTES:
        return f"not kept: {made.stat().st_size:,} bytes"
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(made.read_bytes())
    return f"{found.first}, {kept.stat().st_size:,} bytes"


def main(names: list[str]) -> int:
    unknown = set(names) - set(SOURCES)
    if unknown:
        print(f"no such bundle: {', '.join(sorted(unknown))}; there are {', '.join(SOURCES)}", file=sys.stderr)
        return 2
    scenarios = {scenario.name: scenario for scenario in SCENARIOS}
    for name in names or SOURCES:
        with tempfile.TemporaryDirectory() as scratch:
            print(f"{name}: {record(name, scenarios[SOURCES[name]], Path(scratch))}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
