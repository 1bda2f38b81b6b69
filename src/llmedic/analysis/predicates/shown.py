"""How predicates show and collect what they looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from llmedic.analysis.view import View, fact_of, statistic
from llmedic.model.finding import Fact
from llmedic.model.observation import Observation


def measured(view: View, first: str, second: str) -> list[tuple[float, float]]:
    """The pairs of two values in every measured row that has both."""
    found = []
    for row in view.evidence.bench:
        if first in row.values and second in row.values:
            pair = statistic(row.values[first], "typical"), statistic(row.values[second], "typical")
            if pair[0] is not None and pair[1] is not None:
                found.append((pair[0], pair[1]))
    return found


def shown(observation: Observation, stat: str, compared_to: str = "") -> Fact:
    """The observation's statistic as a fact; NaN when it has none."""
    number = statistic(observation.value, stat)
    if number is None:
        return fact_of(observation, stat, float("nan"), compared_to)
    return fact_of(observation, stat, number, compared_to)


def levels(found: Mapping[str, Observation]) -> list[float]:
    """The means of every replica or engine, lowest first; empty when there is only one."""
    return sorted(statistic(one.value, "mean") or 0.0 for one in found.values()) if len(found) >= 2 else []


def extremes(found: Mapping[str, Observation]) -> list[Fact]:
    """The calmest and the busiest of them."""
    if len(found) < 2:
        return []
    ranked = sorted(found.items(), key=lambda item: statistic(item[1].value, "mean") or 0.0)
    facts = []
    for instance, one in (ranked[0], ranked[-1]):
        fact = shown(one, "mean")
        facts.append(replace(fact, name=f"{fact.name} [{instance}]"))
    return facts
