"""The answer: health, layers, ranked causes, one next change, and what stayed unseen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llmedic.model.evidence import Gap
from llmedic.model.finding import Fact

Health = Literal["healthy", "degraded", "down", "unknown"]
Severity = Literal["info", "warning", "critical"]
LayerStatus = Literal["ok", "cause", "symptom", "not-evaluated"]

SURE = 0.5
"""Below this confidence a cause is a hedge, not an answer."""

LAYERS = ("load", "capacity", "hardware", "params", "deployment", "gateway")
"""In the order in which they are walked: a cause upstream explains symptoms downstream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer's status and the one line that says why."""

    layer: str
    status: LayerStatus
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Exactly one change of one variable, what it should do and the command that checks it.

    variable  the engine-neutral name of a setting, or a thing outside the engine in words
    from_, to its values; to is computed or taken from the evidence, empty when no number can be justified
    add       what to put on the command line of this engine and release ("--max-num-seqs 64"); drop: what to take off
    exists    False: this engine or release has no such setting, only the remedy's words help
    """

    variable: str
    from_: str
    to: str
    expected: str
    verify: str
    add: str = ""
    drop: str = ""
    exists: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One cause with its confidence (0.9 is right nine times in ten) and its evidence."""

    id: str
    layer: str
    severity: Severity
    confidence: float
    title: str
    summary: str
    evidence: tuple[Fact, ...] = ()
    symptoms: tuple[str, ...] = ()
    change: Change | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Two witnesses that do not say the same."""

    about: str
    first: Fact
    second: Fact
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingLimit:
    """Which limit binds now, with the number against its limit."""

    limit: str
    summary: str = ""
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What `llmedic diagnose` says. `engine` is a line for people ("vllm 0.32.0, 1 replica")."""

    health: Health
    layers: tuple[Layer, ...]
    causes: tuple[Cause, ...]
    cannot_tell: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    binding: BindingLimit | None = None
    engine: str = ""
    restart_warning: bool = False
