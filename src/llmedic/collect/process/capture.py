"""Watches a local engine process and its children for a moment: CPU time, waiting, states, limits, settings."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

import psutil

from llmedic.collect import redact
from llmedic.collect.process import cgroup
from llmedic.model.raw import Raw

SOURCE = "process"
LOOKS = 5
"""How often a window is looked at: a queue of runnable threads is seen, not counted by the kernel."""

Record = dict[str, object]

_ENVIRONMENT = re.compile(
    r"(?:VLLM|NCCL|CUDA|NVIDIA|OMP|MKL|GOMP|KMP|SGLANG|LLAMA|GGML|OLLAMA|TORCH|PYTORCH|TRITON|RAY|HIP|ROCR|UCX|GLOO)_\w+"
    r"|HF_HUB_OFFLINE|TRANSFORMERS_OFFLINE|HF_HUB_ENABLE_HF_TRANSFER|TOKENIZERS_PARALLELISM|LD_PRELOAD|MALLOC_\w+"
)
_ENGINES = (
    ("sglang", "sglang"),
    ("llama-server", "llama.cpp"),
    ("llama_server", "llama.cpp"),
    ("text-generation", "tgi"),
    ("ollama", "ollama"),
    ("vllm", "vllm"),
)


def capture(
    pids: Sequence[int],
    *,
    window_s: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    proc: Path = Path("/proc"),
    cgroups: Path = Path("/sys/fs/cgroup"),
) -> tuple[Raw, ...]:
    """What each process and its descendants did for `window_s` seconds, and the command line that started it.

    clock    Unix seconds; sleep: waits. Secrets on the command line and in the environment never leave this function.
    Never raises for what a process does: one that is gone or may not be read is a Raw with an error.
    """
    if not sys.platform.startswith("linux"):
        return tuple(_failed(pid, clock(), "process details are read from /proc, on Linux only", "") for pid in pids)
    families = {pid: _family(pid) for pid in pids}
    looks: list[Record] = []
    for look in range(LOOKS + 1):
        if look:
            sleep(window_s / LOOKS)
        looks.append(_look(proc, cgroups, families, clock()))
    found: list[Raw] = []
    for pid in pids:
        found += _raws(proc, pid, looks, clock())
    return tuple(found)


def find_listener(port: int) -> int | None:
    """The process that listens on a local TCP port; None when there is none or it may not be seen."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return None
    listening = (item for item in connections if item.status == psutil.CONN_LISTEN)
    pids = [item.pid for item in listening if getattr(item.laddr, "port", None) == port]
    # A front end with several processes shares its socket: the oldest is their parent.
    return min((pid for pid in pids if pid is not None), default=None)


def is_engine(pid: int) -> bool:
    """Whether the process was started as an engine, and not as a proxy or a tunnel to one elsewhere."""
    try:
        return bool(engine_of(psutil.Process(pid).cmdline()))
    except (psutil.Error, OSError):
        return False


def engine_of(words: Sequence[str]) -> str:
    """The engine a command line starts; "" when it is none we know."""
    text = " ".join(words).lower()
    return next((engine for mark, engine in _ENGINES if mark in text), "")


def _family(pid: int) -> tuple[int, ...]:
    try:
        return (pid, *(child.pid for child in psutil.Process(pid).children(recursive=True)))
    except (psutil.Error, OSError):
        return (pid,)


def _look(proc: Path, cgroups: Path, families: Mapping[int, tuple[int, ...]], at: float) -> Record:
    members = {member for family in families.values() for member in family}
    processes = {str(member): found for member in sorted(members) if (found := _process(proc, member))}
    return {
        "at": at,
        "host": _host(proc),
        "families": {str(pid): list(family) for pid, family in families.items()},
        "processes": processes,
        "limits": {str(pid): _limits(proc, pid, cgroups) for pid in families},
    }


