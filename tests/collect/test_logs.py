"""The log source end to end: files in, evidence out."""

from __future__ import annotations

import gzip
import io
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmedic.collect import logs
from llmedic.errors import InputError
from llmedic.knowledge.logs import PHASES
from llmedic.model.evidence import Evidence
from llmedic.model.observation import Observation, Series
from llmedic.model.raw import Raw

STATS = (
    "(APIServer pid=7) INFO 11-30 12:00:{second:02} [loggers.py:118] Engine {rank:03}: Avg"
    " prompt throughput: 16.5 tokens/s,"
    " Avg generation throughput: {output} tokens/s, Running: {running} reqs, Waiting: 117 reqs,"
    " GPU KV cache usage: 98.6%, Prefix cache hit rate: 70.0%"
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 0 has a total capacity of 44.35 GiB"
    " of which 53.38 MiB is free. Process 3663367 has 44.28 GiB memory in use. Of the allocated memory 37.38 GiB is"
    " allocated by PyTorch, and 275.68 MiB is reserved by PyTorch but unallocated."
)


def ids(evidence: Evidence, *, echoes: bool = True) -> list[str]:
    return [event.id for event in evidence.events if echoes or not event.is_echo]


def values(evidence: Evidence) -> dict[tuple[str, str], object]:
    return {(item.name, item.instance): item.value for item in evidence.observations}


def observation(evidence: Evidence, name: str) -> Observation:
    return next(item for item in evidence.observations if item.name == name and not item.instance)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "INFO 11-30 12:00:00 [gpu_model_runner.py:1] Starting to load model meta-llama/Llama-3.1-8B...",
            "cuda-oom-at-load",
        ),
        ("Model loading took 14.9 GiB and 3.1 seconds", "cuda-oom-at-profile"),
        (
            "Encoder cache will be initialized with a budget of 16384 tokens, and profiled with 1 image items",
            "cuda-oom-at-profile-mm",
        ),
        ("GPU KV cache size: 142,640 tokens", "cuda-oom-at-after-kv"),
        ('  File "/vllm/worker.py", line 9, in _allocate_kv_cache', "cuda-oom-at-kv"),
        ("Capturing CUDA graph shapes:  12%", "cuda-oom-at-capture"),
        ("INFO:     Application startup complete.", "cuda-oom-at-serve"),
        ('  File "/vllm/worker.py", line 9, in load_model', "cuda-oom-at-load"),
        ('  File "/vllm/worker.py", line 9, in determine_available_memory', "cuda-oom-at-profile"),
        ('  File "/vllm/worker.py", line 9, in _dummy_sampler_run', "cuda-oom-at-sampler"),
        ('  File "/vllm/worker.py", line 9, in execute_model', "cuda-oom-at-serve"),
        ("a line nobody knows", "cuda-oom"),
    ],
)
def test_the_phase_decides_what_an_out_of_memory_error_is(before: str, expected: str) -> None:
    event = logs.read_text(f"{before}\n{OOM}").events[-1]
    assert event.id == expected
    assert event.fields.get("phase", "") in ("", *PHASES)


def test_a_traceback_says_more_of_the_phase_than_the_last_marker() -> None:
    text = "\n".join(
        [
            "INFO:     Application startup complete.",
            "Traceback (most recent call last):",
            '  File "/vllm/worker.py", line 9, in profile_run',
            '  File "/vllm/worker.py", line 9, in execute_model',
            OOM,
        ]
    )
    assert "cuda-oom-at-profile" in ids(logs.read_text(text))


def test_the_frames_of_an_earlier_traceback_are_forgotten() -> None:
    first = 'Traceback (most recent call last):\n  File "/a.py", line 9, in load_model\nKeyError: 1\n'
    second = "INFO:     Application startup complete.\nTraceback (most recent call last):\n"
    assert "cuda-oom-at-serve" in ids(logs.read_text(first + second + OOM))


def test_the_numbers_of_an_out_of_memory_error_are_read() -> None:
    event = logs.read_text(OOM).events[0]
    assert event.fields["tried_gib"] == pytest.approx(112 / 1024)
    assert event.fields["total_gib"] == 44.35
    assert event.fields["process_gib"] == 44.28
    assert event.fields["torch_gib"] == 37.38


