"""The machine-readable verdict keeps its promise: the documented schema, the documented order."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from llmedic.model.evidence import Gap
from llmedic.model.verdict import Verdict
from llmedic.report import json as renderer

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs" / "reference" / "verdict-1.schema.json").read_text(encoding="utf-8")
)
TYPES = {"object": dict, "array": list, "string": str, "number": int | float, "null": type(None)}


def problems(value: Any, schema: dict[str, Any], at: str = "$") -> list[str]:
    """What in the value the schema does not allow: the few keywords that ours uses."""
    if "$ref" in schema:
        return problems(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], at)
    if "oneOf" in schema:
        fitting = [branch for branch in schema["oneOf"] if not problems(value, branch, at)]
        return [] if len(fitting) == 1 else [f"{at}: fits {len(fitting)} of the branches"]
    if "const" in schema:
        return [] if value == schema["const"] else [f"{at}: is not {schema['const']}"]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{at}: {value} is none of {schema['enum']}"]
    if not isinstance(value, TYPES[schema["type"]]):
        return [f"{at}: not of type {schema['type']}"]
    found: list[str] = []
    if isinstance(value, dict):
        allowed = schema["properties"]
        found += [f"{at}: lacks {key}" for key in schema["required"] if key not in value]
        found += [f"{at}: {key} is not allowed" for key in value if key not in allowed]
        for key in value.keys() & allowed.keys():
            found += problems(value[key], allowed[key], f"{at}.{key}")
    elif isinstance(value, list):
        for position, item in enumerate(value):
            found += problems(item, schema["items"], f"{at}[{position}]")
    elif isinstance(value, str):
        found += [f"{at}: too short"] if len(value) < schema.get("minLength", 0) else []
    elif isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        found.append(f"{at}: {value} out of bounds")
    return found


def test_every_verdict_fits_the_schema(verdict: Verdict) -> None:
    assert problems(json.loads(renderer.render(verdict)), SCHEMA) == []


def test_the_check_itself_finds_what_is_wrong(incident: Verdict) -> None:
    document = renderer.document(incident)
    document["health"] = "fine"
    document["causes"][0]["change"]["and"] = "another variable"
    document["causes"][1]["confidence"] = 1.5
    del document["gaps"][0]["how"]

    found = "\n".join(problems(document, SCHEMA))

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
