"""The served model as a source of a diagnosis: named, found in a folder, and kept in a bundle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmedic.app import diagnose, gather
from llmedic.app.request import DiagnoseRequest, Sources
from llmedic.cli import main
from llmedic.errors import InputError
from llmedic.model.evidence import Symptoms
from llmedic.wire.access import ANONYMOUS

WRONG = Symptoms(seen=frozenset({"output-wrong"}))
METRICS = "# HELP vllm:num_requests_running n\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\n"


def model(folder: Path, eos: int = 2) -> Path:
    """A model whose config.json and generation_config.json name different ends, and one tensor."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 4, "eos_token_id": eos}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 7}))
    header = json.dumps({"w": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    return folder


def causes(sources: Sources) -> list[str]:
    found = diagnose.diagnose(DiagnoseRequest(sources=sources, window_s=0.1))
    return [cause.id for cause in found.verdict.causes]


def test_a_model_decides_what_symptoms_alone_do_not(tmp_path: Path) -> None:
    same = model(tmp_path / "same", eos=7)
    different = model(tmp_path / "different")
    assert "eos-token-mismatch" in causes(Sources(model=different, symptoms=WRONG))
    assert "eos-token-mismatch" not in causes(Sources(model=same, symptoms=WRONG))


def test_a_folder_with_a_model_is_a_target(tmp_path: Path) -> None:
    folder = model(tmp_path / "model")
    (folder / "page.prom").write_text(METRICS)
    (folder / "tokenizer.json").write_text("{}")
    found = diagnose.diagnose(DiagnoseRequest(sources=Sources(targets=(str(folder),))))
    assert found.evidence.deployment.model.name == "model"
    assert found.evidence.log_lines == 0
    assert found.evidence.deployment.model.tensors[0].bytes == 4
    assert found.evidence.observations


def test_a_named_model_counts_before_one_that_was_found(tmp_path: Path) -> None:
    there, named = model(tmp_path / "there"), model(tmp_path / "named")
    raws = gather.gather(Sources(targets=(str(there),), model=named), ANONYMOUS, window_s=0.1)
    assert {raw.target for raw in raws} == {"named"}


def test_a_found_model_that_is_broken_stops_nothing_and_a_named_one_does(tmp_path: Path) -> None:
    folder = model(tmp_path / "model")
    (folder / "config.json").write_text("<html>")
    (folder / "page.prom").write_text(METRICS)
    found = diagnose.diagnose(DiagnoseRequest(sources=Sources(targets=(str(folder),))))
    assert any("is a web page" in gap.why for gap in found.evidence.gaps)
    with pytest.raises(InputError, match="is a web page"):
        causes(Sources(model=folder))


def test_a_bundle_gives_the_same_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, kept = model(tmp_path / "model"), tmp_path / "kept.zip"
    given = ["--model", str(folder), "--symptom", "output-wrong"]
    code = main.main(["diagnose", *given, "--format", "json"])
    live = capsys.readouterr().out
    assert main.main(["snapshot", *given, "-o", str(kept)]) == 0
    capsys.readouterr()
    assert main.main(["diagnose", str(kept), "--format", "json"]) == code
    assert json.loads(capsys.readouterr().out) == json.loads(live)


def test_a_named_model_counts_before_the_one_in_a_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept.zip"
    assert main.main(["snapshot", "--model", str(model(tmp_path / "old")), "-o", str(kept)]) == 0
    capsys.readouterr()
    sources = Sources(targets=(str(kept),), model=model(tmp_path / "new"))
    found = diagnose.diagnose(DiagnoseRequest(sources=sources))
    assert found.evidence.deployment.model.name == "new"


@pytest.mark.parametrize("name", ["empty", "nowhere"])
def test_no_model_is_one_line(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main.main(["diagnose", "--model", str(tmp_path / name)]) == 2
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    assert name in shown
