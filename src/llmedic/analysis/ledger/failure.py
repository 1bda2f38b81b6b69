"""Why a start failed, as its log says: the line that ended it, and what it tells of the memory at that point."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from llmedic.analysis.ledger.ranges import GIB
from llmedic.analysis.ledger.startup import last_start
from llmedic.knowledge import logs
from llmedic.model.evidence import LogEvent

Stage = Literal["free", "load", "profile", "cache", "length", "beside", "serve", "other"]
"""Where a start ended: before the weights, in their load, in the measured step, when the cache was sized, when the
longest request was held against it, in what is allocated beside the budget; or later, or not for want of memory."""

STAGES: dict[str, Stage] = {
    "memory-fraction-above-free": "free",
    "gpu-held-by-other-process": "free",
    "weights-do-not-fit": "load",
    "prefill-budget-activation-oom": "profile",
    "multimodal-profile-oom": "profile",
    "startup-no-memory-for-kv": "cache",
    "max-model-len-exceeds-kv-pool": "length",
    "cuda-graph-capture-oom": "beside",
    "sampler-buffers-oom": "beside",
    "runtime-oom-headroom-too-small": "beside",
}
"""Cause of a failed start -> its stage."""
SAME = ({"memory-fraction-above-free", "gpu-held-by-other-process"},
        {"weights-do-not-fit", "startup-no-memory-for-kv"},
        {"prefill-budget-activation-oom", "multimodal-profile-oom"})  # fmt: skip
"""Causes that the arithmetic cannot tell apart: whose memory it is, or how many bytes of the budget are left."""

SIZE_APART = "llama-cuda-malloc"
"""llama.cpp tells what was to be allocated in a line before the one that says what it was for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The line that ended the last start. Sizes in bytes; None where it does not tell them.

    tried  what was to be allocated; free, total: of the card; others: what other processes held
    """

    event: LogEvent
    cause: str
    stage: Stage
    tried: float | None = None
    free: float | None = None
    total: float | None = None
    others: float = 0.0

    @property
    def lacking(self) -> float:
        """Bytes by which memory was short at least; 0 where the line does not tell."""
        return max(self.tried - self.free, 0.0) if self.tried is not None and self.free is not None else 0.0

    @property
    def is_memory(self) -> bool:
        """Whether the start failed for want of the device's memory."""
        return self.stage not in ("serve", "other")

    @property
    def text(self) -> str:
        """What the log says, in one clause."""
        if self.tried is not None and self.free is not None and self.total is not None:
            return (
                f"the log ends out of memory: {self.tried / GIB:.2f} GiB more were wanted, "
                f"{self.free / GIB:.2f} of {self.total / GIB:.2f} GiB were free"
            )
        if self.tried is not None:
            return f"the log ends out of memory while it allocates {self.tried / GIB:.2f} GiB"
        return _SAID.get(self.stage, "the log ends out of memory")


_SAID: dict[Stage, str] = {
    "free": "the log says that other processes hold memory of the card",
    "cache": "the log says that nothing is left for the KV cache",
    "length": "the log says that one request does not fit the KV cache",
}


def of(events: Iterable[LogEvent]) -> Failure | None:
    """The failure that the last start of a log ended with; None where it did not end with one."""
    recent = last_start(events)
    found = [_failure(event) for event in recent if event.level in ("error", "fatal") and not event.is_echo]
    ended = [one for one in found if one.event.level == "fatal" or one.is_memory]
    if not ended or (served(recent) and not any(one.stage == "serve" for one in ended)):
        return None
    last = max(ended, key=lambda one: (one.is_memory, one.event.level == "fatal", _confidence(one.event)))
    sizes = [one.tried for one in ended if one.tried is not None and one.event.id.startswith(SIZE_APART)]
    return replace(last, tried=sizes[-1]) if last.tried is None and sizes else last


def served(events: Iterable[LogEvent]) -> bool:
    """Whether the last start of a log came to serve requests."""
    return any(_facts(event).get("phase") == "=serve" for event in last_start(events))


def same(one: str, other: str) -> bool:
    """Whether two causes are one to the arithmetic."""
    return one == other or any({one, other} <= group for group in SAME)


def reached(cause: str, failure: Failure) -> bool:
    """Whether a start that ended with a failure had come to where a problem of this cause would have ended it."""
    order: tuple[Stage, ...] = ("free", "load", "profile", "cache", "length", "beside", "serve", "other")
    return order.index(STAGES.get(cause, "free")) <= order.index(failure.stage)


def _failure(event: LogEvent) -> Failure:
    pattern = logs.pattern(event.id)
    cause = pattern.cause if pattern else ""
    stage = STAGES.get(cause, "other")
    if stage != "other" and ((pattern and pattern.phase == "run") or event.fields.get("phase") == "serve"):
        stage = "serve"
    tried = _bytes(event, "tried_gib")
    if stage == "cache" and tried is not None:
        stage = "beside"  # the pool had its size, and could not be allocated
    return Failure(
        event=event,
        cause=cause,
        stage=stage,
        tried=tried,
        free=_bytes(event, "free_gib"),
        total=_bytes(event, "total_gib"),
        others=_bytes(event, "others_gib") or 0.0,
    )


def _bytes(event: LogEvent, field: str) -> float | None:
    value = event.fields.get(field)
    return value * GIB if isinstance(value, float) else None


def _confidence(event: LogEvent) -> float:
    pattern = logs.pattern(event.id)
    return pattern.confidence if pattern else 0.0


def _facts(event: LogEvent) -> dict[str, str]:
    pattern = logs.pattern(event.id)
    return pattern.facts if pattern else {}