def _process(proc: Path, pid: int) -> Record:
    """name, title, state, cpu_s, threads, rss_bytes, cpus, and waits_s by thread; {} when it is gone."""
    folder = proc / str(pid)
    try:
        stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        name, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
        ticks = os.sysconf("SC_CLK_TCK")
        return {
            "name": name,
            "title": (folder / "cmdline").read_bytes()[:200].split(b"\0")[0].decode("utf-8", "replace"),
            "state": rest[0],
            "cpu_s": (int(rest[11]) + int(rest[12])) / ticks,
            "threads": int(rest[17]),
            "rss_bytes": int(rest[21]) * os.sysconf("SC_PAGE_SIZE"),
            "waits_s": _waits(folder),
            "cpus": _cpus(folder),
        }
    except (OSError, ValueError, IndexError):
        return {}


def _waits(folder: Path) -> dict[str, float]:
    """Thread -> seconds it was runnable without running. Empty where the kernel does not count it."""
    found: dict[str, float] = {}
    try:
        threads = sorted((folder / "task").iterdir())
    except OSError:
        return found
    for thread in threads:
        try:
            found[thread.name] = int((thread / "schedstat").read_text(encoding="ascii").split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            continue
    return found


def _cpus(folder: Path) -> int | None:
    """How many CPUs the process may run on."""
    for line in (folder / "status").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            ranges = [part.split("-") for part in line.split(":", 1)[1].strip().split(",") if part]
            return sum(int(ends[-1]) - int(ends[0]) + 1 for ends in ranges)
    return None


def _host(proc: Path) -> Record:
    try:
        lines = (proc / "stat").read_text(encoding="ascii", errors="replace").splitlines()
        times = [int(word) for word in lines[0].split()[1:9]]
        running = next(int(line.split()[1]) for line in lines if line.startswith("procs_running"))
    except (OSError, ValueError, IndexError, StopIteration):
        return {}
    cpus = sum(1 for line in lines if re.match(r"cpu\d", line))
    return {"cpus": cpus, "idle": times[3] + times[4], "total": sum(times), "steal": times[7], "running": running}


def _limits(proc: Path, pid: int, root: Path) -> dict[str, float]:
    try:
        return cgroup.limits(proc, pid, root)
    except (OSError, ValueError):
        return {}


def _raws(proc: Path, pid: int, looks: Sequence[Record], at: float) -> list[Raw]:
    last = looks[-1]["processes"]
    if not isinstance(last, dict) or str(pid) not in last:
        return [_failed(pid, at, f"no process {pid}, or it ended", "pgrep -af 'vllm|sglang|llama-server'")]
    words, denied = _command_line(proc, pid)
    environment = _environment(proc, pid)
    body = {"pid": pid, "engine": engine_of(words), "environment": environment, "looks": looks}
    meta = {} if environment is not None else {"denied": "environment"}
    found = [Raw(source=SOURCE, kind="looks", target=str(pid), at=at, body=json.dumps(body).encode(), meta=meta)]
    if words and not denied:
        meta = {"origin": "process", "engine": engine_of(words)}
        typed = json.dumps(words).encode()
        found.append(Raw(source="flags", kind="args", target=str(pid), at=at, body=typed, meta=meta))
    return found


def _command_line(proc: Path, pid: int) -> tuple[list[str], bool]:
    try:
        data = (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return [], True
    words = [word.decode("utf-8", "replace") for word in data.split(b"\0") if word]
    for position, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if not redact.is_secret_name(name):
            continue
        if equals:
            words[position] = f"{name}={redact.HIDDEN}"
        elif name.startswith("-"):
            values = takewhile(lambda word: not word.startswith("-"), words[position + 1 :])
            for after, _ in enumerate(values, position + 1):  # a flag may take several
                words[after] = redact.HIDDEN
    return words, False


def _environment(proc: Path, pid: int) -> dict[str, str] | None:
    try:
        data = (proc / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    pairs = (item.decode("utf-8", "replace").partition("=") for item in data.split(b"\0") if item)
    return {name: redact.setting(name, value) for name, _, value in pairs if _ENVIRONMENT.fullmatch(name)}


def _failed(pid: int, at: float, error: str, hint: str) -> Raw:
    return Raw(source=SOURCE, kind="looks", target=str(pid), at=at, error=error, hint=hint)
