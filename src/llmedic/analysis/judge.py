"""Evidence in, verdict out: findings, ranking, layers, cross-checks, one change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmedic.analysis import change, crosscheck, findings, layers, limits, ranking, unseen
from llmedic.analysis.predicates import comparison
from llmedic.analysis.ranking import Standing
from llmedic.analysis.view import View
from llmedic.knowledge import texts
from llmedic.knowledge.profiles import Profile
from llmedic.knowledge.rules import Compiled
from llmedic.knowledge.schema import CauseText, LogPattern
from llmedic.knowledge.texts import Lang
from llmedic.model.finding import Fact, Finding
from llmedic.model.verdict import SURE, Cause, Health, Verdict

if TYPE_CHECKING:
    from llmedic.model.ledger import Problem

HEALTHY = "healthy"
CANNOT_TELL = "cannot-tell"
SHOWN = 0.15
"""Causes below this are not worth a reader's time."""
MOST_SHOWN = 4
DOWN_SYMPTOMS = frozenset({"start-fails", "crashes-at-runtime", "hangs", "not-ready", "restarts-repeatedly"})
DOWN_CAUSES = frozenset({"engine-core-stalled"})
SPECIAL_TEXT = {
    (HEALTHY, "en"): ("Nothing is wrong", "The indicators that would show trouble were seen and are calm."),
    (HEALTHY, "zh"): ("运行正常", "能反映故障的指标都已看到，且平稳。"),
    (CANNOT_TELL, "en"): (
        "The evidence does not decide",
        "These are the likeliest causes, none of them likely enough to act on. What was not seen, below, would decide.",
    ),
    (CANNOT_TELL, "zh"): (
        "证据不足，无法判断",
        "下面是可能性较大的几个原因，但都不足以据此动手。下面未能看到的部分说明还需要看什么。",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What the judge knows. `cause` and `downstream` look single causes up, so that a few are read, not all."""

    rules: Mapping[str, Compiled]
    pattern: Callable[[str], LogPattern | None]
    profiles: Mapping[str, Profile]
    cause: Callable[[str], CauseText]
    downstream: Callable[[str], frozenset[str]]


def judge(view: View, knowledge: Knowledge, lang: Lang = "en") -> Verdict:
    """The verdict on the evidence in `view`, with its texts in `lang` ("en" or "zh")."""
    found = findings.of(view, knowledge.rules, knowledge.pattern)
    shown = _worth_showing(_ranked(found, view, knowledge))
    sure = [
        standing for standing in shown if standing.confidence >= SURE and standing.cause not in (HEALTHY, CANNOT_TELL)
    ]
    named = [knowledge.cause(standing.cause) for standing in sure]
    beneath = [knowledge.cause(cause) for standing in sure for cause in standing.beneath]
    return Verdict(
        health=_health(view, shown),
        layers=layers.of(view, named, beneath, lang),
        causes=tuple(_cause(standing, view, knowledge, lang) for standing in shown),
        cannot_tell=_cannot_tell(found, {standing.cause for standing in shown}),
        gaps=tuple(dict.fromkeys((*view.evidence.gaps, *unseen.of(view)))),
        disagreements=crosscheck.of(view, lang),
        binding=limits.of(view, lang),
        engine=_engine_line(view, lang),
        restart_warning=any(cause.destroys_evidence for cause in named),
    )


def standings(view: View, knowledge: Knowledge) -> list[Standing]:
    """Every cause by falling confidence: what the next question is chosen from."""
    return _ranked(findings.of(view, knowledge.rules, knowledge.pattern), view, knowledge)


def _ranked(found: Iterable[Finding], view: View, knowledge: Knowledge) -> list[Standing]:
    return ranking.rank(found, view.evidence.symptoms, knowledge.profiles, knowledge.downstream)


def _worth_showing(standings: Sequence[Standing]) -> list[Standing]:
    """The causes to show, the best first. Health stands alone; where nothing is sure, that is said first."""
    if standings and standings[0].confidence >= SURE and standings[0].cause == HEALTHY:
        return [standings[0]]
    likely = [one for one in standings if one.confidence >= SHOWN and one.cause != HEALTHY][:MOST_SHOWN]
    if not likely or likely[0].confidence >= SURE:
        return likely
    return [Standing(cause=CANNOT_TELL, confidence=1 - likely[0].confidence), *likely]


def _cause(standing: Standing, view: View, knowledge: Knowledge, lang: Lang) -> Cause:
    problem = _ended_by(view, standing.cause)
    evidence = (*_of_ledger(problem), *_facts(standing.findings))
    confidence = round(standing.confidence, 2)
    if standing.cause in (HEALTHY, CANNOT_TELL):
        title, summary = SPECIAL_TEXT[standing.cause, lang]
        return Cause(id=standing.cause, layer="none", severity="info", confidence=confidence, title=title,
                     summary=summary, evidence=evidence)  # fmt: skip
    text = knowledge.cause(standing.cause)
    return Cause(
        id=text.id,
        layer=text.layer,
        severity=text.severity,
        confidence=confidence,
        title=text.title.say(lang),
        summary=text.what.say(lang),
        evidence=evidence,
        symptoms=standing.beneath,
        change=change.of(text.change, view, lang, problem),
    )


def _ended_by(view: View, cause: str) -> Problem | None:
    """The ledger's word on the start that failed, where it is about this cause."""
    if view.startup is None:
        return None
    from llmedic.analysis.ledger import witness

    return witness.about(view.startup, cause)


def _of_ledger(problem: Problem | None) -> tuple[Fact, ...]:
    """The arithmetic as a fact; a sentence without a number only repeats the log."""
    if problem is None or not any(letter.isdigit() for letter in problem.text):
        return ()
    return (Fact(name="memory at start", value=problem.text, source="ledger"),)


def _facts(fired: Iterable[Finding]) -> tuple[Fact, ...]:
    """The facts of all findings, the most confident finding first, each fact once."""
    ranked = sorted(fired, key=lambda finding: -finding.confidence)
    seen: dict[tuple[str, str], Fact] = {}
    for finding in ranked:
        for fact in finding.facts:
            seen.setdefault((fact.name, fact.value), fact)
    return tuple(seen.values())


def _health(view: View, shown: Sequence[Standing]) -> Health:
    best = shown[0] if shown and shown[0].confidence >= SURE and shown[0].cause != CANNOT_TELL else None
    fatal = any(event.level == "fatal" and not event.is_echo for event in view.evidence.events)
    alive = (view.number("output_tokens_count") or 0.0) > 0
    if best and best.cause == HEALTHY:
        return "healthy"
    if best and (best.cause in DOWN_CAUSES or view.evidence.symptoms.seen & DOWN_SYMPTOMS or (fatal and not alive)):
        return "down"
    silent = (view.number("silent_replicas_count") or 0.0) >= 1
    if best or silent or comparison.slower_than_before(view).holds:
        return "degraded"
    return "down" if fatal and not alive else "unknown"


def _cannot_tell(found: Iterable[Finding], shown: set[str]) -> tuple[str, ...]:
    """Causes that no rule could decide: all of their rules miss something."""
    outcomes: dict[str, set[str]] = {}
    for finding in found:
        outcomes.setdefault(finding.cause, set()).add(finding.outcome)
    undecided = (cause for cause, said in outcomes.items() if said == {"cannot_tell"})
    return tuple(cause for cause in undecided if cause not in shown and cause != HEALTHY)


def _engine_line(view: View, lang: Lang) -> str:
    deployment = view.evidence.deployment
    name = f"{deployment.engine or texts.label('engine-unknown', lang)} {deployment.version}".strip()
    replicas = {instance.partition("#")[0] for instance in view.instances("requests_running")}
    return name + texts.label("replicas", lang).format(count=len(replicas)) if len(replicas) > 1 else name
