"""What a person asked for, in plain values: the command line fills these in, the use cases read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from llmedic.knowledge.texts import Lang as Lang
from llmedic.model.evidence import Evidence, Symptoms
from llmedic.model.verdict import Verdict
from llmedic.wire.access import ANONYMOUS, Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where evidence comes from. Everything is optional; what is given is read side by side.

    targets    engine URLs, prom+http(s) URLs, bundles (.zip) and directories, as typed
    metrics    zero, one or two files of a metrics endpoint: with two, the window is what lies between them
    logs       files; Path("-") is standard input
    args       the engine's command line as typed
    pid        a local engine process
    case       a case file
    model      a folder or a file of the served model
    symptoms   what the person ticked
    """

    targets: tuple[str, ...] = ()
    metrics: tuple[Path, ...] = ()
    logs: tuple[Path, ...] = ()
    args: str = ""
    pid: int | None = None
    case: Path | None = None
    model: Path | None = None
    symptoms: Symptoms = field(default_factory=Symptoms)

    def __bool__(self) -> bool:
        files = (*self.targets, *self.metrics, *self.logs)
        return bool(files or self.args or self.case or self.model or self.symptoms) or self.pid is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseRequest:
    """One diagnosis.

    window_s       how long a live target is watched, in seconds
    compare_to_s   judge the window against the same length this many seconds ago (Prometheus only)
    baseline       name in the store or path of a stored baseline
    save_baseline  store this window under the name: for a window in which all is well, which is for the caller to know
    probe          send one short completion: it costs the target a request, so it is never the default
    """

    sources: Sources
    access: Access = ANONYMOUS
    window_s: float = 15.0
    compare_to_s: float | None = None
    baseline: str = ""
    save_baseline: str = ""
    probe: bool = False
    lang: Lang = "en"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRequest:
    """One bundle: the same sources as a diagnosis, written to `output` instead of judged."""

    sources: Sources
    output: Path
    access: Access = ANONYMOUS
    window_s: float = 15.0
    compare_to_s: float | None = None
    probe: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The verdict, and the evidence it rests on."""

    verdict: Verdict
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was written: the file, how many raw inputs and how many of them hold something, a line per missing one."""

    path: Path
    inputs: int
    usable: int = 0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRequest:
    """One ledger.

    model             a name of the catalogue, a directory, a config.json, a .safetensors or a .gguf file; "" with a log
                      that names it
    gpu               a card ("H100", "8x H200") or the memory of one ("24GiB"); count: cards in the machine
    engine, version   of the server; flags: its own flags as typed ("--max-model-len", "16000"); args: a command line
    log               a start-up log: what it printed is held against what is computed
    available_bytes   the KV cache's size where the engine printed it: blocks, tokens and concurrency follow exactly,
                      up to the digits that were not printed (available_slack_bytes to either side)
    context_tokens    tokens of one request, prompt and answer; concurrency: how many of them at once
    plan_context      tokens of one request after a planned change, from context_tokens now
    solve             settings to solve for, see `analysis.ledger.solve.GOALS`
    """

    model: str = ""
    gpu: str = ""
    count: int | None = None
    engine: str = ""
    version: str = ""
    flags: tuple[str, ...] = ()
    args: str = ""
    log: Path | None = None
    available_bytes: int | None = None
    available_slack_bytes: float = 0.0
    context_tokens: int | None = None
    concurrency: int | None = None
    plan_context: int | None = None
    solve: tuple[str, ...] = ()
    lang: Lang = "en"


Progress = Callable[[str], None]
"""Takes one line for standard error; the use cases say what they wait for."""
