"""Which cause, and how sure: Bayes' rule in odds form over the closed list.

Every cause starts with its prior. A rule's confidence is what it would say if nothing else were known, so its
likelihood ratio is odds(confidence) / odds(prior). Witnesses (metrics, log, settings, symptoms, ledger) multiply;
within one witness only the strongest rule counts, and further witnesses count for less, because they look at the same
incident. The posterior is taken over all causes and over "something that is not in the list".

A cause that brings another one about (`explains`) takes it out of the competition: it is shown beneath.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, log

from llmedic.analysis import profiles
from llmedic.knowledge.profiles import Profile
from llmedic.model.evidence import Symptoms
from llmedic.model.finding import Finding, Witness
from llmedic.model.verdict import SURE

SOMETHING_ELSE = 0.15
"""Prior of an incident whose cause is not in the list."""
FURTHER_WITNESS = 0.5
"""Exponent of the second and later witnesses: they are not independent of the first."""
SYMPTOM_RANGE = (-4.0, 6.0)
"""Ticks are a person's impression: alone they cannot outweigh hard evidence."""
CORROBORATION = 2.0
"""Symptoms add at most this much to a cause that a rule already speaks for: the rule's evidence and the symptoms are
two views of one thing, and causes that look alike share the symptoms. What speaks against it counts in full."""
CEILING = 0.97
"""Nothing is said with more than this: evidence can be about another system than the one that hurts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A cause's place: its posterior, the findings that speak for it, and the causes shown beneath it."""

    cause: str
    confidence: float
    findings: tuple[Finding, ...] = ()
    beneath: tuple[str, ...] = ()


@dataclass(slots=True)
class _Weights:
    log_odds: dict[str, float] = field(default_factory=dict)
    fired: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))


def rank(
    findings: Iterable[Finding],
    symptoms: Symptoms,
    known: Mapping[str, Profile],
    downstream: Callable[[str], frozenset[str]],
) -> list[Standing]:
    """Causes by falling confidence. `downstream` gives all causes that one brings about."""
    weights = _weigh(findings, symptoms, known)
    beneath = _suppress(weights, downstream)
    hidden = {below for belows in beneath.values() for below in belows}
    total = SOMETHING_ELSE + sum(exp(weight) for cause, weight in weights.log_odds.items() if cause not in hidden)
    standings = [
        Standing(
            cause=cause,
            confidence=min(CEILING, exp(weight) / total),
            findings=tuple(weights.fired.get(cause, ())),
            beneath=tuple(sorted(beneath.get(cause, ()))),
        )
        for cause, weight in weights.log_odds.items()
        if cause not in hidden
    ]
    return sorted(standings, key=lambda standing: -standing.confidence)


def _weigh(findings: Iterable[Finding], symptoms: Symptoms, known: Mapping[str, Profile]) -> _Weights:
    """The logarithm of each cause's unnormalised posterior."""
    weights = _Weights()
    scale = (1 - SOMETHING_ELSE) / sum(profiles.prior(profile) for profile in known.values())
    strongest: dict[str, dict[Witness, float]] = defaultdict(dict)
    for finding in findings:
        if finding.outcome not in ("cause", "against"):
            continue
        if finding.outcome == "cause":
            weights.fired[finding.cause].append(finding)
        profile = known.get(finding.cause)
        ratio = _log_ratio(finding, profiles.prior(profile) * scale) if profile else 0.0
        if abs(ratio) > abs(strongest[finding.cause].get(finding.witness, 0.0)):
            strongest[finding.cause][finding.witness] = ratio
    for cause, profile in known.items():
        low, high = SYMPTOM_RANGE
        ticked = min(high, max(low, profiles.log_likelihood_ratio(profile, symptoms)))
        evidence = _combined(strongest[cause].values())
        if cause in weights.fired:  # evidence for a cause never leaves it worse off than its symptoms alone
            evidence = max(evidence + min(ticked, CORROBORATION), ticked + min(evidence, 0.0))
        else:
            evidence += ticked
        weights.log_odds[cause] = log(profiles.prior(profile) * scale) + evidence
    return weights


def _log_ratio(finding: Finding, prior: float) -> float:
    """The logarithm of the finding's likelihood ratio. One that speaks for its cause is worth what lifts the prior to
    its confidence, however low that is; one that speaks against it, its odds."""
    logit = log(finding.confidence / (1 - finding.confidence))
    return logit - log(prior / (1 - prior)) if finding.outcome == "cause" else logit


def _combined(ratios: Iterable[float]) -> float:
    """The sum of the witnesses' log-likelihood ratios, the strongest in full."""
    ranked = sorted(ratios, key=abs, reverse=True)
    return sum(ratio * (1.0 if i == 0 else FURTHER_WITNESS) for i, ratio in enumerate(ranked))


def _suppress(weights: _Weights, downstream: Callable[[str], frozenset[str]]) -> dict[str, set[str]]:
    """For each cause that stands by its own evidence, the causes with evidence that it explains."""
    beneath: dict[str, set[str]] = {}
    for cause in weights.fired:
        explained = set(downstream(cause)) & set(weights.fired)
        if not explained:
            continue
        rivals = sum(exp(weight) for other, weight in weights.log_odds.items() if other not in explained)
        if exp(weights.log_odds[cause]) >= SURE * (rivals + SOMETHING_ELSE):
            beneath[cause] = explained
    tops = {cause for cause in beneath if not any(cause in beneath[other] for other in beneath)}
    return {cause: below for cause, below in beneath.items() if cause in tops}
