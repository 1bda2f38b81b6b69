"""The snapshot: gather, redact, write. Diagnosing the file gives the verdict that the live system would have."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from llmedic.app import evidence, gather
from llmedic.app.diagnose import SOURCES_HINT
from llmedic.app.request import Progress, Snapshot, SnapshotRequest
from llmedic.collect import bundle, files
from llmedic.errors import CallerError, InputError, UsageError
from llmedic.model.evidence import Gap
from llmedic.model.raw import Raw


def snapshot(request: SnapshotRequest, *, progress: Progress = lambda _: None) -> Snapshot:
    """Write a bundle of everything that was asked for.

    Raises:
        CallerError: something that was named is not usable, or the file exists already: said before the window.
            When writing fails after it, the hint names the spare file that holds the evidence.
    """
    if not request.sources:
        raise UsageError("nothing to save", hint=SOURCES_HINT)
    files.check_free(request.output, hint=bundle.TAKEN)
    raws = gather.gather(
        request.sources,
        request.access,
        window_s=request.window_s,
        compare_to_s=request.compare_to_s,
        probe=request.probe,
        progress=progress,
    )
    gaps = evidence.of(raws).gaps
    path = _kept(request, raws, gaps)
    missing = tuple(f"{gap.what}: {gap.why}" for gap in gaps)
    usable = sum(not raw.error for raw in raws)
    return Snapshot(path=path, inputs=len(raws), usable=usable, missing=missing)


def _kept(request: SnapshotRequest, raws: Sequence[Raw], gaps: Sequence[Gap]) -> Path:
    """Where the bundle was written: a disk that is full by now must not cost the evidence of an incident."""
    now = time.time()
    try:
        bundle.write(request.output, raws, now=now, window_s=request.window_s, gaps=gaps)
    except CallerError as refused:
        spare = Path(tempfile.gettempdir()) / f"{int(now)}-{request.output.name}"
        try:
            bundle.write(spare, raws, now=now, window_s=request.window_s, gaps=gaps)
        except CallerError:
            raise refused from None
        raise InputError(refused.message, hint=f"the evidence is in {spare} instead; {refused.hint}") from refused
    return request.output
