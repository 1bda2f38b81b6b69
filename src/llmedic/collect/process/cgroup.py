"""Reads what a control group lets a process have, version 1 and 2: CPU quota, throttling, memory limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

_UNLIMITED = 1 << 60
"""Version 1 writes "no limit" as a number near 2**63."""


def limits(proc: Path, pid: int, root: Path) -> dict[str, float]:
    """quota_cores, periods, throttled, memory_limit_bytes, memory_bytes: those that exist and are limited.

    proc is /proc, root is /sys/fs/cgroup. Raises OSError when the process is gone or may not be read.
    """
    groups = _groups((proc / str(pid) / "cgroup").read_text(encoding="utf-8"))
    found: dict[str, float] = {}
    if "" in groups and (root / "cgroup.controllers").exists():
        for folder in _upwards(root, groups[""]):
            _merge(found, _version_two(folder))
    else:
        for folder in _upwards(root / _mount(root, "cpu"), groups.get("cpu", "/")):
            _merge(found, _cpu_version_one(folder))
        for folder in _upwards(root / "memory", groups.get("memory", "/")):
            _merge(found, _memory_version_one(folder))
    return found


def _groups(text: str) -> dict[str, str]:
    """Controller -> path; version 2 under ""."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def _mount(root: Path, controller: str) -> str:
    return "cpu,cpuacct" if (root / "cpu,cpuacct").is_dir() else controller


def _upwards(root: Path, path: str) -> Iterator[Path]:
    """The group and its parents: the tightest limit on the way binds. Inside a container the path may not exist."""
    inner = PurePosixPath(path.lstrip("/"))
    for part in (inner, *inner.parents):
        folder = root / part
        if folder.is_dir():
            yield folder


def _merge(found: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        if name in ("quota_cores", "memory_limit_bytes"):
            found[name] = min(found.get(name, value), value)
        else:
            found.setdefault(name, value)


def _version_two(folder: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    quota = _words(folder / "cpu.max")
    if len(quota) == 2 and quota[0].isdigit() and int(quota[1]) > 0:
        found["quota_cores"] = int(quota[0]) / int(quota[1])
    found.update(_throttling(folder / "cpu.stat"))
    found.update(_number(folder / "memory.max", "memory_limit_bytes"))
    found.update(_number(folder / "memory.current", "memory_bytes"))
    return found


def _cpu_version_one(folder: Path) -> dict[str, float]:
    quota = _number(folder / "cpu.cfs_quota_us", "quota").get("quota", -1.0)
    period = _number(folder / "cpu.cfs_period_us", "period").get("period", 0.0)
    found = {"quota_cores": quota / period} if quota > 0 and period > 0 else {}
    return found | _throttling(folder / "cpu.stat")


def _memory_version_one(folder: Path) -> dict[str, float]:
    return _number(folder / "memory.limit_in_bytes", "memory_limit_bytes") | _number(
        folder / "memory.usage_in_bytes", "memory_bytes"
    )


def _throttling(path: Path) -> dict[str, float]:
    words = _words(path)
    values = dict(zip(words[::2], words[1::2], strict=False))
    names = {"periods": "nr_periods", "throttled": "nr_throttled"}
    return {name: float(values[key]) for name, key in names.items() if values.get(key, "").isdigit()}


def _number(path: Path, name: str) -> dict[str, float]:
    words = _words(path)
    if len(words) != 1 or not words[0].isdigit() or int(words[0]) > _UNLIMITED:
        return {}
    return {name: float(words[0])}


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        return []
