"""What the log beside a ledger says of the start itself: that it succeeded, why it failed, what is missing in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten

from llmedic.analysis.ledger import failure, startup
from llmedic.analysis.ledger.failure import Failure
from llmedic.analysis.ledger.flagview import Flags
from llmedic.analysis.ledger.ranges import GIB
from llmedic.analysis.ledger.startup import Startup
from llmedic.knowledge import accelerators
from llmedic.model.deployment import Deployment
from llmedic.model.evidence import Gap, LogEvent
from llmedic.model.ledger import Ledger, Problem, Range

TEXT_CHARS = 160
"""Of a line that is quoted."""
CARD_TOLERANCE = 0.04
"""Drivers and MIG profiles differ by less between cards of one name."""
LEAST_CONTEXT = 512
COMPUTE_BYTES = 1.0 * GIB
"""Room for llama.cpp's compute buffers and the driver beside the cache, where the model's shape is not known."""
FILE_TOLERANCE = 1.25
"""Padding and tensors that are held twice make the weights of a file differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A start-up log, read.

    name    as it was given, to be named in a hint; "" when there is no log
    before  the deployment that printed it, where the ledger is asked about a changed one
    foreign why its numbers cannot be this server's, one sentence; then none of them is used, only the settings
    """

    found: Startup = field(default_factory=Startup)
    failure: Failure | None = None
    served: bool = False
    name: str = ""
    before: Deployment | None = None
    foreign: str = ""

    @property
    def ended(self) -> Failure | None:
        """The want of memory that ended the start, where the ledger is asked about that start."""
        return self.failure if self.failure and self.failure.is_memory and self.before is None else None


def read(events: Sequence[LogEvent], version: str, name: str = "", before: Deployment | None = None) -> Log:
    """What a log's events tell of the last start in it."""
    return Log(
        found=startup.read(events, version),
        failure=failure.of(events),
        served=failure.served(events),
        name=name,
        before=before,
    )


def completed(deployment: Deployment, log: Log) -> Deployment:
    """The deployment with the card's memory as the log prints it, where nobody named the card."""
    total, hardware = log.found.size("total"), deployment.hardware
    if total is None or hardware.memory_gib or hardware.accelerator:
        return deployment
    return replace(deployment, hardware=replace(hardware, memory_gib=total / GIB))


def held_against(log: Log, deployment: Deployment, total: Range | None, weights: Range | None) -> Log:
    """The log without its numbers where they cannot be of this card or of this file.

    total    of the card; weights: computed, of one device; None where they are not known
    """
    why = _another_card(log.found, deployment, total, weights) or _another_file(log.found, deployment, weights)
    if not why:
        return log
    bare = Startup(starts=log.found.starts)
    return replace(log, found=bare, failure=None, served=False, before=None, foreign=why)


def _another_card(found: Startup, deployment: Deployment, total: Range | None, weights: Range | None) -> str:
    """Why the printed sizes cannot be of the card that was named; "" where they can, or it printed its total."""
    named = deployment.hardware.accelerator
    if not named or total is None or found.size("total") is not None or deployment.engine not in ("vllm", "sglang"):
        return ""
    loaded = found.size("consumed") or found.size("weights") or (weights.low if weights is not None else 0.0)
    taken = max(loaded + max(found.size("kv_cache") or 0.0, 0.0), found.size("requested") or 0.0)
    if not found.printed or taken <= total.high * (1 + CARD_TOLERANCE):
        return ""
    return (
        f"the log is of another card: it tells of {taken / GIB:.2f} GiB on one device, "
        f"{named} has {total.likely / GIB:.2f} GiB"
    )


def _another_file(found: Startup, deployment: Deployment, weights: Range | None) -> str:
    """Why the printed weights cannot be those of the checkpoint that was given; "" where they can."""
    printed = found.size("weights")
    if not deployment.model.tensors or weights is None or not printed:
        return ""
    if weights.low / FILE_TOLERANCE <= printed <= weights.high * FILE_TOLERANCE:
        return ""
    return (
        f"the log is of another model: its weights take {printed / GIB:.2f} GiB on one device, "
        f"those of this one {weights.likely / GIB:.2f} GiB"
    )


def told(whole: Ledger, log: Log, deployment: Deployment) -> Ledger:
    """The ledger with what the log says of the start itself."""
    if not log.name:
        return whole
    gaps = (replace(gap, how=gap.how.replace(" MODEL ", f" --log {log.name} ")) for gap in whole.gaps)
    whole = replace(whole, gaps=tuple(gaps))
    whole = replace(whole, notes=(*whole.notes, *log.found.notes, *_notes(log, deployment)))
    if log.foreign:
        warning = Problem(severity="warning", text=f"{log.foreign}; its settings are used, its numbers are not")
        return replace(whole, problems=(warning, *whole.problems))
    if log.before is not None:
        return whole
    if log.failure is not None and not log.failure.is_memory:
        return _not_memory(whole, log, log.failure)
    if log.failure is not None:
        return replace(whole, starts="no")
    if log.served:
        return _started(whole)
    if not log.found.printed:
        gap = Gap(
            what="memory in the log",
            why="none of its lines tells of memory",
            how="give the log from the start of the server on",
        )
        return replace(whole, gaps=(*whole.gaps, gap))
    return whole


