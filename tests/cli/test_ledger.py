"""`llmedic ledger` from end to end: what is typed, what is shown, what the exit code says."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests import schema
from tests.report.ledger.conftest import DOES_NOT, FITS

from llmedic.analysis.ledger.vllm import solve
from llmedic.app import ledger as app
from llmedic.app.request import LedgerRequest
from llmedic.cli import main
from llmedic.cli.commands import ledger
from llmedic.model.ledger import LedgerReport, Problem, Starts
from llmedic.model.verdict import Severity

Asked = Callable[..., LedgerRequest]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What the use case is asked for by a command line."""

    def ask(*words: str) -> LedgerRequest:
        requests: list[LedgerRequest] = []

        def run(request: LedgerRequest) -> LedgerReport:
            requests.append(request)
            return FITS

        monkeypatch.setattr(app, "run", run)
        assert main.main(["ledger", *words]) == 0
        return requests[0]

    return ask


def test_what_is_typed_is_what_is_asked(asked: Asked) -> None:
    request = asked(
        "Qwen3-32B", "--gpu", "8x H200", "--gpus", "4", "--engine-version", "0.11.0", "--max-model-len", "16000",
        "--context", "16k", "--concurrency", "32", "--plan-context", "32K", "--solve", "gpu", "--solve", "max-num-seqs",
        "--available", "35.34GiB", "--lang", "zh", "--enforce-eager",
    )  # fmt: skip

    assert request == LedgerRequest(
        model="Qwen3-32B",
        gpu="8x H200",
        count=4,
        engine="vllm",
        version="0.11.0",
        flags=("--max-model-len", "16000", "--enforce-eager"),
        available_bytes=round(35.34 * 2**30),
        available_slack_bytes=0.005 * 2**30,
        context_tokens=16_000,
        concurrency=32,
        plan_context=32_768,
        solve=("gpu", "max-num-seqs"),
        lang="zh",
    )


def test_parallel_sizes_are_flags_of_the_engine(asked: Asked) -> None:
    assert asked("Q", "--tp", "2", "--pp", "2").flags == (
        "--tensor-parallel-size",
        "2",
        "--pipeline-parallel-size",
        "2",
    )
    assert asked("Q", "--engine", "sglang", "--tp", "2").flags == ("--tp-size", "2")


@pytest.mark.parametrize(
    ("words", "engine"),
    [
        ("Q", "vllm"),
        ("m.gguf", "llama.cpp"),
        ("Q --engine tgi", "tgi"),
        ("--args sglang", "sglang"),
        ("--args --port=1", ""),
        ("--log - Q", ""),
    ],
)
def test_the_engine(asked: Asked, words: str, engine: str) -> None:
    assert asked(*words.split()).engine == engine


@pytest.mark.parametrize(
    ("args", "engine"),
    [
        ("python -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2 --mem-fraction-static 0.6", "sglang"),
        ("text-generation-launcher --model-id Qwen/Qwen3-32B --num-shard 2", "tgi"),
        ("llama-server -hf Qwen/Qwen3-32B -ngl 99", "llama.cpp"),
        ("ollama run Qwen3-32B", "ollama"),
        ("vllm serve Qwen/Qwen3-32B", "vllm"),
    ],
)
def test_a_command_line_is_computed_as_its_own_engine(
    capsys: pytest.CaptureFixture[str], args: str, engine: str
) -> None:
    main.main(["ledger", "Qwen3-32B", "--args", args, "--gpu", "L40S", "--format", "json"])

    assert json.loads(capsys.readouterr().out)["engine"] == engine


