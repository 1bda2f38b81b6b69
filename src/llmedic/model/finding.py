"""What one rule made of the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["cause", "against", "clear", "cannot_tell"]
Witness = Literal["metrics", "log", "settings", "symptoms", "ledger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value that decided a rule, ready to be shown.

    compared_to is the bound or the earlier value it was held against, in words ("> 0.95", "1.2 s before").
    """

    name: str
    value: str
    unit: str = ""
    window: str = ""
    source: str = ""
    compared_to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule's outcome, the facts that decided it and, for cannot_tell, what it would have needed.

    cause        the rule fired and speaks for its cause with `confidence`
    against      the rule fired and speaks against its cause; confidence is below 0.5
    clear        the condition was evaluated and does not hold
    cannot_tell  something it needs was not seen: `missing` names it
    """

    rule: str
    cause: str
    witness: Witness
    outcome: Outcome
    confidence: float = 0.0
    facts: tuple[Fact, ...] = ()
    missing: tuple[str, ...] = ()
