"""Captures every source side by side: one broken source never stops the rest."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from llmedic import errors
from llmedic.app import evidence
from llmedic.app.request import Progress, Sources
from llmedic.model.raw import Raw
from llmedic.wire.access import Access

GRACE_S = 8.0
"""How long after the window a source may still finish before it is given up."""
METRICS_ENDINGS = (".prom", ".metrics")
TARGET_HINT = "a target is http(s)://host:port, prom+http(s)://host:port?SELECTOR, a bundle (.zip) or a directory"

Capture = Callable[[], Sequence[Raw]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What was asked for, sorted by the source that can get it. `now` are files, read before anything is waited for."""

    urls: tuple[str, ...] = ()
    prometheus: tuple[str, ...] = ()
    bundles: tuple[Path, ...] = ()
    metrics: tuple[Path, ...] = ()
    logs: tuple[str, ...] = ()
    cases: tuple[Path, ...] = ()
    pids: tuple[int, ...] = field(default=())

    @property
    def is_live(self) -> bool:
        """Whether anything has to be watched."""
        return bool(self.urls or self.prometheus or self.pids)


def plan(sources: Sources) -> Plan:
    """Sorts the targets. Raises UsageError for one that is none of the kinds."""
    urls, proms, bundles, metrics, log_paths = [], [], [], list(sources.metrics), [str(path) for path in sources.logs]
    cases = [sources.case] if sources.case else []
    for target in sources.targets:
        if target.startswith(("http://", "https://")):
            urls.append(target)
        elif target.startswith(("prom+http://", "prom+https://")):
            proms.append(target)
        elif "://" in target:
            scheme = target.partition("://")[0]
            raise errors.UsageError(f"{scheme}://…: not a kind of target that is known", hint=TARGET_HINT)
        elif Path(target).is_dir():
            found = sorted(path for path in Path(target).iterdir() if path.is_file())
            metrics += [path for path in found if path.name.endswith(METRICS_ENDINGS)]
            bundles += [path for path in found if path.suffix == ".zip"]
            cases += [path for path in found if path.suffix in (".yaml", ".yml")]
            if any(path.suffix in (".log", ".txt", ".gz") or path.name.endswith(".log.1") for path in found):
                log_paths.append(target)
        elif Path(target).is_file():
            bundles.append(Path(target))
        else:
            raise errors.UsageError(f"{target}: no such file, and not a URL", hint=TARGET_HINT)
    return Plan(
        urls=tuple(urls),
        prometheus=tuple(proms),
        bundles=tuple(bundles),
        metrics=tuple(metrics),
        logs=tuple(log_paths),
        cases=tuple(cases),
        pids=(sources.pid,) if sources.pid is not None else (),
    )


def gather(
    sources: Sources,
    access: Access,
    *,
    window_s: float,
    compare_to_s: float | None = None,
    probe: bool = False,
    progress: Progress = lambda _: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[Raw, ...]:
    """Every raw answer of every source that was named, and of the local engine process behind a loopback URL.

    `meanwhile` is work to do beside a live window, which mostly is waiting.

    Raises:
        CallerError: a file or an option is wrong. What a target does is never raised.
    """
    planned = plan(sources)
    raws = _files(planned, sources, window_s)
    if planned.is_live:
        live = _live(planned, access, window_s, compare_to_s, probe=probe)
        progress(f"watching {', '.join(live)} for {window_s:g} s")
        raws += _watch(live, window_s + GRACE_S, meanwhile)
    return tuple(raws)


def _watch(live: Mapping[str, Capture], deadline_s: float, meanwhile: Callable[[], None]) -> list[Raw]:
    """All live sources at once, over one window."""
    from llmedic.wire.parallel import run_all

    def prepare() -> Sequence[Raw]:
        meanwhile()
        return ()

    raws: list[Raw] = []
    for name, result in run_all({**live, "": prepare}, deadline_s).items():
        raws += _kept(name, result)
    return raws


def _files(planned: Plan, sources: Sources, window_s: float) -> list[Raw]:
    """What is read at once. Each source is imported when it has something to read."""
    raws: list[Raw] = []
    if planned.bundles:
        from llmedic.collect import bundle

        raws += [raw for path in planned.bundles for raw in bundle.read_bundle(path)]
    if planned.metrics:
        from llmedic.collect import engine

        raws += engine.read_saved([(path.name, _bytes(path)) for path in planned.metrics], window_s)
    if planned.cases:
        from llmedic.collect import casefile

        raws += [raw for path in planned.cases for raw in casefile.capture(path.name, _bytes(path))]
    if planned.logs:
        from llmedic.collect import logs

        raws += logs.capture(planned.logs, stdin=sys.stdin.buffer)
    if sources.args:
        from llmedic.collect import flags

        raws += flags.capture(sources.args)
    if sources.symptoms:
        raws.append(evidence.symptoms_raw(sources.symptoms))
    return raws


def _live(
    planned: Plan, access: Access, window_s: float, compare_to_s: float | None, *, probe: bool
) -> dict[str, Capture]:
    from llmedic.collect import engine, process, prometheus
    from llmedic.wire import http

    tasks: dict[str, Capture] = {}
    if planned.urls:
        tasks["engine"] = partial(engine.capture, planned.urls, access=access, window_s=window_s, probe=probe)
    for url in planned.prometheus:
        tasks[http.shown(url)] = partial(
            prometheus.capture,
            url,
            access=access,
            window_s=window_s,
            compare_to_s=compare_to_s,
            now=time.time(),
            deadline_s=window_s + GRACE_S - 1,
        )
    pids = planned.pids or tuple(pid for url in planned.urls if (pid := _local_pid(url)) is not None)
    if pids:
        tasks["process"] = partial(process.capture, pids, window_s=window_s, clock=time.time, sleep=time.sleep)
    return tasks


def _local_pid(url: str) -> int | None:
    """The engine that listens behind a loopback URL: its CPU and its limits are evidence that costs nothing."""
    from llmedic.collect import process

    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        local = parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return None
    pid = process.find_listener(port) if local else None
    return pid if pid is not None and process.is_engine(pid) else None


def _kept(name: str, result: Sequence[Raw] | Exception) -> list[Raw]:
    """The raw answers, or what went wrong as one; only the caller's own mistakes stop the command."""
    if isinstance(result, errors.CallerError):
        raise result
    if isinstance(result, errors.LLMedicError):
        return [Raw(source="engine", kind="failure", target=name, error=result.message, hint=result.hint)]
    if isinstance(result, TimeoutError):
        hint = "run it again with a longer --window"
        return [Raw(source="engine", kind="failure", target=name, error=str(result), hint=hint)]
    if isinstance(result, Exception):
        raise result
    return list(result)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.InputError(
            f"{path}: cannot be read: {error.strerror}", hint="check the path and its mode"
        ) from error