@pytest.mark.parametrize(
    ("words", "used"),
    [
        ("--engine sglang --tp 2", {"--mem-fraction-static default", "--tp-size given", "--kv-cache-dtype default"}),
        ("--engine sglang --mem-fraction-static 0.6", {"--mem-fraction-static given", "--context-length default"}),
        ("--engine llama.cpp -ctk q8_0", {"--cache-type-k given", "--cache-type-v default", "--ctx-size default"}),
        ("--engine tgi --num-shard 2", {"--num-shard given", "--max-batch-prefill-tokens default"}),
    ],
)
def test_the_settings_of_every_engine_are_shown(capsys: pytest.CaptureFixture[str], words: str, used: set[str]) -> None:
    main.main(["ledger", "Qwen3-8B", "--gpu", "L40S", *words.split(), "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    assert used <= {f"{one['flag']} {one['origin']}" for one in document["settings"]}
    assert all(one["value"] for one in document["settings"])
    assert "no release was given: computed for a current one" in document["notes"]


def with_problem(starts: Starts, *severities: Severity) -> LedgerReport:
    problems = tuple(Problem(severity=one, text="so it is") for one in severities)
    return dataclasses.replace(FITS, ledger=dataclasses.replace(FITS.ledger, starts=starts, problems=problems))


@pytest.mark.parametrize(
    ("report", "fail_on", "code"),
    [
        (with_problem("yes"), "info", 0),
        (with_problem("yes", "info"), "critical", 0),
        (with_problem("yes", "info"), "info", 1),
        (with_problem("yes", "critical"), "critical", 1),
        (with_problem("no"), "critical", 1),
        (with_problem("no"), "never", 0),
        (with_problem("perhaps"), "critical", 0),
        (with_problem("perhaps"), "warning", 1),
        (with_problem("perhaps", "critical"), "never", 0),
        (with_problem("unknown"), "critical", 3),
        (with_problem("unknown"), "never", 3),
        (with_problem("unknown", "critical"), "critical", 1),
    ],
)
def test_exit_codes(report: LedgerReport, fail_on: str, code: int) -> None:
    assert ledger.exit_code(report, fail_on) == code


@pytest.mark.parametrize(
    ("style", "start"),
    [
        ("terminal", "LLMedic ledger: "),
        ("json", '{\n  "schema": "llmedic.ledger/1"'),
        ("markdown", "# LLMedic ledger: "),
        ("html", "<!doctype html>"),
    ],
)
def test_every_format_goes_alone_to_standard_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, style: str, start: str
) -> None:
    monkeypatch.setattr(app, "run", lambda request: DOES_NOT)

    assert main.main(["ledger", "Q", "--format", style, "--lang", "en"]) == 1

    out, err = capsys.readouterr()
    assert out.startswith(start)
    assert err == ""


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("", "no MODEL", "--log FILE"),
        ("Q --solve gpu", "--solve needs a load", "--concurrency N --context TOKENS"),
        ("Q --solve gpu --context 8k", "--solve needs a load", "--concurrency N --context TOKENS"),
        ("Q --solve speed", "'speed' is not one of", "llmedic ledger --help"),
        ("Q --plan-context 5000", "--plan-context needs the length of today", "--context TOKENS"),
        ("Q --max-modellen 3", "no such flag: --max-modellen", "did you mean --max-model-len?"),
        ("Q --tp 0", "0 is not in the range", "llmedic ledger --help"),
        ("Q --available lots", "'lots' is not a size", "llmedic ledger --help"),
        ("Q --engine llama.cpp --tp 2", "llama.cpp has no flag for tensor parallel size", ""),
        ("Q --tp 2 --tensor-parallel-size 4", "--tensor-parallel-size: this is given twice", "or our own option"),
        ("Q --tp 2 -tp=4", "-tp=4: this is given twice", "or our own option"),
        ("Q --engine-version banana", "'banana' is not a release", "llmedic ledger --help"),
        ("Q --engine vllm --args sglang.launch_server", "--args starts sglang, not vllm", "leave --engine out"),
        ("Q R", "unexpected extra argument", "llmedic ledger --help"),
        ("--log nowhere.log", "'nowhere.log' does not exist", "start-up output went to"),
        ("Qwen3-8B --gpu H100 --engine tgi --num-shard banana", "'banana' is not a number", "give a number"),
        ("Qwen3-8B --gpu 24", "24: not an accelerator", "24GiB"),
        ("Q --engine sglang --max-model-len 4", "no such flag: --max-model-len", "sglang calls it --context-length"),
        ("Q --engine llama.cpp --max-model-len 4", "no such flag: --max-model-len", "llama.cpp calls it --ctx-size"),
        ("Q --context-length 4", "no such flag: --context-length", "vllm calls it --max-model-len"),
        ("Q --mem-fraction-static 0.8", "no such flag", "it is a flag of sglang: add --engine sglang"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    capsys: pytest.CaptureFixture[str], words: str, message: str, hint: str
) -> None:
    assert main.main(["ledger", *words.split()]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert message in err.splitlines()[0]
    assert hint in "".join(err.splitlines()[1:])


def test_what_can_be_solved_for_is_what_the_solver_takes() -> None:
    assert ledger.GOALS == solve.GOALS


def test_a_card_that_is_large_enough(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.main(["ledger", "Qwen3-8B", "--gpu", "H100", "--max-model-len", "16000", "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    assert (code, document["starts"]) == (0, "yes")
    assert document["cache"]["max_model_len"] == 16_000
    assert document["cache"]["bytes_per_token"] == 2 * 8 * 128 * 2 * 36
    assert document["pool"]["bytes"]["low"] > 0


def test_a_card_that_is_too_small(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.main(["ledger", "Qwen3-32B", "--gpu", "24GiB", "--lang", "en"])

    out = capsys.readouterr().out
    assert code == 1
    assert out.startswith("LLMedic ledger: it does not start")
    assert "!" in out


def test_a_printed_size_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    """36 layers x 8 heads x 128 x 2 (keys and values) x 2 bytes = 147,456 bytes per token."""
    main.main(["ledger", "Qwen3-8B", "--available", "1440MiB", "--max-model-len", "1024", "--format", "json"])

    cache = json.loads(capsys.readouterr().out)["cache"]
    assert cache["blocks"] == {"low": 640, "likely": 640, "high": 640}
    assert cache["concurrency"]["likely"] == 10


@pytest.mark.parametrize("words", ["nonesuch-9B --gpu H100", "Qwen3-8B --gpu H1000X"])
def test_a_name_that_nobody_knows_is_one_line(capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert main.main(["ledger", *words.split()]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "hint: " in err


REAL = (
    "Qwen3-8B --gpu H100 --context 300 --plan-context 5000 --concurrency 128",
    "Qwen3-32B --gpu 24GiB",
    "Qwen3-32B --gpu H100 --concurrency 32 --context 8192 --solve gpu --solve max-num-seqs --solve quantization",
    "Qwen3-32B",
    "gpt-oss-20b --available 35.34GiB",
    "DeepSeek-R1 --gpu 8xH200 --tp 8 --engine sglang",
    "Llama-3.1-8B --gpu A10 --engine tgi",
    "gpt-oss-20b --gpu 24GiB --engine llama.cpp -c 65536 -np 4",
)
"""A command line for every engine and every part of a report."""


@pytest.mark.parametrize("words", REAL)
def test_every_real_report_keeps_its_promises(capsys: pytest.CaptureFixture[str], words: str) -> None:
    promised = schema.load("ledger-1")

    codes = {main.main(["ledger", *words.split(), "--format", "json"])}
    document = json.loads(capsys.readouterr().out)
    codes.add(main.main(["ledger", *words.split(), "--lang", "zh"]))
    report = capsys.readouterr().out

    assert schema.problems(document, promised, promised) == []
    assert len(codes) == 1
    assert max(map(cell_len, report.splitlines())) <= 80


@pytest.mark.parametrize("words", REAL)
def test_no_english_sentence_is_left_in_a_chinese_report(capsys: pytest.CaptureFixture[str], words: str) -> None:
    main.main(["ledger", *words.split(), "--lang", "zh"])

    report = capsys.readouterr().out
    ours = re.sub(r"--[\w-]+|llmedic .*|NVIDIA .*|flash attention|mem-fraction-static", "", report)
    assert re.findall(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", ours) == []


def test_a_cell_of_llama_cpp_is_one_token_and_its_driver_is_no_torch(capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["ledger", "Qwen3-8B", "--gpu", "L40S", "--engine", "llama.cpp", "--lang", "en"])

    out = capsys.readouterr().out
    assert "40,960, one token and 144 KiB each" in out
    assert "driver and libraries" in out
    assert "torch" not in out


def test_a_directory_without_a_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main.main(["ledger", str(tmp_path), "--gpu", "H100"]) == 2
    assert "error: " in capsys.readouterr().err


def test_a_model_of_an_unknown_kind_gets_no_confident_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = {
        "model_type": "frob", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(shape))
    code = main.main(["ledger", str(tmp_path / "config.json"), "--gpu", "H100", "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    assert code == 3
    assert (document["starts"], document["cache"]) == ("unknown", None)
    assert any("cache" in gap["what"] for gap in document["gaps"])


def test_more_cards_than_any_server_has_are_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["ledger", "Qwen3-8B", "--gpu", "H100", "--gpus", "1000000000"]) == 2
    assert "1000000000 is not in the range 1<=x<=4096" in capsys.readouterr().err
    assert main.main(["ledger", "Qwen3-8B", "--gpu", "1000000x H100"]) == 2
    assert capsys.readouterr().err.startswith("error: 1000000x H100: not an accelerator")
