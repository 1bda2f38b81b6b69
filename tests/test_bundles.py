"""Bundles recorded from a real vLLM under a real fault, diagnosed by the command that a user types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from llmedic.cli.commands.diagnose import command
from llmedic.cli.main import main

BUNDLES = Path(__file__).parent / "bundles"
CAUSES = {
    "frozen-core": "engine-core-stalled",
    "healthy": "healthy",
    "kv-preemption": "kv-pool-exhausted-preemption",
    "long-context-surge": "long-context-surge-cache-thrash",
    "old-incident": "healthy",
    "seq-cap": "max-num-seqs-too-low",
}


def diagnosed(name: str, *options: str) -> Any:
    result = CliRunner().invoke(command, [str(BUNDLES / f"{name}.zip"), "--format", "json", *options])
    return json.loads(result.stdout)


def test_every_bundle_is_judged_here() -> None:
    assert sorted(CAUSES) == sorted(path.stem for path in BUNDLES.glob("*.zip"))


@pytest.mark.parametrize(("name", "cause"), CAUSES.items())
def test_the_cause_of_a_recorded_incident(name: str, cause: str) -> None:
    verdict = diagnosed(name)

    assert verdict["causes"][0]["id"] == cause
    assert verdict["causes"][0]["confidence"] >= 0.7


@pytest.mark.parametrize(("name", "code"), [("healthy", 0), ("long-context-surge", 1), ("frozen-core", 1)])
def test_the_exit_code_tells_a_script(name: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(BUNDLES / f"{name}.zip")]) == code
    assert capsys.readouterr().out.startswith("LLMedic")


def test_an_old_incident_in_lifetime_counters_raises_no_alarm() -> None:
    assert diagnosed("old-incident")["health"] == "healthy"


def test_a_green_health_page_over_a_frozen_core_is_shown_as_a_contradiction() -> None:
    verdict = diagnosed("frozen-core")

    assert verdict["health"] == "down"
    assert "health" in [one["about"] for one in verdict["disagreements"]]


def test_the_surge_suppresses_what_it_explains() -> None:
    cause = diagnosed("long-context-surge")["causes"][0]

    assert "overload-deep-queue" in cause["symptoms"]
    assert cause["change"]["variable"]


def test_a_change_has_a_number_where_one_can_be_computed() -> None:
    change = diagnosed("seq-cap")["causes"][0]["change"]

    assert change["from"] == "4"
    assert int(change["to"]) == 8


def test_both_languages_give_the_same_verdict() -> None:
    english, chinese = diagnosed("seq-cap"), diagnosed("seq-cap", "--lang", "zh")

    assert [c["id"] for c in english["causes"]] == [c["id"] for c in chinese["causes"]]
    assert english["causes"][0]["title"] != chinese["causes"][0]["title"]
