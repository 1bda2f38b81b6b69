"""The diagnosis: gather, read, judge."""

from __future__ import annotations

import time
from collections.abc import Callable

from llmedic.app import evidence as joined
from llmedic.app import gather
from llmedic.app.request import DiagnoseRequest, Diagnosis, Progress
from llmedic.errors import UsageError

SOURCES_HINT = "give a TARGET, --metrics, --log, --args, --pid, --model, --case or --symptom"


def diagnose(
    request: DiagnoseRequest,
    *,
    progress: Progress = lambda _: None,
    answer: Callable[[str], bool | None] | None = None,
) -> Diagnosis:
    """Gather the evidence that was asked for and judge it.

    With `answer`, the few questions are put that would decide between the causes left.

    Raises:
        CallerError: something that was named is not usable; nothing was judged.
    """
    if not request.sources and answer is None:
        raise UsageError("nothing to look at", hint=SOURCES_HINT)
    if request.compare_to_s is not None and not any(one.startswith("prom+") for one in request.sources.targets):
        hint = "an engine keeps no history: give --baseline NAME, or a prom+http:// target"
        raise UsageError("--compare-to needs a Prometheus target", hint=hint)
    _check(request)
    raws = gather.gather(
        request.sources,
        request.access,
        window_s=request.window_s,
        compare_to_s=request.compare_to_s,
        probe=request.probe,
        progress=progress,
        meanwhile=_prepare,
    )
    from llmedic.app import judging

    evidence = joined.of(raws)
    if request.baseline:
        from llmedic.collect import baseline

        evidence = joined.merge([evidence, baseline.read(request.baseline, evidence.deployment)])
    if answer is not None:
        evidence = judging.asked(evidence, request.lang, answer)
    return Diagnosis(verdict=judging.judge(evidence, request.lang), evidence=evidence)


def remember(request: DiagnoseRequest, diagnosis: Diagnosis) -> None:
    """Store the window as a baseline where that was asked for: a step of its own, so that it cannot cost the verdict.

    Raises UsageError for a window in which something is wrong, and what `baseline.save` raises.
    """
    if request.save_baseline:
        from llmedic.collect import baseline

        if diagnosis.verdict.health in ("degraded", "down"):
            hint = "a baseline is how the deployment is when it is well: store one from a healthy window"
            raise UsageError(f"not stored as {request.save_baseline}: the window is not healthy", hint=hint)

        baseline.save(diagnosis.evidence, request.save_baseline, now=time.time())


def _check(request: DiagnoseRequest) -> None:
    """Says now, and not after the window, that a baseline is not there or has no place."""
    if request.baseline or request.save_baseline:
        from llmedic.collect import baseline

        if request.baseline:
            baseline.read(request.baseline)
        if request.save_baseline:
            baseline.check_free(request.save_baseline)


def _prepare() -> None:
    """Brings the judge into memory while a live window passes."""
    from llmedic.app import judging

    judging.knowledge()
