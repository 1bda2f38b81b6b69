"""Asks a Prometheus server, or anything that speaks its HTTP API (Thanos, Mimir, VictoriaMetrics), for series.

Only what a diagnosis needs: series with their samples over a stretch of time. Expressions go as a POST form, since
a list of metric names is longer than a URL may be.
"""

from __future__ import annotations

import math
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from llmedic.errors import AnswerError, UsageError
from llmedic.wire import http, jsontext

MAX_POINTS = 11_000
"""Points per series that Prometheus returns for one range query."""

_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series: its labels, the name among them as __name__, and (Unix seconds, value) in order of time."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def name(self) -> str:
        """The metric's name; "" when an expression took it away."""
        return self.labels.get("__name__", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came back. native_histograms: series that hold no plain numbers, left out of `series`."""

    series: tuple[Series, ...]
    warnings: tuple[str, ...] = ()
    native_histograms: int = 0


def samples(base: str, access: http.Access, selector: str, *, start: float, end: float, deadline_s: float) -> Result:
    """Every stored sample after `start` (to the second) until `end`, each at the very time of its scrape.

    Raises UsageError when Prometheus does not understand the selector, and what `http.post` raises.
    """
    length_s = max(1, math.ceil(end - start))
    form = {"query": f"{selector}[{length_s}s]", "time": f"{end:.3f}", "timeout": f"{deadline_s:.0f}s"}
    return _ask(base, access, "query", form, deadline_s)


def at_steps(
    base: str, access: http.Access, selector: str, *, start: float, end: float, step_s: float, deadline_s: float
) -> Result:
    """The series from start to end at every step: their newest sample at that time. For long stretches.

    step_s is enlarged where it would give more than MAX_POINTS points. Raises as `samples` does.
    """
    step_s = max(step_s, (end - start) / (MAX_POINTS - 1))
    form = {"query": selector, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_s:.3f}"}
    return _ask(base, access, "query_range", {**form, "timeout": f"{deadline_s:.0f}s"}, deadline_s)


def decode(answer: http.Answer, url: str) -> Result:
    """Read an answer. Raises UsageError for an expression that was refused, AnswerError for everything else."""
    try:
        envelope = msgspec.json.decode(answer.body, type=_Envelope)
    except jsontext.NOT_READABLE as error:
        raise _not_prometheus(answer, url) from error
    if envelope.status != "success":
        raise _refused(envelope, answer.status, url)
    try:
        data = msgspec.json.decode(envelope.data, type=_Data)
    except jsontext.NOT_READABLE as error:
        raise AnswerError(f"{url}: not the answer of a query: {error}", status=answer.status) from error
    found = tuple(_series(one) for one in data.result if one.values or one.value)
    native = sum(bool(one.histogram or one.histograms) for one in data.result)
    return Result(series=found, warnings=(*envelope.warnings, *envelope.infos), native_histograms=native)


class _Envelope(msgspec.Struct):
    status: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    errorType: str = ""  # noqa: N815 - the API's spelling
    error: str = ""
    warnings: list[str] = []
    infos: list[str] = []


class _OneSeries(msgspec.Struct):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []
    value: tuple[float, str] | None = None
    histograms: list[object] = []
    histogram: object = None


class _Data(msgspec.Struct):
    resultType: str  # noqa: N815 - the API's spelling
    result: list[_OneSeries]


def _ask(base: str, access: http.Access, path: str, form: Mapping[str, str], deadline_s: float) -> Result:
    url = f"{base}/api/v1/{path}"
    content = urllib.parse.urlencode(form)
    with_form = replace(access, headers={**access.headers, "content-type": _FORM})
    answer = http.post(url, with_form, content=content.encode("ascii"), deadline_s=deadline_s)
    if answer.status == 405:
        # Some proxies in front of Prometheus let only GET through.
        answer = http.get(f"{url}?{content}", access, deadline_s=deadline_s)
    return decode(answer, http.shown(url))


def _series(one: _OneSeries) -> Series:
    values = one.values or ([one.value] if one.value else [])
    points = tuple((at, number) for at, text in values if (number := _number(text)) is not None)
    return Series(labels=one.metric, points=points)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _refused(envelope: _Envelope, status: int, url: str) -> UsageError | AnswerError:
    said = " ".join(envelope.error.split()) or envelope.errorType or "no reason given"
    if envelope.errorType == "bad_data":
        return UsageError(
            f"Prometheus does not understand the selector: {said}", hint='write it as ?job="vllm",namespace="prod"'
        )
    hint = {
        "timeout": "ask for a shorter window with --window",
        "execution": "ask for fewer series with a narrower selector, or a shorter window",
        "unavailable": "Prometheus is starting or overloaded: try again",
    }.get(envelope.errorType, "")
    return AnswerError(f"{url}: {envelope.errorType or 'error'}: {said}", hint=hint, status=status)


def _not_prometheus(answer: http.Answer, url: str) -> AnswerError:
    is_page = answer.body[:256].lstrip().startswith(b"<") or answer.content_type == "text/html"
    what = "a web page" if is_page else "something else"
    match answer.status:
        case 401 | 403:
            message, hint = "not allowed", "give the token with --bearer-env VAR, or a header with --header"
        case 404:
            message, hint = "there is no Prometheus API here", "give the address up to, not including, /api/v1"
        case status if status >= 400:
            message, hint = f"{what} with HTTP {status}", "is Prometheus up behind its proxy?"
        case _:
            message, hint = f"{what}, not the answer of a query", "is it Prometheus, not Grafana or a login page?"
    return AnswerError(f"{url}: {message}", hint=hint, status=answer.status)
