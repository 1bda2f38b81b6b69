"""The machine-readable verdict keeps its promise: the documented schema, the documented order."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from tests import schema

from llmedic.model.evidence import Gap
from llmedic.model.verdict import Verdict
from llmedic.report import json as renderer

SCHEMA = schema.load("verdict-1")


def problems(value: Any) -> list[str]:
    return schema.problems(value, SCHEMA, SCHEMA)


def test_every_verdict_fits_the_schema(verdict: Verdict) -> None:
    assert problems(json.loads(renderer.render(verdict))) == []


def test_the_check_itself_finds_what_is_wrong(incident: Verdict) -> None:
    document = renderer.document(incident)
    document["health"] = "fine"
    document["causes"][0]["change"]["and"] = "another variable"
    document["causes"][1]["confidence"] = 1.5
    del document["gaps"][0]["how"]

    found = "\n".join(problems(document))

    for part in ("$.health: fine", "$.causes[0].change: fits 0", "$.causes[1].confidence", "$.gaps[0]: lacks how"):
        assert part in found


def test_keys_stand_in_the_documented_order(incident: Verdict) -> None:
    document = json.loads(renderer.render(incident))

    assert list(document) == SCHEMA["required"]
    assert list(document["causes"][0]) == SCHEMA["properties"]["causes"]["items"]["required"]
    assert list(document["causes"][0]["change"]) == ["variable", "from", "to", "expected", "verify"]


def test_a_cause_without_a_change_has_null(incident: Verdict) -> None:
    assert json.loads(renderer.render(incident))["causes"][1]["change"] is None


def test_the_same_verdict_gives_the_same_bytes(verdict: Verdict) -> None:
    assert renderer.render(verdict) == renderer.render(verdict)
    assert renderer.render(verdict).endswith("}\n")


@pytest.mark.parametrize("number", [0.9359, 0.936])
def test_confidence_has_three_digits(incident: Verdict, number: float) -> None:
    assert renderer.document(incident)["causes"][0]["confidence"] == pytest.approx(number, abs=5e-4)


def test_foreign_text_steers_no_terminal_and_is_whole(undecided: Verdict) -> None:
    gap = Gap(what="log", why="\x1b[31m\x9b31m\u202e", how="")

    report = renderer.render(dataclasses.replace(undecided, gaps=(gap,)))

    assert not set(report) & set("\x1b\x9b\u202e")
    assert json.loads(report)["gaps"][0]["why"] == gap.why
