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
MAX_FILE_BYTES = 64 << 20
FOLDER_HINT = (
    "metrics pages end in .prom or begin with # HELP, logs in .log, bundles in .zip, case files in .yaml; "
    "a model has a config.json"
)
TARGET_HINT = "a target is http(s)://host:port, prom+http(s)://host:port?SELECTOR, a bundle (.zip) or a directory"

Capture = Callable[[], Sequence[Raw]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What was asked for, sorted by the source that can get it.

    found  the files that nobody named, but that lay in a folder that was: one that is something else stops nothing
    """

    urls: tuple[str, ...] = ()
    prometheus: tuple[str, ...] = ()
    bundles: tuple[Path, ...] = ()
    metrics: tuple[Path, ...] = ()
    logs: tuple[str, ...] = ()
    cases: tuple[Path, ...] = ()
    models: tuple[Path, ...] = ()
    pids: tuple[int, ...] = field(default=())
    found: frozenset[Path] = frozenset()

    @property
    def is_live(self) -> bool:
        """Whether anything has to be watched."""
        return bool(self.urls or self.prometheus or self.pids)


def plan(sources: Sources) -> Plan:
    """Sorts the targets. Raises UsageError for one that is none of the kinds."""
    urls, proms, bundles, metrics, log_paths = [], [], [], list(sources.metrics), [str(path) for path in sources.logs]
    cases, models = [sources.case] if sources.case else [], [sources.model] if sources.model else []
    in_folders: set[Path] = set()
    for target in sources.targets:
        if target.startswith(("http://", "https://")):
            urls.append(target)
        elif target.startswith(("prom+http://", "prom+https://")):
            proms.append(target)
        elif "://" in target:
            scheme = target.partition("://")[0]
            raise errors.UsageError(f"{scheme}://…: not a kind of target that is known", hint=TARGET_HINT)
        elif Path(target).is_dir():
            found, holds_model = _evidence(Path(target))
            if holds_model and not sources.model:
                models.append(Path(target))
                in_folders.add(Path(target))
            in_folders.update(found)
            metrics += [path for path in found if _is_metrics(path)]
            bundles += [path for path in found if path.suffix == ".zip"]
            cases += [path for path in found if path.suffix in (".yaml", ".yml")]
            logs = _logs(found)
            log_paths += logs
            evident = (_is_metrics(path) or path.suffix in (".zip", ".yaml", ".yml") for path in found)
            if not any((holds_model, logs, *evident)):
                raise errors.InputError(f"{target}: no evidence in this folder", hint=FOLDER_HINT)
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
        models=tuple(models),
        pids=(sources.pid,) if sources.pid is not None else (),
        found=frozenset(in_folders),
    )


def _folder(folder: Path) -> list[Path]:
    """The plain files in a folder, by name."""
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as error:
        raise errors.InputError(f"{folder}: {error.strerror or error}", hint="check the path and its mode") from error


def _evidence(folder: Path) -> tuple[list[Path], bool]:
    """The files that may be evidence, and whether those of a model, which are not among them, lie there too."""
    from llmedic.collect import modelfiles

    found = _folder(folder)
    if not modelfiles.is_model(path.name for path in found):
        return found, False
    return [path for path in found if not modelfiles.belongs_to_model(path.name)], True


def _is_metrics(path: Path) -> bool:
    """A metrics page by its name, or by how it begins: most are saved as metrics.txt."""
    if path.name.endswith(METRICS_ENDINGS):
        return True
    if path.suffix not in (".txt", ""):
        return False
    try:
        with path.open("rb") as file:
            return file.read(7) in (b"# HELP ", b"# TYPE ")
    except OSError:
        return False


def _logs(found: Sequence[Path]) -> list[str]:
    from llmedic.collect import logs

    mine = [path for path in found if logs.is_log(path.name) and not _is_metrics(path)]
    return [str(path) for path in logs.newest(mine)]


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
    if planned.models:  # before the bundles: what was named counts, not what an older snapshot knew
        from llmedic.collect import modelfiles

        raws += _each(planned, planned.models, modelfiles.capture)
    if planned.bundles:
        from llmedic.collect import bundle

        raws += _each(planned, planned.bundles, bundle.read_bundle)
    if planned.metrics:
        from llmedic.collect import engine

        raws += engine.read_saved([(path.name, _bytes(path)) for path in planned.metrics], window_s)
    if planned.cases:
        from llmedic.collect import casefile

        raws += _each(planned, planned.cases, lambda path: casefile.capture(path.name, _bytes(path)))
    if planned.logs:
        from llmedic.collect import logs

        raws += logs.capture(planned.logs, stdin=sys.stdin.buffer, found=frozenset(map(str, planned.found)))
    if sources.args:
        from llmedic.collect import flags

        raws += flags.capture(sources.args)
    if sources.symptoms:
        raws.append(evidence.symptoms_raw(sources.symptoms))
    return raws


def _each(planned: Plan, paths: Sequence[Path], read: Callable[[Path], Sequence[Raw]]) -> list[Raw]:
    """The files one by one: what was named has to be right, what only lay there is a gap."""
    raws: list[Raw] = []
    for path in paths:
        try:
            raws += read(path)
        except errors.InputError as error:
            if path not in planned.found:
                raise
            raws.append(evidence.unread_raw(path.name or str(path), error))
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

    try:
        parts = urlsplit(url)
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
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise errors.InputError(
            f"{path}: cannot be read: {error.strerror}", hint="check the path and its mode"
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise errors.InputError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB", hint="a log is given with --log")
    return content
