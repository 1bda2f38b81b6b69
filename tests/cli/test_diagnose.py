"""`llmedic diagnose` and `llmedic snapshot` from end to end: files in, report and exit code out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from llmedic.app import gather
from llmedic.app.request import Sources
from llmedic.cli import main
from llmedic.cli.commands import diagnose
from llmedic.model.verdict import Cause, Health, Severity, Verdict

OVERLOADED = """
engine: {name: vllm, version: 0.11.0}
launch: {args: [--max-num-seqs, "64"]}
observations:
  requests_running: [[0, 64], [5, 64], [10, 64]]
  requests_waiting: [[0, 100], [5, 110], [10, 120]]
  kv_cache_usage_ratio: 0.21
  preemptions_per_min: 0
symptoms: {seen: [queue-grows, ttft-high], when: [under-load]}
"""


LAYER = {"healthy": "none", "cannot-tell": "none"}


@pytest.fixture
def case(tmp_path: Path) -> str:
    path = tmp_path / "case.yaml"
    path.write_text(OVERLOADED, encoding="utf-8")
    return str(path)


def verdict(health: Health, *found: tuple[str, Severity]) -> Verdict:
    causes = (
        Cause(id=name, layer=LAYER.get(name, "capacity"), severity=severity, confidence=0.9, title=name, summary="")
        for name, severity in found
    )
    return Verdict(health=health, layers=(), causes=tuple(causes))


@pytest.mark.parametrize(
    ("judged", "fail_on", "code"),
    [
        (verdict("healthy", ("healthy", "info")), "info", 0),
        (verdict("degraded", ("a", "warning")), "critical", 0),
        (verdict("degraded", ("a", "warning")), "warning", 1),
        (verdict("degraded", ("a", "info"), ("b", "critical")), "critical", 1),
        (verdict("down", ("a", "critical")), "never", 0),
        (verdict("unknown"), "critical", 3),
        (verdict("unknown"), "never", 3),
        (verdict("unknown", ("a", "critical")), "critical", 1),
        (verdict("unknown", ("cannot-tell", "critical")), "info", 3),
        (verdict("degraded"), "critical", 1),
        (verdict("down"), "never", 0),
    ],
)
def test_exit_codes(judged: Verdict, fail_on: str, code: int) -> None:
    assert diagnose.exit_code(judged, fail_on) == code


def test_a_case_file_gets_a_verdict(capsys: pytest.CaptureFixture[str], case: str) -> None:
    code = main.main(["diagnose", "--case", case, "--lang", "en", "--fail-on", "warning"])

    out, err = capsys.readouterr()
    assert (code, err) == (1, "")
    assert out.startswith("LLMedic: degraded  (vllm 0.11.0)")
    assert "max-num-seqs-too-low" in out
    assert out.count("Change one thing") == 1


def test_chinese_and_markdown(capsys: pytest.CaptureFixture[str], case: str) -> None:
    main.main(["diagnose", "--case", case, "--lang", "zh", "--format", "markdown"])

    out = capsys.readouterr().out
    assert out.startswith("# LLMedic: 性能下降")
    assert "### 只改一处" in out


def test_json_goes_alone_to_standard_output(capsys: pytest.CaptureFixture[str], case: str) -> None:
    main.main(["diagnose", "--case", case, "--format", "json", "--verbose"])

    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "llmedic.verdict/1"
    assert document["causes"][0]["id"] == "max-num-seqs-too-low"
    assert document["causes"][0]["change"]["variable"].replace("-", "_").endswith("max_num_seqs")


def test_symptoms_alone_are_enough(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.main(["diagnose", "--symptom", "output-repeats", "--when", "with-fp16", "--not-when", "with-bf16"])

    assert code in (0, 1, 3)
    assert "Layers, top down" in capsys.readouterr().out


def test_a_log_is_read_from_a_pipe() -> None:
    line = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    command = [sys.executable, "-m", "llmedic", "diagnose", "--log", "-", "--format", "json"]

    done = subprocess.run(command, input=line, capture_output=True, check=False, timeout=60)

    assert done.stderr == b""
    assert json.loads(done.stdout)["health"] == "down"


def test_a_target_that_does_not_answer_is_a_gap_and_3(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.main(["diagnose", "http://127.0.0.1:9", "--window", "100ms", "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    assert code == 3
    assert document["health"] == "unknown"
    assert any("127.0.0.1:9" in gap["what"] and gap["how"] for gap in document["gaps"])


def test_watching_files_is_refused(capsys: pytest.CaptureFixture[str], case: str) -> None:
    assert main.main(["diagnose", "--case", case, "--watch", "1m"]) == 2
    assert "--watch needs a live target" in capsys.readouterr().err


def test_a_broken_case_file_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("observations: {ttft: 1}\n", encoding="utf-8")

    assert main.main(["diagnose", "--case", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert len(err.splitlines()) <= 2


def test_a_bundle_gives_the_same_verdict(capsys: pytest.CaptureFixture[str], case: str, tmp_path: Path) -> None:
    bundle = tmp_path / "incident.zip"
    live = main.main(["diagnose", "--case", case, "--format", "json"])
    expected = capsys.readouterr().out

    assert main.main(["snapshot", "--case", case, "-o", str(bundle)]) == 0
    out, err = capsys.readouterr()
    assert out == f"{bundle}\n"
    assert err.endswith(f"hint: llmedic diagnose {bundle}\n")
    assert zipfile.is_zipfile(bundle)
    assert main.main(["diagnose", str(bundle), "--format", "json"]) == live
    assert capsys.readouterr().out == expected


def test_a_snapshot_does_not_overwrite_and_says_so_before_it_waits(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bundle = tmp_path / "incident.zip"
    bundle.write_bytes(b"evidence of another night")

    assert main.main(["snapshot", "http://127.0.0.1:9", "--window", "1h", "-o", str(bundle)]) == 2
    assert capsys.readouterr().err.endswith("hint: give another name with -o FILE, or remove the old one first\n")
    assert bundle.read_bytes() == b"evidence of another night"


@pytest.mark.parametrize("command", ["diagnose", "snapshot"])
def test_nothing_named_is_wrong_usage(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main.main([command]) == 2
    assert capsys.readouterr().err.startswith("error: nothing to ")


@pytest.mark.parametrize("option", [["--baseline", "missing"], ["--save-baseline", "no/such/folder/x"]])
def test_a_baseline_that_cannot_be_is_said_before_the_window(
    capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    assert main.main(["diagnose", "http://127.0.0.1:9", "--window", "1h", *option]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_baseline_that_cannot_be_stored_does_not_cost_the_verdict(
    capsys: pytest.CaptureFixture[str], case: str, tmp_path: Path
) -> None:
    calm = tmp_path / "calm.yaml"
    calm.write_text("observations: {requests_running: 0, requests_waiting: 0}\n", encoding="utf-8")
    stored = str(tmp_path / "x.json")

    code = main.main(["diagnose", "--case", str(calm), "--format", "json", "--save-baseline", stored])

    out, err = capsys.readouterr()
    assert code == 3
    assert json.loads(out)["schema"] == "llmedic.verdict/1"
    assert err.startswith("error: no request finished")


def test_a_sick_window_is_no_baseline(capsys: pytest.CaptureFixture[str], case: str, tmp_path: Path) -> None:
    stored = tmp_path / "x.json"

    code = main.main(["diagnose", "--case", case, "--format", "json", "--save-baseline", str(stored)])

    out, err = capsys.readouterr()
    assert code == 2
    assert json.loads(out)["health"] == "degraded"
    assert "the window is not healthy" in err
    assert not stored.exists()


def test_a_watch_stores_no_baseline() -> None:
    assert main.main(["diagnose", "http://127.0.0.1:9", "--watch", "1m", "--save-baseline", "x"]) == 2


def test_a_folder_with_strangers_in_it_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "docker-compose.yaml").write_text("services: {}\n")
    (tmp_path / "other.zip").write_bytes(b"no zip")
    (tmp_path / "metrics.txt").write_text(
        "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"
    )
    (tmp_path / "engine.out").write_text("Failed to infer device type\n")
    (tmp_path / "loop.log").symlink_to("loop.log")
    os.mkfifo(tmp_path / "pipe.log")

    main.main(["diagnose", str(tmp_path), "--format", "json"])

    verdict = json.loads(capsys.readouterr().out)
    unseen = {gap["what"]: gap["why"] for gap in verdict["gaps"]}
    assert "unknown keys: services" in unseen["docker-compose.yaml"]
    assert "is not a bundle" in unseen["other.zip"]
    assert not {"pipe.log", "loop.log"} & set(unseen)
    assert "metrics: rates and percentiles of now" in unseen
    planned = gather.plan(Sources(targets=(str(tmp_path),)))
    assert [path.name for path in planned.metrics] == ["metrics.txt"]
    assert [Path(log).name for log in planned.logs] == ["engine.out"]


def test_a_folder_without_evidence_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main.main(["diagnose", str(tmp_path)]) == 2
    assert "no evidence in this folder" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--metrics", "--case"])
def test_a_file_without_end_is_refused(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main.main(["diagnose", option, "/dev/zero"]) == 2
    assert "/dev/zero: larger than 64 MiB" in capsys.readouterr().err
