"""What could not be seen of an engine, why, and the command or flag that would show it."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator, Mapping, Sequence

from llmedic.collect.engine import raws
from llmedic.collect.engine.look import Look
from llmedic.errors import AnswerError
from llmedic.model.evidence import Gap
from llmedic.model.raw import Raw

RATES = ("request_rate_per_s", "output_tokens_per_s", "ttft_s", "itl_s", "e2e_s", "queue_s", "preemptions_per_min")
"""What needs two pages."""

LEVELS = ("requests_running", "requests_waiting", "kv_cache_usage_ratio")
"""What any page shows."""

_METRICS_SWITCH = {
    "sglang": "start SGLang with --enable-metrics",
    "llama.cpp": "start llama-server with --metrics",
    "ollama": "Ollama has no metrics page: give its log (--log FILE) and use --probe",
}


def short(target: str) -> str:
    """The instance name of a target: "host:port", and the path where there is one."""
    try:
        parts = urllib.parse.urlsplit(target)
    except ValueError:  # a bundle from elsewhere can name anything
        return target
    return (parts.netloc + parts.path).rstrip("/") or target


def of_answers(target: str, found: Sequence[Raw], engine: str) -> Iterator[Gap]:
    """Gaps for failed answers: one for a dead server, else one per page that matters."""
    pages = [raw for raw in found if raw.kind == raws.METRICS]
    if found and not any(raw.status for raw in found) and all(raw.error for raw in found):
        worst = pages[-1] if pages else found[-1]
        yield Gap(what=target, why=worst.error, how=worst.hint or f"curl -v {target}/health", names=(*LEVELS, *RATES))
        return
    if pages and all(raw.error for raw in pages):
        last = pages[-1]
        how = _METRICS_SWITCH.get(engine, "") if last.status in (404, 501) else ""
        how = how or last.hint or f"curl -v {target}/metrics"
        yield Gap(what=f"{target}/metrics", why=last.error, how=how, names=(*LEVELS, *RATES))
    else:
        for raw in pages:
            if raw.error:
                which = "at the start" if raw.meta.get("end") == "first" else "at the end"
                yield Gap(what=f"{target}/metrics {which} of the window", why=raw.error, how=raw.hint or "run it again")
    for raw in found:
        if raw.kind == raws.PROBE and raw.error and not raw.status:
            how = "the API answers but no token comes: read the engine's log with --log FILE"
            yield Gap(what=f"{target} {raw.kind}", why=raw.error, how=how)
        elif raw.kind in (raws.HEALTH, raws.PROBE) and raw.error:
            yield Gap(what=f"{target} {raw.kind}", why=raw.error, how=raw.hint or "read the engine's log: --log FILE")
        elif raw.kind == raws.MODELS and raw.status in (401, 403):
            yield Gap(what=f"{target}/v1/models", why=raw.error, how=raw.hint, names=())


def of_looks(target: str, first: Look | None, last: Look, window_s: float | None) -> Iterator[Gap]:
    """Gaps that are in the pages themselves."""
    page = f"{target}/metrics" if target else "metrics"
    if first is None:
        how = (
            "run it again, or give --window SECONDS"
            if target
            else "save a second page later and give both: --metrics FILE"
        )
        yield Gap(what=f"{page}: rates and percentiles of now", why="only one page was seen", how=how, names=RATES)
    elif window_s is None:
        how = "give the time between the two pages: --window SECONDS"
        yield Gap(what=f"{page}: rates", why="the time between the two pages is not known", how=how, names=RATES)
    odd = sorted(last.odd | (first.odd if first else frozenset()))
    if odd:
        why = f"values that are not numbers were left out: {', '.join(odd[:5])}"
        yield Gap(what=page, why=why, how=f"look at the page itself: curl {page}" if target else "look at the file")
    if last.bad_lines:
        why = f"{last.bad_lines} lines could not be read"
        yield Gap(what=page, why=why, how=f"look at the page itself: curl {page}" if target else "look at the file")


def unreadable(target: str, error: AnswerError) -> Gap:
    """A page that is not one."""
    return Gap(what=f"{target}/metrics", why=error.message, how=error.hint or f"curl {target}/metrics", names=LEVELS)


def unknown_engine(target: str) -> Gap:
    """A metrics page of something else."""
    return Gap(
        what=f"{target}/metrics" if target else "metrics",
        why="no metric of vLLM, SGLang, llama.cpp or TGI is on this page",
        how="give the engine's own address, not a gateway's or an exporter's",
        names=(*LEVELS, *RATES),
    )


def differences(flags: Mapping[str, Mapping[str, object]]) -> Iterator[Gap]:
    """Settings in which replicas differ: the deployment shows those of the first one."""
    names = {name: None for settings in flags.values() for name in settings}
    for name in names:
        values = {replica: settings[name] for replica, settings in flags.items() if name in settings}
        if len(set(map(str, values.values()))) > 1:
            shown = ", ".join(f"{replica} {value}" for replica, value in list(values.items())[:4])
            yield Gap(what=f"setting {name}", why=f"replicas differ: {shown}", how="diagnose each replica by itself")
