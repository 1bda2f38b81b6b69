"""Saved metrics pages (`--metrics FILE`, once or twice) as the raw answers that a live server would have given."""

from __future__ import annotations

from collections.abc import Sequence

from llmedic.collect.engine import raws
from llmedic.errors import AnswerError, InputError
from llmedic.knowledge import metrics
from llmedic.model.raw import Raw
from llmedic.wire import exposition


def read_saved(files: Sequence[tuple[str, bytes]], window_s: float | None = None) -> tuple[Raw, ...]:
    """One page, or an earlier and a later page of one server; (name, content) each.

    window_s is the time between the two; None: not known, and no rate is computed.
    Raises InputError when there are more than two, one is not a metrics page, or the later one was given first.
    """
    if not 1 <= len(files) <= 2:
        raise InputError(f"{len(files)} metrics pages were given", hint="give --metrics once, or twice: earlier, later")
    for name, body in files:
        try:
            exposition.read(body)
        except AnswerError as error:
            hint = error.hint or "save it with: curl http://HOST:PORT/metrics > FILE"
            raise InputError(f"{name}: {error.message}", hint=hint) from error
    if len(files) == 2:
        _check_engines(*files)
    if len(files) == 2 and _is_swapped(files[0][1], files[1][1]):
        raise InputError(
            f"{files[0][0]}: is the later of the two pages", hint="give the earlier page first: --metrics EARLIER"
        )
    ends = ("last",) if len(files) == 1 else ("first", "last")
    return tuple(
        Raw(
            source=raws.SOURCE,
            kind=raws.METRICS,
            status=200,
            body=body,
            meta={"end": end, "begun": "", "window_s": "" if window_s is None else repr(window_s), "file": name},
        )
        for end, (name, body) in zip(ends, files, strict=True)
    )


def _check_engines(earlier: tuple[str, bytes], later: tuple[str, bytes]) -> None:
    before, after = metrics.engine_of(earlier[1]), metrics.engine_of(later[1])
    if before and after and before != after:
        raise InputError(
            f"{earlier[0]} is a page of {before} and {later[0]} one of {after}: no window lies between them",
            hint="give two pages of one server",
        )


def _is_swapped(earlier: bytes, later: bytes) -> bool:
    """Whether counters of one and the same process went down: only the order of the files explains that."""
    engine = metrics.names(metrics.engine_of(earlier))
    counters = {name for metric in engine.metrics if metric.kind == "counter" for name in metric.names}
    reader = exposition.Reader(exposition.sample_names(counters) | {"process_start_time_seconds"})
    before, after = (
        {id(series): (series.name, value) for series, value in reader.read(page).samples} for page in (earlier, later)
    )
    starts = [
        {value for name, value in page.values() if name == "process_start_time_seconds"} for page in (before, after)
    ]
    if not starts[0] or starts[0] != starts[1]:
        return False
    falls = [after[key][1] - before[key][1] for key in before.keys() & after.keys()]
    return min(falls, default=0.0) < 0 and max(falls, default=0.0) <= 0
