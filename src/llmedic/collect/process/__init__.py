"""The process source: what a local engine process does, waits for and is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from llmedic.collect.process.capture import SOURCE, capture, find_listener, is_engine
from llmedic.knowledge import vocabulary
from llmedic.model.deployment import Deployment, HardwareFacts
from llmedic.model.evidence import Evidence, Gap, LogEvent
from llmedic.model.observation import Observation, Series
from llmedic.model.raw import Raw

__all__ = ["SOURCE", "capture", "find_listener", "is_engine", "read"]

_GIB = 1 << 30
_ENGINE_NAMES = ("enginecore", "worker", "scheduler", "rayworker", "multiproc", "shard")

_STATES = (("T", "process-stopped", "stopped"), ("D", "process-uninterruptible", "disk sleep"))
"""State letter of /proc/PID/stat, the log pattern that knows what it means, and the kernel's word for it."""

Numbers = Mapping[str, object]


def read(raws: Sequence[Raw]) -> Evidence:
    """CPU use of front end and engine, waiting, throttling, memory, states and environment of each process. Pure."""
    observations: list[Observation] = []
    events: list[LogEvent] = []
    gaps: list[Gap] = []
    deployment = Deployment()
    for raw in raws:
        if raw.error:
            gaps.append(Gap(what=f"process {raw.target}", why=raw.error, how=raw.hint))
            continue
        if not _is_known(raw):
            how = (
                "give the pid of the process that was started as vllm, sglang, llama-server, text-generation or ollama"
            )
            gaps.append(Gap(what=f"process {raw.target}", why="it is no engine that is known", how=how))
            continue
        try:
            watched = _Watched(json.loads(raw.body))
            seen, happened, deployed = tuple(watched.observations()), tuple(watched.events()), watched.deployment()
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError):
            how = f"llmedic diagnose --pid {raw.target}"
            gaps.append(Gap(what=f"process {raw.target}", why="the record is damaged", how=how))
            continue
        observations += seen
        events += happened
        deployment = deployment if deployment.engine else deployed
        if raw.meta.get("denied"):
            how = f"sudo llmedic diagnose --pid {raw.target}"
            gaps.append(Gap(what=f"environment of process {raw.target}", why="permission denied", how=how))
    return Evidence(observations=tuple(observations), events=tuple(events), deployment=deployment, gaps=tuple(gaps))


def _is_known(raw: Raw) -> bool:
    """Whether the record is of an engine; a damaged one is let through, to be told as what it is."""
    try:
        data = json.loads(raw.body)
    except (ValueError, RecursionError):
        return True
    return not isinstance(data, dict) or data.get("engine") != ""


