"""What a ledger is asked with: words that name nothing, logs whose settings are no settings, names with secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmedic.app import ledger
from llmedic.app.request import LedgerRequest
from llmedic.errors import CallerError, UsageError
from llmedic.report.ledger import html, json, markdown, terminal


@pytest.mark.parametrize("word", ["./" + "a" * 5000, "~nobody-of-this-name/x", "a\0b"])
def test_a_word_that_no_file_can_have_as_its_name_is_no_model(word: str) -> None:
    with pytest.raises(UsageError, match="not in the catalogue"):
        ledger.run(LedgerRequest(model=word, gpu="H100"))


LOG = (Path(__file__).parents[1] / "data" / "ledger" / "logs" / "vllm-0.11.log").read_text()


def log(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    """The start-up log of a server, changed."""
    text = LOG
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "engine.log"
    path.write_text(text)
    return path


def test_the_password_and_the_token_in_a_models_address_are_not_shown(tmp_path: Path) -> None:
    address = "https://user:p4ssw0rd@hub.local/Qwen3-0.6B?token=s3cr3t"
    said = [
        ledger.run(LedgerRequest(log=log(tmp_path, ("Qwen/Qwen3-0.6B", address)), gpu="H100")),
        ledger.run(LedgerRequest(model="https://user:p4ssw0rd@hub.local/Qwen3-8B", gpu="H100")),
    ]
    for report in said:
        assert "<redacted>" in report.model_name
        for shown in (json.render(report), html.render(report), markdown.render(report), terminal.render(report)):
            assert "p4ssw0rd" not in shown
            assert "s3cr3t" not in shown


NONSENSE = [
    ("max_seq_len=16000", "max_seq_len=x", "max_model_len"),
    ("tensor_parallel_size=1", "tensor_parallel_size=-1", "tensor_parallel_size"),
    ("'block_size': 128", "'block_size': 'x'", "block_size"),
    ("kv_cache_dtype=auto", "kv_cache_dtype=nosuch", "kv_cache_dtype"),
]


@pytest.mark.parametrize(("printed", "damaged", "name"), NONSENSE)
def test_a_setting_of_the_log_that_makes_no_sense_is_a_gap(
    tmp_path: Path, printed: str, damaged: str, name: str
) -> None:
    path = log(tmp_path, ("'max_model_len': 16000, ", ""), (printed, damaged))
    report = ledger.run(LedgerRequest(log=path, gpu="H100"))

    (gap,) = [gap for gap in report.ledger.gaps if gap.what == name]
    assert "makes no sense" in gap.why
    assert report.ledger.pool is not None
    assert "日志" in json.render(report, lang="zh")


def test_a_typed_setting_that_makes_no_sense_is_refused_beside_a_log(tmp_path: Path) -> None:
    path = log(tmp_path, ("max_seq_len=16000", "max_seq_len=x"))
    with pytest.raises(CallerError, match="max_model_len"):
        ledger.run(LedgerRequest(log=path, gpu="H100", flags=("--max-model-len", "many")))


def test_a_name_and_a_release_without_end_are_cut(tmp_path: Path) -> None:
    path = log(tmp_path, ("Qwen/Qwen3-0.6B", "Qwen/" + "9" * 400), ("0.11.0", "0.11." + "9" * 400))
    report = ledger.run(LedgerRequest(log=path, gpu="H100"))
    assert len(report.model_name) == 200
    assert len(report.ledger.version) < 100
    assert "9" * 200 not in json.render(report)
