"""Every rule fires on the evidence that it is for, stays quiet on its neighbours, and says when it cannot tell.

The cases are in this folder, by layer. The first case of `fires` is whole evidence; every other case of the
rule is that one with the changes it writes (null takes a key out), so that what decides can be read off.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, cast

import pytest
import yaml
from tests.rules import build, mutants

from llmedic.analysis import evaluate, findings
from llmedic.knowledge import conditions, rules
from llmedic.model.finding import Finding

Kind = Literal["fires", "quiet", "unknown"]
KINDS: tuple[Kind, ...] = ("fires", "quiet", "unknown")
OUTCOMES: Mapping[Kind, frozenset[str]] = {
    "fires": frozenset({"cause", "against"}),
    "quiet": frozenset({"clear"}),
    "unknown": frozenset({"cannot_tell"}),
}


@cache
def records() -> Mapping[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for file in sorted(Path(__file__).parent.glob("*.yaml")):
        for record in yaml.safe_load(file.read_text(encoding="utf-8")):
            assert record["id"] not in found, f"{record['id']} has two records"
            assert set(record) <= {"id", "why", *KINDS}, record["id"]
            found[record["id"]] = record
    return found


def cases(rule: str, kind: Kind) -> list[build.Case]:
    record = records()[rule]
    whole = cast("list[build.Case]", record["fires"])[0]
    written = cast("list[build.Case]", record[kind])
    return [cast("build.Case", whole if case is whole else build.merged(whole, case)) for case in written]


def every_case() -> list[tuple[str, Kind, int]]:
    return [
        (rule, kind, position)
        for rule in records()
        for kind in KINDS
        for position in range(len(cast("list[build.Case]", records()[rule][kind])))
    ]


def finding(rule: str, case: build.Case) -> Finding:
    (found,) = findings.of(build.view(case), {rule: rules.rules()[rule]}, lambda _: None)
    return found


def test_every_rule_has_cases_and_every_case_a_rule() -> None:
    assert set(records()) == set(rules.rules())


@pytest.mark.parametrize("rule", rules.rules())
def test_a_rule_has_all_three_kinds(rule: str) -> None:
    record = records()[rule]

    assert record["fires"]
    assert record["quiet"]
    assert bool(record["unknown"]) != ("why" in record), "say why it can never be unknown"


@pytest.mark.parametrize(("rule", "kind", "position"), every_case())
def test_a_case_has_its_outcome(rule: str, kind: Kind, position: int) -> None:
    found = finding(rule, cases(rule, kind)[position])

    assert found.outcome in OUTCOMES[kind], found
    assert found.cause == rules.rules()[rule].rule.cause
    assert bool(found.missing) == (kind == "unknown")


@pytest.mark.parametrize("rule", rules.rules())
def test_a_rule_that_fires_shows_the_facts_that_decided(rule: str) -> None:
    for case in cases(rule, "fires"):
        facts = finding(rule, case).facts

        assert facts
        assert all(fact.name and fact.value and fact.value != "NaN" for fact in facts), facts


@pytest.mark.parametrize("rule", rules.rules())
def test_a_moved_bound_or_a_missing_part_breaks_a_case(rule: str) -> None:
    views = [build.view(case) for kind in KINDS for case in cases(rule, kind)]
    compiled = rules.rules()[rule]
    expected = [evaluate.evaluate(compiled.condition, view).holds for view in views]
    survived = [
        label
        for label, when in mutants.of(compiled.rule.when)
        if [evaluate.evaluate(conditions.parse(when, rule), view).holds for view in views] == expected
    ]

    assert [] == survived
