"""What a diagnosis does with the evidence once it is there: knowledge, questions, verdict.

A module of its own because it brings in all rules and their machinery: a live diagnosis imports it while it waits for
its window to pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from llmedic.analysis import interview, replicas
from llmedic.analysis import judge as judges
from llmedic.analysis.view import View
from llmedic.app.request import Lang
from llmedic.knowledge import causes, flags, logs, profiles, rules, symptoms
from llmedic.model.evidence import Evidence
from llmedic.model.verdict import Verdict

Answer = Callable[[str], bool | None]
"""Puts a question to the person: True yes, False no, None not known."""


@cache
def knowledge() -> judges.Knowledge:
    """All that the judge needs to know, read from the package's data."""
    return judges.Knowledge(
        rules=rules.rules(),
        pattern=logs.pattern,
        profiles=profiles.profiles(),
        cause=causes.cause,
        downstream=causes.downstream,
    )


def judge(evidence: Evidence, lang: Lang) -> Verdict:
    """The verdict on the evidence, and on each replica where the service as a whole decides nothing."""
    verdict = judges.judge(view(evidence), knowledge(), lang)
    if replicas.is_decided(verdict):
        return verdict
    for replica in replicas.names(evidence):
        one = judges.judge(view(replicas.alone(evidence, replica)), knowledge(), lang)
        if replicas.is_decided(one):
            return replicas.told(verdict, one, replica)
    return verdict


def view(evidence: Evidence) -> View:
    """The evidence with the default flags of its engine and version."""
    deployment = evidence.deployment
    return View(evidence, lambda name: flags.default(name, deployment.engine, deployment.version))


def asked(evidence: Evidence, lang: Lang, answer: Answer) -> Evidence:
    """The evidence with the symptoms that the person confirmed, asked for one at a time."""
    ids: Mapping[interview.Kind, tuple[str, ...]] = {
        "seen": tuple(name for name in symptoms.ids("symptom") if name != "none"),
        "when": symptoms.ids("condition"),
    }
    done: set[interview.Question] = set()
    while len(done) < interview.MOST:
        left = judges.standings(view(evidence), knowledge())
        question = interview.next_question(left, profiles.profiles(), evidence.symptoms, done, ids)
        if question is None:
            break
        done.add(question)
        if answer(symptoms.entries()[question.id].question.say(lang)):
            evidence = replace(evidence, symptoms=interview.tick(evidence.symptoms, question))
    return evidence