def without_ledger(log: Log, deployment: Deployment) -> tuple[Problem, ...]:
    """Why a start failed where the model's shape is not known: what the log's own numbers say."""
    ended = log.ended
    if ended is None:
        return ()
    text, change = ended.text, ""
    needed, pool = log.found.size("one_request"), log.found.size("kv_cache")
    requested, free, total = (log.found.size(name) for name in ("requested", "free", "total"))
    longest = ended.event.fields.get("longest")
    if ended.stage == "length" and needed is not None and pool is not None:
        text = f"{text}: it needs {needed / GIB:.2f} GiB, the pool has {pool / GIB:.2f} GiB"
        change = f"--max-model-len {longest:.0f}" if isinstance(longest, float) and longest >= 1 else ""
    elif ended.stage == "free" and free is not None and requested is not None and total:
        text = f"{free / GIB:.2f} GiB are free at start, {requested / GIB:.2f} GiB are wanted"
        share = int(free / total * 100 - 1) / 100
        change = f"--gpu-memory-utilization {share:.2f}" if share > 0 and deployment.engine in ("vllm", "") else ""
    elif ended.stage == "cache" and ended.tried is not None and deployment.engine in ("llama.cpp", "ollama"):
        text, change = _shorter(ended, ended.tried, log, deployment)
    elif ended.stage == "cache" and pool is not None:
        text = f"{text}: the pool has {pool / GIB:.2f} GiB"
    return (Problem(severity="critical", cause=ended.cause, text=text, change=change, starts="no"),)


def _shorter(ended: Failure, wanted: float, log: Log, deployment: Deployment) -> tuple[str, str]:
    """What llama.cpp had left for a cache of `wanted` bytes, and a context that it has room for."""
    free, weights = log.found.size("free"), log.found.size("weights")
    if free is None or weights is None:
        return ended.text, ""
    left = free - weights
    text = (
        f"{free / GIB:.2f} GiB free less weights of {weights / GIB:.2f} GiB are {left / GIB:.2f} GiB, "
        f"less than the KV cache of {wanted / GIB:.2f} GiB"
    )
    whole = context = Flags(deployment).count("ctx_size")
    while context > LEAST_CONTEXT and wanted * context / whole > left - COMPUTE_BYTES:
        context //= 2
    return text, f"--ctx-size {context}" if LEAST_CONTEXT < context < whole else ""


def _notes(log: Log, deployment: Deployment) -> list[str]:
    found = []
    if log.found.starts > 1:
        found.append(f"the log holds {log.found.starts} starts: the last one is shown")
    if log.before is not None:
        found.append("settings differ from the log's: what it printed is moved by what the change makes")
    card = accelerators.find(deployment.hardware.accelerator) if deployment.hardware.accelerator else None
    total = log.found.size("total")
    if card is not None and total is not None and abs(total / card.memory.likely - 1) > CARD_TOLERANCE:
        found.append(
            f"the log's card has {total / GIB:.2f} GiB, {card.name} has {card.memory.likely / GIB:.2f} GiB: "
            "the log's counts"
        )
    return found


def _not_memory(whole: Ledger, log: Log, failed: Failure) -> Ledger:
    """The log ends with something that is not about memory, or after the start."""
    quoted = shorten(failed.event.text, TEXT_CHARS, placeholder=" ...")
    if failed.stage == "serve":
        gap = Gap(
            what="why it failed while serving",
            why="the server had started, and the ledger is about the start",
            how=f"llmedic diagnose --log {log.name}",
        )
        started = _started(whole)
        text = f"it started, then failed while serving: {failed.text}"
        problem = Problem(severity="critical", cause=failed.cause, text=text)
        return replace(started, problems=(problem, *started.problems), gaps=(*whole.gaps, gap))
    gap = Gap(
        what="why the start failed",
        why=f"what the log ends with is not about the card's memory: {quoted}",
        how=f"llmedic diagnose --log {log.name}",
    )
    return replace(whole, starts="unknown", gaps=(*whole.gaps, gap))


def _started(whole: Ledger) -> Ledger:
    """The log shows that it started, whatever the ledger says."""
    if whole.starts == "yes":
        return whole
    milder = tuple(
        replace(one, severity="warning" if one.severity == "critical" else one.severity, starts="yes")
        if one.starts != "yes"
        else one
        for one in whole.problems
    )
    notes = whole.notes
    if whole.starts == "no":
        notes = (*notes, "the log shows that it started; by the ledger it would not: are model, card and flags those?")
    return replace(whole, starts="yes", problems=milder, notes=notes)