class _Watched:
    """The looks at one process, compared."""

    def __init__(self, data: Mapping[str, object]) -> None:
        self._data = data
        self._pid = str(data["pid"])
        self._looks = cast(list[Mapping[str, Mapping[str, object]]], data["looks"])
        self._first, self._last = self._looks[0], self._looks[-1]
        self._span = float(cast(float, self._last["at"])) - float(cast(float, self._first["at"]))
        families = cast(Mapping[str, list[int]], self._last["families"])
        self._members = [str(pid) for pid in families[self._pid]]
        engine = [pid for pid in self._members[1:] if self._is_engine(pid)]
        self._engine = engine or ([self._pid] if len(self._members) == 1 else self._members[1:])
        self._first_process, self._last_process = self._first["processes"], self._last["processes"]

    def observations(self) -> Iterator[Observation]:
        """Everything that could be computed; what a kernel does not count is left out."""
        values = {**self._use(), **self._limits(), **self._host()}
        for name, value in values.items():
            if value is not None:
                yield _observation(name, value, self._span)
        running = [(self._at(look), _number(look["host"], "running")) for look in self._looks]
        points = tuple((at, count) for at, count in running if count is not None)
        if points:
            yield _observation("host_run_queue_count", Series(points=points), self._span)

    def events(self) -> Iterator[LogEvent]:
        """A member that was stopped, or stuck in the kernel, at every look."""
        for state, key, words in _STATES:
            stuck = [pid for pid in self._members if all(self._state(look, pid) == state for look in self._looks)]
            if stuck:
                text = f"State: {state} ({words}): {', '.join(f'{self._name(pid)} {pid}' for pid in stuck)}"
                yield LogEvent(id=key, level="error", text=text, count=len(stuck), source=SOURCE)

    def deployment(self) -> Deployment:
        """Engine, environment and CPUs of the host."""
        environment = dict(cast(Mapping[str, str], self._data.get("environment") or {}))
        cpus = _number(self._last["host"], "cpus")
        return Deployment(
            engine=str(self._data.get("engine", "")),
            environment={str(name): str(value) for name, value in environment.items()},
            hardware=HardwareFacts(host_cpus=int(cpus) if cpus else None),
        )

    def _use(self) -> dict[str, float | None]:
        cores = {pid: self._cores(pid) for pid in self._members}
        known = [value for value in cores.values() if value is not None]
        engine = [value for pid in self._engine if (value := cores[pid]) is not None]
        alone = self._engine == [self._pid]
        rss = [_number(self._last_process.get(pid), "rss_bytes") for pid in self._members]
        threads = [_number(self._last_process.get(pid), "threads") for pid in self._members]
        states = [self._state(self._last, pid) for pid in self._members]
        return {
            "frontend_cpu_cores": None if alone else cores[self._pid],
            "engine_cpu_cores": sum(engine) if engine else None,
            "process_cpu_cores": max(known) if known else None,
            "process_rss_gib": sum(value for value in rss if value is not None) / _GIB,
            "threads_count": sum(value for value in threads if value is not None),
            "process_state_stopped_count": float(sum(state in ("T", "t") for state in states)),
            "cpu_wait_ratio": self._waiting(),
        }

    def _limits(self) -> dict[str, float | None]:
        first, last = self._first["limits"].get(self._pid), self._last["limits"].get(self._pid)
        quota, cpus = _number(last, "quota_cores"), _number(self._last_process.get(self._pid), "cpus")
        host = _number(self._last["host"], "cpus")
        pinned = cpus if cpus is not None and host is not None and cpus < host else None
        allowed = [value for value in (quota, pinned) if value is not None]
        periods, throttled = _delta(first, last, "periods"), _delta(first, last, "throttled")
        return {
            "cpu_quota_cores": min(allowed) if allowed else None,
            "cpu_throttled_ratio": min(1.0, throttled / periods) if periods and throttled is not None else None,
        }

    def _host(self) -> dict[str, float | None]:
        total, idle = (
            _delta(self._first["host"], self._last["host"], "total"),
            _delta(self._first["host"], self._last["host"], "idle"),
        )
        busy = max(0.0, 1 - idle / total) if total and idle is not None else None
        return {"host_cpu_util_ratio": busy, "other_cpu_ratio": self._others(busy)}

    def _others(self, busy: float | None) -> float | None:
        """The share of the host's CPU time that went to anything but the engine's own processes."""
        cpus = _number(self._last["host"], "cpus")
        own = [value for pid in self._members if (value := self._cores(pid)) is not None]
        if busy is None or not cpus or not own:
            return None
        return min(1.0, max(0.0, busy - sum(own) / cpus))

    def _cores(self, pid: str) -> float | None:
        used = _delta(self._first_process.get(pid), self._last_process.get(pid), "cpu_s")
        return used / self._span if used is not None and self._span > 0 else None

    def _waiting(self) -> float | None:
        """Of the engine's threads, the one that waited longest for a CPU: its share of the window."""
        longest: float | None = None
        for pid in self._engine:
            before = cast(Numbers, cast(Numbers, self._first_process.get(pid) or {}).get("waits_s") or {})
            after = cast(Numbers, cast(Numbers, self._last_process.get(pid) or {}).get("waits_s") or {})
            for thread in after:
                waited = _delta(before, after, thread)
                if waited is not None and self._span > 0:
                    longest = max(longest or 0.0, min(1.0, waited / self._span))
        return longest

    def _is_engine(self, pid: str) -> bool:
        process = cast(Numbers, self._last["processes"].get(pid) or {})
        words = f"{process.get('name', '')} {process.get('title', '')}".lower()
        return any(name in words for name in _ENGINE_NAMES)

    def _state(self, look: Mapping[str, Mapping[str, object]], pid: str) -> str:
        return str(cast(Numbers, look["processes"].get(pid) or {}).get("state", ""))

    def _name(self, pid: str) -> str:
        return str(cast(Numbers, self._last_process.get(pid) or {}).get("name", ""))

    def _at(self, look: Mapping[str, object]) -> float:
        return float(cast(float, look["at"])) - float(cast(float, self._first["at"]))


def _observation(name: str, value: float | Series, span: float) -> Observation:
    return Observation(name=name, value=value, unit=vocabulary.unit(name), source=SOURCE, window_s=span or None)


def _number(record: object, key: str) -> float | None:
    value = record.get(key) if isinstance(record, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _delta(first: object, last: object, key: str) -> float | None:
    before, after = _number(first, key), _number(last, key)
    return None if before is None or after is None or after < before else after - before
