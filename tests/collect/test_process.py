"""A local process: a real one of ours, and control groups written by hand."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmedic.collect import process
from llmedic.collect.process import cgroup
from llmedic.collect.process.capture import engine_of
from llmedic.model.evidence import Evidence
from llmedic.model.raw import Raw

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True)\\nwhile True: sum(range(10000))", "EngineCore"])
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def engine() -> Iterator[tuple[int, int]]:
    """A front end that sleeps and an engine that works."""
    command = [
        sys.executable,
        "-c",
        PARENT,
        "vllm",
        "serve",
        "model",
        "--max-num-seqs",
        "8",
        "--api-key",
        "sk-secret",
        "second-secret",
    ]
    environment = {**os.environ, "VLLM_USE_V1": "1", "VLLM_API_KEY": "sk-secret", "NCCL_ALGO": "Ring", "UNRELATED": "x"}
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    words = {parent.stdout.readline().strip(), parent.stdout.readline().strip()}
    child = max(int(word) for word in words)
    yield parent.pid, child
    os.kill(child, signal.SIGCONT)
    os.kill(child, signal.SIGKILL)
    parent.kill()
    parent.wait()
    parent.stdout.close()


def watch(pid: int) -> tuple[Raw, ...]:
    return process.capture([pid], window_s=0.3, clock=time.time, sleep=time.sleep)


def values(evidence: Evidence) -> dict[str, object]:
    return {item.name: item.value for item in evidence.observations}


def own(raws: tuple[Raw, ...]) -> list[Raw]:
    return [raw for raw in raws if raw.source == process.SOURCE]


def test_front_end_and_engine_are_told_apart(engine: tuple[int, int]) -> None:
    evidence = process.read(own(watch(engine[0])))
    found = values(evidence)
    front, busy = found["frontend_cpu_cores"], found["engine_cpu_cores"]
    assert isinstance(front, float)
    assert isinstance(busy, float)
    assert busy > front
    assert found["process_cpu_cores"] == busy
    assert found["threads_count"] == 2
    assert evidence.deployment.engine == "vllm"
    assert evidence.deployment.hardware.host_cpus


def test_the_command_line_becomes_flags_and_secrets_stay_behind(engine: tuple[int, int]) -> None:
    raws = watch(engine[0])
    typed = next(raw for raw in raws if raw.source == "flags")
    assert typed.meta == {"origin": "process", "engine": "vllm"}
    assert "--max-num-seqs" in json.loads(typed.body)
    assert all(b"sk-secret" not in raw.body and b"second-secret" not in raw.body for raw in raws)
    environment = process.read(own(raws)).deployment.environment
    assert environment["VLLM_USE_V1"] == "1"
    assert environment["VLLM_API_KEY"] == "<redacted>"
    assert environment["NCCL_ALGO"] == "Ring"
    assert "UNRELATED" not in environment


def test_a_stopped_engine_is_seen(engine: tuple[int, int]) -> None:
    os.kill(engine[1], signal.SIGSTOP)
    while "\tT (stopped)" not in Path(f"/proc/{engine[1]}/status").read_text():
        time.sleep(0.01)
    evidence = process.read(own(watch(engine[0])))
    assert [event.id for event in evidence.events] == ["process-stopped"]
    assert values(evidence)["process_state_stopped_count"] == 1


def test_a_process_that_is_gone_is_a_gap() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    (gap,) = process.read(watch(child.pid)).gaps
    assert "no process" in gap.why
    assert gap.how


def test_a_process_that_is_no_engine_is_a_gap_and_no_evidence() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])
    try:
        evidence = process.read([raw for raw in watch(child.pid) if raw.source == "process"])
    finally:
        child.kill()
        child.wait()
    (gap,) = evidence.gaps
    assert "no engine" in gap.why
    assert evidence.observations == ()


def test_a_neighbours_work_is_told_from_the_engines(engine: tuple[int, int]) -> None:
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: sum(range(10000))"])
    try:
        seen = {one.name: one.value for one in process.read(watch(engine[0])).observations}
    finally:
        neighbour.kill()
        neighbour.wait()
    assert 0 < seen["other_cpu_ratio"] <= seen["host_cpu_util_ratio"]


def test_a_listener_is_found_by_its_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert process.find_listener(port) == os.getpid()
    assert process.find_listener(port) is None


@pytest.mark.parametrize(
    ("words", "engine_name"),
    [
        (["python", "-m", "vllm.entrypoints.openai.api_server"], "vllm"),
        (["python3", "-m", "sglang.launch_server"], "sglang"),
        (["/usr/bin/llama-server", "-m", "x"], "llama.cpp"),
        (["text-generation-launcher"], "tgi"),
        (["/usr/bin/ollama", "serve"], "ollama"),
        (["sleep", "1"], ""),
    ],
)
def test_the_engine_is_named_by_its_command(words: list[str], engine_name: str) -> None:
    assert engine_of(words) == engine_name


def tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_version_two_limits_are_the_tightest_on_the_way_up(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "proc/7/cgroup": "0::/pod/container\n",
            "cg/cgroup.controllers": "cpu memory",
            "cg/pod/cpu.max": "200000 100000",
            "cg/pod/memory.max": "max",
            "cg/pod/container/cpu.max": "400000 100000",
            "cg/pod/container/memory.max": "1073741824",
            "cg/pod/container/memory.current": "1024",
            "cg/pod/container/cpu.stat": "usage_usec 5\nnr_periods 100\nnr_throttled 40\nthrottled_usec 9\n",
        },
    )
    assert cgroup.limits(tmp_path / "proc", 7, tmp_path / "cg") == {
        "quota_cores": 2.0,
        "memory_limit_bytes": 1073741824.0,
        "memory_bytes": 1024.0,
        "periods": 100.0,
        "throttled": 40.0,
    }


def test_version_one_limits_are_read(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "proc/7/cgroup": "4:memory:/a\n3:cpu,cpuacct:/a\n0::/x\n",
            "cg/cpu,cpuacct/a/cpu.cfs_quota_us": "150000",
            "cg/cpu,cpuacct/a/cpu.cfs_period_us": "100000",
            "cg/cpu,cpuacct/a/cpu.stat": "nr_periods 10\nnr_throttled 1\nthrottled_time 3",
            "cg/memory/a/memory.limit_in_bytes": "9223372036854771712",
            "cg/memory/a/memory.usage_in_bytes": "2048",
        },
    )
    assert cgroup.limits(tmp_path / "proc", 7, tmp_path / "cg") == {
        "quota_cores": 1.5,
        "memory_bytes": 2048.0,
        "periods": 10.0,
        "throttled": 1.0,
    }


def test_a_group_without_limits_has_none(tmp_path: Path) -> None:
    tree(tmp_path, {"proc/7/cgroup": "0::/\n", "cg/cgroup.controllers": "cpu", "cg/cpu.max": "max 100000"})
    assert cgroup.limits(tmp_path / "proc", 7, tmp_path / "cg") == {}


def looks(*, periods: tuple[float, float], throttled: tuple[float, float], wait: tuple[float, float]) -> Raw:
    def one(at: float, index: int) -> dict[str, object]:
        member = {
            "name": "llama-server",
            "title": "",
            "state": "R",
            "cpu_s": at,
            "threads": 8,
            "rss_bytes": 1 << 30,
            "waits_s": {"1": wait[index]},
            "cpus": 4,
        }
        return {
            "at": at,
            "host": {"cpus": 8, "idle": 100.0 + at, "total": 1000.0 + 10 * at, "running": 9},
            "families": {"7": [7]},
            "processes": {"7": member},
            "limits": {"7": {"quota_cores": 2.0, "periods": periods[index], "throttled": throttled[index]}},
        }

    body = {"pid": 7, "engine": "llama.cpp", "environment": {}, "looks": [one(0, 0), one(10, 1)]}
    return Raw(source="process", kind="looks", target="7", body=json.dumps(body).encode())


def test_waiting_throttling_and_quota_are_computed() -> None:
    found = values(process.read([looks(periods=(100, 200), throttled=(10, 60), wait=(1.0, 4.0))]))
    assert found["cpu_wait_ratio"] == pytest.approx(0.3)
    assert found["cpu_throttled_ratio"] == pytest.approx(0.5)
    assert found["cpu_quota_cores"] == 2.0
    assert found["engine_cpu_cores"] == pytest.approx(1.0)
    assert found["host_cpu_util_ratio"] == pytest.approx(0.9)
    assert found["process_rss_gib"] == 1.0
    assert "frontend_cpu_cores" not in found


def test_a_counter_that_ran_backwards_says_nothing() -> None:
    found = values(process.read([looks(periods=(200, 100), throttled=(0, 0), wait=(4.0, 1.0))]))
    assert "cpu_throttled_ratio" not in found
    assert "cpu_wait_ratio" not in found


def test_an_environment_that_may_not_be_read_is_a_gap() -> None:
    raw = replace(looks(periods=(1, 2), throttled=(0, 0), wait=(0, 0)), meta={"denied": "environment"})
    (gap,) = process.read([raw]).gaps
    assert gap.how == "sudo llmedic diagnose --pid 7"


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(["at", "host", "families", "processes", "limits", "environment", "engine", "pid"]), anything)
def test_one_wrong_part_of_a_record_is_a_gap_and_never_raises(part: str, value: object) -> None:
    record = json.loads(looks(periods=(1, 2), throttled=(0, 0), wait=(0, 0)).body)
    holder = record if part in record else record["looks"][-1]
    holder[part] = value
    evidence = process.read([Raw(source="process", kind="looks", target="7", body=json.dumps(record).encode())])
    assert evidence.gaps or evidence.observations


@given(
    st.one_of(
        st.binary(max_size=100),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["pid", "looks", "at", "host", "families", "processes", "7"]), inner, max_size=5
                )
            ),
        ).map(lambda value: json.dumps(value).encode()),
    )
)
@example(b"[" * 100_000)
def test_a_damaged_record_is_a_gap_and_never_raises(body: bytes) -> None:
    evidence = process.read([Raw(source="process", kind="looks", target="7", body=body)])
    assert evidence.gaps or evidence.observations
