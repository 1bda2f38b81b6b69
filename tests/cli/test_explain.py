"""`llmedic explain` finds every id, in both languages, and suggests the nearest for any other."""

from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

from llmedic.cli import main
from llmedic.report import entry


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("entry_id", ["qps-surge", "green-health-dead-engine", "ttft_s", "queue-grows", "with-bf16"])
def test_an_entry_is_shown(capsys: pytest.CaptureFixture[str], entry_id: str, lang: str) -> None:
    assert main.main(["explain", entry_id, "--lang", lang]) == 0

    out = capsys.readouterr().out
    assert f"  {entry_id} (" in out
    assert any("\u4e00" <= letter <= "\u9fff" for letter in out) == (lang == "zh")


def test_a_cause_is_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["explain", "kv-pool-exhausted-preemption", "--lang", "en"])

    out = capsys.readouterr().out
    for heading in ("What it is", "What decides it", "Remedy", "The one change", "How to check it", "Brings about",
                    "May be brought about by\n  qps-surge"):  # fmt: skip
        assert heading in out


def test_every_id_is_found_in_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", "--format", "json", "--lang", "en"]) == 0

    listed = json.loads(capsys.readouterr().out)
    assert {name for kind in listed.values() for name in kind} == set(entry.known())
    assert list(listed) == ["cause", "pitfall", "symptom", "condition", "observation"]


def test_the_list_is_readable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", "--lang", "en"]) == 0

    out = capsys.readouterr().out
    assert "cause (92)" in out
    assert "pitfall (10)" in out


def test_json_has_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["explain", "engine-core-stalled", "--format", "json", "--lang", "en"])

    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "cause"
    assert found["what"].startswith("The scheduler process is frozen")
    assert "overload-deep-queue" in found["explains"]


@pytest.mark.parametrize("spelled", ["TTFT-S", "ttft-s", "Queue-Grows".lower()])
def test_hyphens_and_case_are_forgiven(capsys: pytest.CaptureFixture[str], spelled: str) -> None:
    assert main.main(["explain", spelled, "--lang", "en"]) == 0


def test_an_unknown_id_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", "kv-pool-exhausted"]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(
        "error: there is no entry 'kv-pool-exhausted'\nhint: did you mean kv-pool-exhausted-preemption"
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_entry_fits_the_terminal(lang: str) -> None:
    language = "zh" if lang == "zh" else "en"
    for entry_id in entry.known():
        found = entry.find(entry_id, "zh" if lang == "zh" else "en")
        assert found is not None
        commands = {word for section in found.sections if section.is_code for word in section.words}
        for line in entry.render(found, "zh" if language == "zh" else "en").splitlines():
            assert cell_len(line) <= entry.WIDTH or line.strip() in commands