def test_memory_of_another_process_is_told_apart() -> None:
    text = OOM.replace(
        "Process 3663367 has 44.28 GiB", "Process 12 has 30.00 GiB memory in use. Process 13 has 14.00 GiB"
    )
    text = text.replace("37.38 GiB is", "13.10 GiB is")
    event = logs.read_text(f"Starting to load model x\n{text}").events[-1]
    assert event.id == "cuda-oom-at-held"
    assert event.fields["others_gib"] == 30.0


def test_a_failed_start_tells_the_phase_afterwards() -> None:
    evidence = logs.read_text(f"{OOM}\nError: ShardCannotStart")
    assert ids(evidence, echoes=False) == ["cuda-oom-at-load"]
    assert ids(evidence)[-1] == "tgi-shard-cannot-start"


@pytest.mark.parametrize(
    "hint",
    [
        (
            "CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of"
            " memory, consider enforcing eager mode."
        ),
        "If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization`",
        "note: torch.OutOfMemoryError is raised when memory runs out",
    ],
)
def test_a_hint_about_memory_is_no_error(hint: str) -> None:
    assert not [event for event in logs.read_text(hint).events if event.level in ("error", "fatal")]


def test_an_echo_is_marked_when_the_cause_is_there_and_speaks_alone_otherwise() -> None:
    echo = "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error."
    alone = logs.read_text(echo).events
    both = logs.read_text(f"{echo}\nError while creating shared memory segment /dev/shm/nccl-a (size 96)").events
    assert [event.is_echo for event in alone] == [False]
    assert [(event.id, event.is_echo) for event in both] == [("nccl-shm-segment", False), ("nccl-system-error", True)]


def test_the_gap_of_free_memory_tells_who_holds_it() -> None:
    line = (
        "Free memory on device cuda:0 ({free}/22.05 GiB) on startup is less than desired GPU memory"
        " utilization (0.9, 19.84 GiB)"
    )
    assert ids(logs.read_text(line.format(free="19.77"))) == ["vllm-free-memory-low-at-small-gap"]
    assert ids(logs.read_text(line.format(free="9.77"))) == ["vllm-free-memory-low-at-held"]


@pytest.mark.parametrize(("code", "expected"), [(79, "xid-at-79"), (31, "xid-at-31"), (999, "xid")])
def test_an_xid_has_its_own_meaning(code: int, expected: str) -> None:
    evidence = logs.read_text(f"[  123.456789] NVRM: Xid (PCI:0000:41:00): {code}, pid=1, x")
    assert expected in ids(evidence)
    assert observation(evidence, "xid_errors").value == code


def test_statistics_become_series_of_the_service_and_of_each_rank() -> None:
    lines = [
        STATS.format(second=second, rank=rank, output=100.0 * (rank + 1), running=10 + rank)
        for second in (0, 10, 20)
        for rank in (0, 1)
    ]
    evidence = logs.read_text("\n".join(lines))
    running = observation(evidence, "requests_running").value
    assert isinstance(running, Series)
    assert running.points == ((0.0, 21.0), (10.0, 21.0), (20.0, 21.0))
    output = values(evidence)[("output_tokens_per_s", "#1")]
    assert isinstance(output, Series)
    assert {value for _, value in output.points} == {200.0}
    usage = observation(evidence, "kv_cache_usage_ratio")
    assert usage.unit == "0..1"
    assert usage.window_s == 20.0
    assert evidence.deployment.engine == "vllm"


def test_old_and_new_statistics_mean_the_same() -> None:
    old = (
        "INFO 04-26 18:52:21 metrics.py:345] Avg prompt throughput: 1.5 tokens/s, Avg"
        " generation throughput: 2.5 tokens/s,"
        " Running: 8 reqs, Swapped: 1 reqs, Pending: 3 reqs, GPU KV cache usage: 50.0%, CPU KV cache usage: 10.0%."
    )
    new = (
        "Engine 000: Avg prompt throughput: 1.5 tokens/s, Avg generation throughput: 2.5 tokens/s, Running: 8 reqs,"
        " Waiting: 3 reqs, Deferred: 2 reqs, Preemptions: 4, GPU KV cache usage: 50.0%, Prefix cache hit rate: 20.0%,"
        " External prefix cache hit rate: 1.0%, MM cache hit rate: 2.0%"
    )
    before, after = values(logs.read_text(old)), values(logs.read_text(new))
    for name in ("requests_running", "requests_waiting", "kv_cache_usage_ratio", "output_tokens_per_s"):
        assert before[(name, "")] == after[(name, "")]
    assert before[("requests_swapped", "")] == 1
    assert after[("preemptions_per_min", "")] == 24
    assert after[("requests_waiting_deferred", "")] == 2


