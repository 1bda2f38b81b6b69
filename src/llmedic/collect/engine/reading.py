"""From raw answers to evidence: one server at a time, then the service as a whole. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from llmedic.collect.engine import answers, derive, gaps, raws
from llmedic.collect.engine.instance import Instance, joined, parts_of
from llmedic.collect.engine.look import Look, look
from llmedic.errors import AnswerError
from llmedic.knowledge import flags, metrics, vocabulary
from llmedic.model.deployment import Deployment, Flag, ModelFacts
from llmedic.model.evidence import Evidence, Gap
from llmedic.model.observation import Observation, Value
from llmedic.model.raw import Raw
from llmedic.wire.exposition import Reader


@dataclass(slots=True)
class _Server:
    """One server as it is read: its instances (one per data-parallel engine) and what else it said."""

    target: str
    name: str
    engine: str = ""
    said: answers.Said = field(default_factory=answers.Said)
    instances: list[Instance] = field(default_factory=list)
    info: dict[str, float] = field(default_factory=dict)
    checks: dict[str, float] = field(default_factory=dict)
    flags: list[Flag] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    at: float = 0.0


def read(raws_: Sequence[Raw]) -> Evidence:
    """Everything that the engines' raw answers show; answers of other sources are not looked at.

    Pages whose meta has period "previous" are the earlier window that this one is compared with.
    """
    mine = [raw for raw in raws_ if raw.source == raws.SOURCE]
    earlier = [raw for raw in mine if raw.meta.get("period") == "previous"]
    evidence = _read(_asked_once([raw for raw in mine if raw.meta.get("period") != "previous"]))
    if not earlier:
        return evidence
    before = _read(earlier)
    observations = (replace(one, period="previous") for one in before.observations if one.period == "window")
    return replace(
        evidence,
        observations=(*evidence.observations, *observations),
        gaps=(
            *evidence.gaps,
            *(replace(gap, what=f"{gap.what} in the previous window", names=()) for gap in before.gaps),
        ),
    )


def _asked_once(found: Sequence[Raw]) -> list[Raw]:
    """Without the stored pages of a server that was asked itself: it is one server, not two."""
    asked = {raw.target for raw in found if "from" not in raw.meta}
    return [raw for raw in found if "from" not in raw.meta or raw.target not in asked]


def _read(found: Sequence[Raw]) -> Evidence:
    by_target: dict[str, list[Raw]] = {}
    for raw in found:
        by_target.setdefault(raw.target, []).append(raw)
    readers: dict[str, Reader] = {}
    servers = [_server(target, answered, readers) for target, answered in by_target.items()]
    if not servers:
        return Evidence()
    return Evidence(
        observations=(*_observations(servers), *_silent(by_target, max(server.at for server in servers))),
        deployment=_deployment(servers),
        gaps=(*(gap for server in servers for gap in server.gaps), *gaps.differences(_flag_sets(servers))),
    )


def _silent(by_target: Mapping[str, Sequence[Raw]], at: float) -> list[Observation]:
    """How many of several replicas gave no answer at all: the rest may look fine without them."""
    if len(by_target) < 2:
        return []
    silent = sum(
        not any(raw.status for raw in found) and any(raw.error for raw in found) for found in by_target.values()
    )
    return [_observation("silent_replicas_count", float(silent), at, "")]


def _server(target: str, found: Sequence[Raw], readers: dict[str, Reader]) -> _Server:
    server = _Server(target=target, name=gaps.short(target), said=answers.said(found))
    pages = [raw for raw in found if raw.kind == raws.METRICS]
    usable = [raw for raw in pages if not raw.error]
    seen = next((engine for raw in usable if (engine := metrics.engine_of(raw.body))), "")
    server.engine = seen or server.said.engine
    server.at = max((raw.at for raw in found), default=0.0)
    server.checks = _checks(found)
    server.gaps += gaps.of_answers(target, found, server.engine)
    if usable:
        reader = readers.setdefault(server.engine, Reader(metrics.names(server.engine).samples))
        _read_pages(server, found, reader)
        if not seen:
            server.gaps.append(gaps.unknown_engine(target))
    return server


def _read_pages(server: _Server, found: Sequence[Raw], reader: Reader) -> None:
    looks: dict[str, list[Look]] = {"first": [], "between": [], "last": []}
    for raw in found:
        if raw.error or raw.kind not in (raws.METRICS, raws.GAUGES) or (raw.kind == raws.GAUGES and not raw.body):
            continue
        end = raw.meta.get("end", "between")
        try:
            looks.get(end, looks["between"]).append(look(raw, _moment(raw), server.engine, reader))
        except AnswerError as error:
            server.gaps.append(gaps.unreadable(server.target, error))
    if looks["last"]:
        first, last = next(iter(looks["first"]), None), looks["last"][-1]
    elif looks["first"]:
        first, last = None, looks["first"][-1]
    else:
        return
    window_s = None if first is None else _between_s(found, first, last)
    server.instances = parts_of(server.name, first, looks["between"], last, window_s, server.engine)
    server.gaps += gaps.of_looks(server.target, first, last, window_s)
    _read_info(server, last)


def _moment(raw: Raw) -> float:
    """Seconds since the window began; of saved pages, the window's ends."""
    begun = _seconds(raw, "begun")
    if begun is not None:
        return round(raw.at - begun, 3)
    return 0.0 if raw.meta.get("end") == "first" else _seconds(raw, "window_s") or 0.0


