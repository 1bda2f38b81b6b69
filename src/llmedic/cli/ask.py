"""`--ask`: a few questions at the terminal, each the one that would tell the most about the cause.

The next question is the one whose answer splits the likely causes best (mutual information under the symptom
profiles). It ends when no question would tell much, or after `MOST`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import exp, log2
from typing import Literal

import click

from llmedic.analysis import profiles as likelihoods
from llmedic.app.request import Lang
from llmedic.knowledge import profiles, symptoms
from llmedic.model.evidence import Symptoms

MOST = 12
"""Nobody answers more at three in the morning."""
WORTH_ASKING = 0.02
"""Bits. Below this the answer would hardly move the ranking."""

Kind = Literal["seen", "when"]
Answer = Callable[[str], bool | None]
"""Puts a question; True yes, False no, None not known."""


@dataclass(frozen=True, slots=True)
class Question:
    """A symptom or a condition to ask for."""

    kind: Kind
    id: str


def ask(known: Symptoms, lang: Lang, answer: Answer | None = None) -> Symptoms:
    """What was already known, and what the person says to the questions."""
    put = answer or (_at_terminal_zh if lang == "zh" else _at_terminal_en)
    asked: set[Question] = set()
    ticked = known
    for _ in range(MOST):
        question = next_question(ticked, asked)
        if question is None:
            break
        asked.add(question)
        entry = symptoms.entries()[question.id]
        if put(getattr(entry.question, lang)):
            ticked = _tick(ticked, question)
    return ticked


def next_question(ticked: Symptoms, asked: set[Question]) -> Question | None:
    """The question that tells the most, symptoms before conditions; None when none tells enough."""
    known = profiles.profiles()
    weights = _weights(known, ticked)
    candidates = [Question("seen", name) for name in symptoms.ids("symptom") if name != "none"]
    if ticked.seen:
        candidates += [Question("when", name) for name in symptoms.ids("condition")]
    gains = {
        question: _gain(question, known, weights)
        for question in candidates
        if question not in asked and question.id not in (ticked.seen if question.kind == "seen" else ticked.when)
    }
    best = max(gains, key=lambda question: gains[question], default=None)
    return best if best is not None and gains[best] >= WORTH_ASKING else None


def _weights(known: Mapping[str, profiles.Profile], ticked: Symptoms) -> dict[str, float]:
    raw = {
        cause: likelihoods.prior(profile) * exp(likelihoods.likelihood_ratio(profile, ticked))
        for cause, profile in known.items()
    }
    total = sum(raw.values())
    return {cause: weight / total for cause, weight in raw.items()}


def _gain(question: Question, known: Mapping[str, profiles.Profile], weights: Mapping[str, float]) -> float:
    """Mutual information, in bits, between the answer and the cause."""
    chances = {cause: likelihoods.chance(profile, question.kind, question.id) for cause, profile in known.items()}
    overall = sum(weights[cause] * chance for cause, chance in chances.items())
    return _entropy(overall) - sum(weights[cause] * _entropy(chance) for cause, chance in chances.items())


def _entropy(chance: float) -> float:
    if chance <= 0.0 or chance >= 1.0:
        return 0.0
    return -chance * log2(chance) - (1 - chance) * log2(1 - chance)


def _tick(ticked: Symptoms, question: Question) -> Symptoms:
    if question.kind == "seen":
        return replace(ticked, seen=ticked.seen | {question.id})
    return replace(ticked, when=ticked.when | {question.id})


def _at_terminal_en(question: str) -> bool | None:
    return _prompt(question, "[y]es, [n]o, [?] don't know")


def _at_terminal_zh(question: str) -> bool | None:
    return _prompt(question, "y 是，n 否，? 不知道")


def _prompt(question: str, choices: str) -> bool | None:
    """Asks on standard error, so that the report alone goes to standard output."""
    reply = click.prompt(f"{question} ({choices})", default="?", show_default=False, err=True)
    first = str(reply).strip().lower()[:1]
    return True if first in ("y", "是") else False if first in ("n", "否") else None