def test_sglang_and_llama_cpp_lines_are_measured() -> None:
    sglang = (
        "[2025-11-30 12:00:00 TP0] Decode batch, #running-req: 212, #token: 871240, token"
        " usage: 0.91, accept len: 2.10,"
        " accept rate: 0.55, cuda graph: True, gen throughput (token/s): 9650.12, #queue-req: 1830, "
    )
    found = values(logs.read_text(sglang))
    assert found[("requests_waiting", "")] == 1830
    assert found[("spec_acceptance_ratio", "")] == 0.55
    llama = (
        "print_timings: prompt eval time =    9327.12 ms /   144 tokens (   64.77 ms per token,"
        "    15.44 tokens per second)\n"
        "print_timings:        eval time =     726.26 ms /    17 runs   (   42.72 ms per token,"
        "    23.41 tokens per second)"
    )
    found = values(logs.read_text(llama))
    assert found[("prefill_tokens_per_s", "")] == 15.44
    assert found[("tpot_s", "")] == pytest.approx(0.04272)


def test_settings_and_versions_are_read() -> None:
    text = "\n".join(
        [
            "INFO 11-30 12:00:00 [api_server.py:1] vLLM API server version 0.11.2",
            (
                "non-default args: {'model': 'a/b', 'max_num_seqs': 8, 'enable_prefix_caching':"
                " False, 'api_key': ['sk-1']}"
            ),
            "Using max model len 8192",
            "Casting torch.bfloat16 to torch.float16.",
        ]
    )
    deployment = logs.read_text(text).deployment
    flags = {flag.name: flag.value for flag in deployment.flags}
    assert deployment.version == "0.11.2"
    assert flags == {
        "model": "a/b",
        "max_num_seqs": 8,
        "enable_prefix_caching": False,
        "max_model_len": 8192,
        "dtype": "float16",
    }


def test_a_namespace_and_server_arguments_are_read() -> None:
    old = logs.read_text("INFO api_server.py:495] args: Namespace(host=None, port=8000, model='a/b', max_num_seqs=256)")
    new = logs.read_text("server_args=ServerArgs(model_path='a/b', tp_size=2, disable_radix_cache=True, api_key='sk')")
    assert ("max_num_seqs", 256) in [(flag.name, flag.value) for flag in old.deployment.flags]
    found = {flag.name: flag.value for flag in new.deployment.flags}
    assert found == {"model": "a/b", "tensor_parallel_size": 2, "enable_prefix_caching": False}


@pytest.mark.parametrize(
    "line",
    [
        (
            '{"log":"ValueError: No available memory for the cache'
            ' blocks.\\n","stream":"stderr","time":"2025-11-30T12:00:00.5Z"}'
        ),
        (
            '{"timestamp":"2025-11-30T12:00:00.5Z","level":"ERROR","fields":{"message":"No'
            ' available memory for the cache blocks"}}'
        ),
        "2025-11-30T12:00:00.500000000Z stderr F ERROR No available memory for the cache blocks",
        "2025-11-30T14:00:00.5+02:00 No available memory for the cache blocks",
        "\x1b[31m2025-11-30 12:00:00,5 No available memory for the cache blocks\x1b[0m",
    ],
)
def test_wrappings_are_taken_off(line: str) -> None:
    (event,) = logs.read_text(line).events
    assert event.id == "vllm-kv-none"
    assert event.first_at == 1764504000.5
    assert "\x1b" not in event.text


