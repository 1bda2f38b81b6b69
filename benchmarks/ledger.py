"""The memory ledger: one for any catalogued model, a grid of ten thousand combinations, the command from the shell.

Times of the library are the process's own, so that other programs on the machine do not count. Nothing of the same kind
is installed beside it: hf-mem and its like read a repository from the network for every question.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median

from benchmarks import commands
from llmedic.analysis.ledger import account, subject
from llmedic.analysis.ledger.vllm import grid, settings
from llmedic.analysis.ledger.vllm.candidate import Load, holds
from llmedic.analysis.ledger.vllm.variants import Variants
from llmedic.knowledge import models
from llmedic.model.deployment import Deployment, HardwareFacts, ModelFacts

VERSION = "0.33.0"
CARD = "NVIDIA H100 80GB HBM3"
LOAD = Load(concurrency=8, context_tokens=32_000)
COMBINATIONS = 10_000
GRID_ROUNDS, COMMAND_ROUNDS = 3, 7
COMMAND = (sys.executable, "-m", "llmedic", "ledger", "Qwen3-32B", "--gpu", "H100", "--format", "json")


def deployment(name: str) -> Deployment:
    """A catalogued model on the card, with every setting at its default."""
    found = models.find(name)
    if found is None:
        raise SystemExit(f"{name} is not in the catalogue")
    model = ModelFacts(name=found.name, config=found.config)
    return Deployment(engine="vllm", version=VERSION, model=model, hardware=HardwareFacts(accelerator=CARD))


def own(work: Callable[[], object]) -> float:
    """Seconds of this process for a piece of work."""
    began = time.process_time()
    work()
    return time.process_time() - began


def every_model() -> list[float]:
    """One whole ledger for each model of the catalogue, its configuration at hand."""
    deployments = [deployment(name) for name in models.names()]
    account.of(deployments[0])  # imports and data files
    return [own(lambda whole=whole: account.of(whole)) for whole in deployments]  # type: ignore[misc]


def search() -> int:
    """Ten thousand combinations of degree, quantisation, card, share and cap, each held against the load."""
    whole = deployment("Qwen/Qwen3-32B")
    shape, card = subject.shape(whole), subject.card(whole.hardware)
    if shape is None:
        raise SystemExit("the model has no configuration")
    server = subject.server(shape, settings.resolve(whole, shape), card, whole)
    base, tried = Variants(candidate=server, deployment=whole, load=LOAD), 0
    while tried < COMBINATIONS:
        for one in grid.combinations(base, LOAD, grid.AXES):
            holds(one.server, LOAD)
            tried += 1
            if tried == COMBINATIONS:
                break
    return tried


def main() -> None:
    """Measure all of them."""
    found = every_model()
    print(
        f"{'one ledger, each of ' + str(len(found)) + ' models':<34} median {median(found) * 1000:5.1f} ms  "
        f"(max {max(found) * 1000:.1f} ms)  target 50 ms"
    )
    grids = [own(search) for _ in range(GRID_ROUNDS)]
    print(f"{f'grid of {COMBINATIONS:,} combinations':<34} median {median(grids):6.3f} s  "
          f"(min {min(grids):.3f}, max {max(grids):.3f})  target 1 s")  # fmt: skip
    floors, whole = [], []
    for _ in range(COMMAND_ROUNDS):
        floors.append(commands.seconds((sys.executable, "-c", "pass")))
        whole.append(commands.seconds(COMMAND))
    commands.row("llmedic ledger MODEL --gpu CARD", whole, floors, "0.7 s")


if __name__ == "__main__":
    main()
