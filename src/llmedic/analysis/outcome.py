"""True, false or unknown, with the facts that decided it and the names that are missing."""

from __future__ import annotations

from dataclasses import dataclass

from llmedic.model.finding import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """holds is None when the evidence does not decide; then `missing` names what would."""

    holds: bool | None
    facts: tuple[Fact, ...] = ()
    missing: tuple[str, ...] = ()


TRUE = Outcome(holds=True)
FALSE = Outcome(holds=False)


def true(*facts: Fact) -> Outcome:
    """It holds, because of these facts."""
    return Outcome(holds=True, facts=facts)


def false(*facts: Fact) -> Outcome:
    """It does not hold, because of these facts."""
    return Outcome(holds=False, facts=facts)


def unknown(*missing: str) -> Outcome:
    """These were not seen."""
    return Outcome(holds=None, missing=missing)