@pytest.mark.parametrize(
    ("line", "process"),
    [
        (
            "(EngineCore_DP0 pid=123) ERROR 11-30 12:00:00 [core.py:1] No available memory for the cache blocks",
            "EngineCore_DP0 pid=123",
        ),
        ("[2025-11-30 12:00:00 DP1 TP3] No available memory for the cache blocks", "DP1 TP3"),
        ("[client] No available memory for the cache blocks", "client"),
        ("vllm-1  | No available memory for the cache blocks", "vllm-1"),
        ("No available memory for the cache blocks", ""),
    ],
)
def test_the_process_is_read(line: str, process: str) -> None:
    assert logs.read_text(line).events[0].process == process


def test_an_error_nobody_knows_is_kept_and_a_known_one_is_not_doubled() -> None:
    assert ids(logs.read_text("foo.bar.StrangeError: something new")) == ["python-error"]
    assert "python-error" not in ids(logs.read_text("ValueError: No available memory for the cache blocks"))


# --- files


def capture(*paths: Path) -> tuple[Raw, ...]:
    return logs.capture(paths)


def test_plain_compressed_and_piped_logs_are_the_same(tmp_path: Path) -> None:
    body = f"{STATS.format(second=0, rank=0, output=1, running=2)}\nnoise\n{OOM}\n".encode()
    plain, packed = tmp_path / "a.log", tmp_path / "b.log.gz"
    plain.write_bytes(body)
    packed.write_bytes(gzip.compress(body))
    (one,), (two,) = capture(plain), capture(packed)
    (three,) = logs.capture(["-"], stdin=io.BytesIO(body))
    assert one.body == two.body == three.body
    assert b"noise" not in one.body
    assert ids(logs.read([one])) == ids(logs.read_text(body.decode()))
    assert logs.read([one]).log_lines == 3