def _between_s(found: Iterable[Raw], first: Look, last: Look) -> float | None:
    if first.at and last.at:
        return last.at - first.at
    return next((known for raw in found if (known := _seconds(raw, "window_s"))), None)


def _seconds(raw: Raw, key: str) -> float | None:
    """A time in the notes of a raw, which came with a bundle from elsewhere; None when it is none."""
    try:
        number = float(raw.meta.get(key, ""))
    except ValueError:
        return None
    return number if isfinite(number) else None


def _read_info(server: _Server, last: Look) -> None:
    """Settings and sizes that are labels of an info metric or gauges fixed at start."""
    for metric in metrics.names(server.engine).metrics:
        if metric.kind == "info":
            for labels in list(last.infos.values())[:1]:
                server.flags += answers.flags_of_info(labels, metric, server.engine)
            for labels in last.infos.values():
                for name, value in answers.values_of_info(labels, metric).items():
                    server.info[name] = min(value, server.info.get(name, value))
        elif metric.kind == "constant" and metric.sets:
            values = [numbers[metric.id] for numbers in last.numbers.values() if metric.id in numbers]
            if values:
                spelled = flags.spelling(metric.sets, server.engine)
                server.flags.append(Flag(name=metric.sets, value=min(values), spelled=spelled, origin="metrics"))


def _checks(found: Sequence[Raw]) -> dict[str, float]:
    """Status and time of the health page and of the probe. 0: no answer, though the server answered elsewhere."""
    checks: dict[str, float] = {}
    alive = any(raw.status for raw in found)
    for raw in found:
        if raw.kind == raws.HEALTH and (raw.status or alive):
            checks["api_health_status"] = float(raw.status)
        if raw.kind == raws.PROBE and (raw.status or alive):
            checks["probe_status"] = float(raw.status)
            checks["probe_s"] = raw.elapsed_s
        if raw.kind == raws.PROBE_CHAT and raw.status:
            checks["probe_chat_status"] = float(raw.status)
    return checks


def _observations(servers: Sequence[_Server]) -> list[Observation]:
    engine = next((server.engine for server in servers if server.instances), "")
    alike = [server for server in servers if server.engine == engine and server.instances]
    leaves = [instance for server in alike for instance in server.instances]
    made: list[Observation] = []
    if leaves:
        made += derive.observations(joined("", leaves, engine), engine)
    if len(leaves) > 1:
        for server in alike:
            if len(alike) > 1 and len(server.instances) > 1:
                made += derive.observations(joined(server.name, server.instances, engine), engine)
            for instance in server.instances:
                if not instance.name.endswith("#"):
                    made += derive.observations(instance, engine)
    made += _fixed(servers, {one.name for one in made if not one.instance})
    return made


def _fixed(servers: Sequence[_Server], have: set[str]) -> list[Observation]:
    """Sizes and check results; for the service the smallest pool, the worst status and the slowest probe."""
    made: list[Observation] = []
    collected: dict[str, list[float]] = {}
    for server in servers:
        values = {**server.said.values, **server.info, **server.checks}
        for name, value in values.items():
            if name in have:
                continue
            collected.setdefault(name, []).append(value)
            if len(servers) > 1:
                made.append(_observation(name, value, server.at, server.name))
    at = max(server.at for server in servers)
    for name, numbers in collected.items():
        made.append(_observation(name, _service(name, numbers), at, ""))
    return made


def _service(name: str, values: Sequence[float]) -> float:
    if name in ("api_health_status", "probe_status", "probe_chat_status"):
        return 0.0 if 0.0 in values else max(values)
    if name == "requests_running":
        return sum(values)
    return max(values) if name == "probe_s" else min(values)


def _observation(name: str, value: Value, at: float, instance: str) -> Observation:
    source = "probe" if name.startswith("probe_") else "metrics"
    return Observation(
        name=name, value=value, unit=vocabulary.unit(name), source=source, at=at or None, instance=instance
    )


def _flag_sets(servers: Sequence[_Server]) -> dict[str, dict[str, object]]:
    return {server.name: {flag.name: flag.value for flag in (*server.said.flags, *server.flags)} for server in servers}


def _deployment(servers: Sequence[_Server]) -> Deployment:
    """Of the first server that says anything; where the others differ is a gap."""
    engine = next((server.engine for server in servers if server.engine), "")
    version = next((server.said.version for server in servers if server.said.version), "")
    model = next((server.said.model for server in servers if server.said.model), "")
    settings: dict[str, Flag] = {}
    for server in servers:
        for flag in (*server.said.flags, *server.flags):
            settings.setdefault(flag.name, flag)
    return Deployment(engine=engine, version=version, flags=tuple(settings.values()), model=ModelFacts(name=model))
