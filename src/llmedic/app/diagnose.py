"""The diagnosis: gather, read, judge."""

from __future__ import annotations

import time

from llmedic.analysis.judge import Knowledge, judge
from llmedic.analysis.view import View
from llmedic.app import evidence as joined
from llmedic.app import gather
from llmedic.app.request import DiagnoseRequest, Diagnosis, Progress
from llmedic.collect import baseline
from llmedic.errors import UsageError
from llmedic.knowledge import causes, flags, logs, profiles, rules
from llmedic.model.evidence import Evidence

SOURCES_HINT = "give a TARGET, --metrics, --log, --args, --pid, --case or --symptom"


def diagnose(request: DiagnoseRequest, *, progress: Progress = lambda _: None) -> Diagnosis:
    """Gather the evidence that was asked for and judge it.

    Raises:
        CallerError: something that was named is not usable; nothing was judged.
    """
    if not request.sources:
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
        evidence = joined.merge([evidence, baseline.read(request.baseline, evidence.deployment)])
    verdict = judge(view(evidence), knowledge(), request.lang)
    if request.save_baseline:
        baseline.save(evidence, request.save_baseline, now=time.time())
    return Diagnosis(verdict=verdict, evidence=evidence)


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
