"""Which question would tell the most about the causes that are left: mutual information under the symptom profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Literal

from llmedic.analysis import profiles as likelihoods
from llmedic.analysis.ranking import Standing
from llmedic.knowledge.profiles import Profile
from llmedic.model.evidence import Symptoms

MOST = 12
"""Nobody answers more at three in the morning."""
WORTH_ASKING = 0.02
"""Bits. Below this the answer would hardly move the ranking."""
DECIDED = 0.9
"""A cause this sure needs no questions."""

Kind = Literal["seen", "when"]


@dataclass(frozen=True, slots=True)
class Question:
    """A symptom or a condition to ask for."""

    kind: Kind
    id: str


def next_question(
    standings: Sequence[Standing],
    known: Mapping[str, Profile],
    ticked: Symptoms,
    asked: Iterable[Question],
    ids: Mapping[Kind, Sequence[str]],
) -> Question | None:
    """The question that tells the most, symptoms before conditions; None when none tells enough.

    `ids` are the ids that may be asked for. Conditions are asked once a symptom is known: "when" has no meaning before.
    """
    if standings and standings[0].confidence >= DECIDED:
        return None
    total = sum(standing.confidence for standing in standings)
    weights = {standing.cause: standing.confidence / total for standing in standings} if total else {}
    candidates = [Question("seen", name) for name in ids["seen"]]
    if ticked.seen:
        candidates += [Question("when", name) for name in ids["when"]]
    done = {
        *asked,
        *(Question("seen", name) for name in ticked.seen),
        *(Question("when", name) for name in ticked.when),
    }
    gains = {question: _gain(question, known, weights) for question in candidates if question not in done}
    best = max(gains, key=lambda question: gains[question], default=None)
    return best if best is not None and gains[best] >= WORTH_ASKING else None


def tick(ticked: Symptoms, question: Question) -> Symptoms:
    """The symptoms with the answer yes."""
    if question.kind == "seen":
        return replace(ticked, seen=ticked.seen | {question.id})
    return replace(ticked, when=ticked.when | {question.id})


def _gain(question: Question, known: Mapping[str, Profile], weights: Mapping[str, float]) -> float:
    """Mutual information, in bits, between the answer and the cause."""
    chances = {cause: likelihoods.chance(known[cause], question.kind, question.id) for cause in weights}
    overall = sum(weights[cause] * chance for cause, chance in chances.items())
    return _entropy(overall) - sum(weights[cause] * _entropy(chance) for cause, chance in chances.items())


def _entropy(chance: float) -> float:
    if chance <= 0.0 or chance >= 1.0:
        return 0.0
    return -chance * log2(chance) - (1 - chance) * log2(1 - chance)
