"""The snapshot: gather, redact, write. Diagnosing the file gives the verdict that the live system would have."""

from __future__ import annotations

import time

from llmedic.app import evidence, gather
from llmedic.app.diagnose import SOURCES_HINT
from llmedic.app.request import Progress, Snapshot, SnapshotRequest
from llmedic.collect import bundle
from llmedic.errors import UsageError


def snapshot(request: SnapshotRequest, *, progress: Progress = lambda _: None) -> Snapshot:
    """Write a bundle of everything that was asked for.

    Raises:
        CallerError: something that was named is not usable, or the file exists already.
    """
    if not request.sources:
        raise UsageError("nothing to save", hint=SOURCES_HINT)
    raws = gather.gather(
        request.sources,
        request.access,
        window_s=request.window_s,
        compare_to_s=request.compare_to_s,
        probe=request.probe,
        progress=progress,
    )
    gaps = evidence.of(raws).gaps
    bundle.write(request.output, raws, now=time.time(), window_s=request.window_s, gaps=gaps)
    missing = tuple(f"{gap.what}: {gap.why}" for gap in gaps)
    return Snapshot(path=request.output, inputs=len(raws), missing=missing)
