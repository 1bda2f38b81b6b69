"""The diagnosis: gather, read, judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from llmedic.analysis import interview
from llmedic.analysis.judge import Knowledge, judge, standings
from llmedic.analysis.view import View
from llmedic.app import evidence as joined
from llmedic.app import gather
from llmedic.app.request import DiagnoseRequest, Diagnosis, Lang, Progress
from llmedic.errors import UsageError
from llmedic.knowledge import causes, flags, logs, profiles, rules, symptoms
from llmedic.model.evidence import Evidence

SOURCES_HINT = "give a TARGET, --metrics, --log, --args, --pid, --case or --symptom"


Answer = Callable[[str], bool | None]
"""Puts a question to the person: True yes, False no, None not known."""


def diagnose(
    request: DiagnoseRequest, *, progress: Progress = lambda _: None, answer: Answer | None = None
) -> Diagnosis:
    """Gather the evidence that was asked for and judge it.

    With `answer`, the few questions are put that would decide between the causes left.

    Raises:
        CallerError: something that was named is not usable; nothing was judged.
    """
    if not request.sources and answer is None:
        raise UsageError("nothing to look at", hint=SOURCES_HINT)
    raws = gather.gather(
        request.sources,
        request.access,
        window_s=request.window_s,
        compare_to_s=request.compare_to_s,
        probe=request.probe,
        progress=progress,
    )
    evidence = joined.of(raws)
    if request.baseline:
        from llmedic.collect import baseline

        evidence = joined.merge([evidence, baseline.read(request.baseline, evidence.deployment)])
    if answer is not None:
        evidence = _asked(evidence, request.lang, answer)
    verdict = judge(view(evidence), knowledge(), request.lang)
    if request.save_baseline:
        from llmedic.collect import baseline

        baseline.save(evidence, request.save_baseline, now=time.time())
    return Diagnosis(verdict=verdict, evidence=evidence)


def _asked(evidence: Evidence, lang: Lang, answer: Answer) -> Evidence:
    """The evidence with the symptoms that the person confirmed."""
    ids: Mapping[interview.Kind, tuple[str, ...]] = {
        "seen": tuple(name for name in symptoms.ids("symptom") if name != "none"),
        "when": symptoms.ids("condition"),
    }
    asked: set[interview.Question] = set()
    while len(asked) < interview.MOST:
        left = standings(view(evidence), knowledge())
        question = interview.next_question(left, profiles.profiles(), evidence.symptoms, asked, ids)
        if question is None:
            break
        asked.add(question)
        if answer(getattr(symptoms.entries()[question.id].question, lang)):
            evidence = replace(evidence, symptoms=interview.tick(evidence.symptoms, question))
    return evidence


def view(evidence: Evidence) -> View:
    """The evidence with the default flags of its engine and version."""
    deployment = evidence.deployment
    return View(evidence, lambda name: flags.default(name, deployment.engine, deployment.version))


def knowledge() -> Knowledge:
    """All that the judge needs to know, read from the package's data."""
    return Knowledge(
        rules=rules.rules(),
        pattern=logs.pattern,
        profiles=profiles.profiles(),
        cause=causes.cause,
        downstream=causes.downstream,
    )