def test_a_directory_gives_its_logs(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("Failed to infer device type\n")
    (tmp_path / "server.log.1").write_text("Model is overloaded\n")
    (tmp_path / "weights.bin").write_bytes(b"\0" * 100)
    evidence = logs.read(capture(tmp_path))
    assert sorted(ids(evidence)) == ["tgi-overloaded", "vllm-device-type"]
    assert {event.source for event in evidence.events} == {"log:server.log", "log:server.log.1"}


def test_what_a_cut_compressed_log_still_holds_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.log.gz"
    lines = b"Failed to infer device type\n" + random.Random(1).randbytes(90_000).hex().encode()
    path.write_bytes(gzip.compress(lines)[:50_000])

    evidence = logs.read(capture(path))

    assert ids(evidence) == ["vllm-device-type"]
    assert [gap.why for gap in evidence.gaps] == ["the compressed file is damaged"]


@pytest.mark.parametrize(
    "body",
    [
        "Failed to infer device type\n".encode("utf-16-le"),
        b"\0" * 100_000 + b"Failed to infer device type\n",
        b"Gr\xf6\xdfe\n" + "first\nFailed to infer device type\n".encode("utf-16-be"),
    ],
    ids=["utf-16 without its mark", "zeros before it", "two encodings"],
)
def test_zeros_do_not_hide_a_line(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(body)
    assert ids(logs.read(capture(path))) == ["vllm-device-type"]


def test_a_file_that_only_lay_there_and_cannot_be_read_is_a_gap(tmp_path: Path) -> None:
    path = str(tmp_path / "gone.log")
    (gap,) = logs.read(logs.capture([path], found=frozenset({path}))).gaps
    assert "No such file" in gap.why


def test_odd_encodings_are_read(tmp_path: Path) -> None:
    latin, wide = tmp_path / "latin.log", tmp_path / "wide.log"
    latin.write_bytes("Größe: Failed to infer device type\n".encode("latin-1"))
    wide.write_bytes("Failed to infer device type\n".encode("utf-16"))
    for path in (latin, wide):
        assert ids(logs.read(capture(path))) == ["vllm-device-type"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02\x03" * 100, "binary"),
        (random.Random(1).randbytes(5000), "binary"),
        (b"\x1f\x8bbroken", "damaged"),
    ],
)
def test_what_is_no_log_is_a_gap(tmp_path: Path, body: bytes, why: str) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(body)
    (gap,) = logs.read(capture(path)).gaps
    assert why in gap.why
    assert gap.how


def test_a_missing_file_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.log: No such file") as caught:
        capture(tmp_path / "no.log")
    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_a_directory_without_logs_and_a_missing_pipe_are_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no log files"):
        capture(tmp_path)
    with pytest.raises(InputError, match="standard input"):
        logs.capture(["-"])


def test_a_repeated_line_is_counted_and_statistics_are_thinned(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    with path.open("w") as file:
        for index in range(20_000):
            file.write(STATS.format(second=0, rank=index % 2, output=index, running=index % 2) + "\n")
            if index % 10 == 0:
                file.write("ERROR Model is overloaded\n")
    (raw,) = capture(path)
    evidence = logs.read([raw])
    overloaded = next(event for event in evidence.events if event.id == "tgi-overloaded")
    assert overloaded.count == 2000
    assert len(raw.body) < 2_000_000
    series = values(evidence)[("requests_running", "#1")]
    assert isinstance(series, Series)
    assert {value for _, value in series.points} == {1.0}
    assert len(series.points) > 500


def test_a_line_without_end_is_cut_around_what_matters(tmp_path: Path) -> None:
    path = tmp_path / "progress.log"
    path.write_bytes(b"x" * 3_000_000 + b"Failed to infer device type" + b"y" * 3_000_000)
    (raw,) = capture(path)
    assert len(raw.body) < 20_000
    assert ids(logs.read([raw])) == ["vllm-device-type"]


def test_when_time_runs_out_the_rest_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("Failed to infer device type\n")
    evidence = logs.read(logs.capture([path], expired=lambda: True))
    assert ids(evidence) == ["vllm-device-type"]
    assert "time" in evidence.gaps[0].why


def test_a_damaged_record_still_reads(tmp_path: Path) -> None:
    raw = Raw(source="logs", kind="lines", target="x", body=b"Model is overloaded", meta={"dropped": "{", "lines": "x"})
    assert ids(logs.read([raw])) == ["tgi-overloaded"]
    assert ids(logs.read([replace(raw, meta={"dropped": "[1]"})])) == ["tgi-overloaded"]
    assert ids(logs.read([replace(raw, meta={"dropped": "[" * 100_000, "lines": "²"})])) == ["tgi-overloaded"]


@pytest.mark.parametrize("at", [-1e18, 1e13, 1e18, 1e300])
def test_a_log_of_an_impossible_time_still_reads(at: float) -> None:
    raw = Raw(source="logs", kind="lines", target="x", at=at, body=b"03-01 10:00:00 Model is overloaded")
    assert ids(logs.read([raw])) == ["tgi-overloaded"]


LITERAL_BYTES = st.sampled_from(
    [
        item.encode()
        for item in (
            "CUDA out of memory. Tried to allocate",
            "Free memory on device",
            "on startup is less than",
            "Avg prompt throughput: ",
            "non-default args",
            '", line ',
            "NVRM: Xid",
            "{",
            "}",
            '"log":',
            "\n",
        )
    ]
)


@settings(max_examples=150)
@given(st.lists(st.one_of(st.binary(max_size=40), LITERAL_BYTES), max_size=12))
def test_no_bytes_raise(parts: list[bytes]) -> None:
    raw = Raw(source="logs", kind="lines", target="x", body=b"".join(parts))
    evidence = logs.read([raw])
    assert evidence.log_lines >= 1


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    assert logs.read_text(text).log_lines == len(text.encode("utf-8", "replace").splitlines())


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["noise", OOM, "Model is overloaded", "Starting to load model x", ""]), max_size=30))
def test_a_digest_says_what_the_whole_log_says(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("log") / "x.log"
    path.write_text("".join(f"{line}\n" for line in [*lines, "end"]))
    digest, whole = logs.read(capture(path)), logs.read_text(path.read_text())
    assert [(event.id, event.count, event.is_echo) for event in digest.events] == [
        (event.id, event.count, event.is_echo) for event in whole.events
    ]


@pytest.mark.parametrize(("said", "count"), [("2", 2), ("1000000000", None)])
def test_devices_are_counted_as_far_as_a_machine_can_have_them(said: str, count: int | None) -> None:
    found = logs.read_text(f"ggml_cuda_init: found {said} CUDA devices:")
    assert found.deployment.hardware.count == count
