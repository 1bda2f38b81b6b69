"""Knows in which phase of its life the engine was when a line was printed.

An out-of-memory error says nothing of its cause; where it happened does. Two witnesses: the last line that opened a
phase, and the function names of the traceback the error ends. The traceback wins, because the lines of several
processes are mixed in one log.
"""

from __future__ import annotations

from llmedic.knowledge.logs import Phase

_RANKS = ("serve", "load", "warmup", "kv", "capture", "sampler", "profile")
"""A traceback passes through outer functions first: a profiling pass calls what serving calls, not the reverse."""

_COARSE: dict[str, Phase] = {
    "profile-mm": "profile",
    "kv": "profile",
    "after-kv": "capture",
    "sampler": "warmup",
    "start": "load",
}


def coarse(phase: str) -> str:
    """The phase as rules and people know it; the tracker and the variants of patterns tell more apart."""
    return _COARSE.get(phase, phase)


class PhaseTracker:
    """Fed with markers and frames in the order of the log."""

    def __init__(self) -> None:
        self._marker = ""
        self._frames: set[str] = set()

    def mark(self, phase: str) -> None:
        """A line said that a phase begins."""
        self._marker = phase

    def traceback(self) -> None:
        """A new traceback begins: its frames say where, not those of the one before."""
        self._frames.clear()

    def frame(self, phase: str) -> None:
        """A function of this phase is on the stack ("encoder" stands for the image encoder, in whichever phase)."""
        self._frames.add(phase)

    @property
    def now(self) -> str:
        """The phase an error printed now belongs to; "" when nothing tells."""
        known = [phase for phase in _RANKS if phase in self._frames]
        if not known:
            return self._marker
        phase = known[-1]
        return "profile-mm" if phase == "profile" and "encoder" in self._frames else phase
