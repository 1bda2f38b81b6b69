"""Every name that a rule speaks of exists: a misspelt one would never be seen, and its rule would be dead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields

import pytest

from llmedic.analysis.predicates import PREDICATES
from llmedic.knowledge import causes, flags, logs, profiles, rules, symptoms, vocabulary
from llmedic.knowledge import conditions as c
from llmedic.model.deployment import HardwareFacts

BY_SYMPTOMS_ONLY = {"sampling-mix-shift"}
"""Causes that no engine counts and no line names: only what a person ticks speaks for them."""
REFERENCE = re.compile(r"https://[a-z0-9.-]+\.[a-z]+/\S*|(vllm|sglang)(/\w+)+\.py")
"""A page, or a file in an engine's source tree."""


def parts(condition: c.Condition) -> Iterator[c.Condition]:
    """The condition and everything inside it."""
    yield condition
    match condition:
        case c.All(parts=inner) | c.AnyOf(parts=inner):
            for part in inner:
                yield from parts(part)
        case c.Not(part=part) | c.Unless(part=part):
            yield from parts(part)


def quantities(condition: c.Condition) -> Iterator[c.Quantity]:
    for part in parts(condition):
        match part:
            case c.Threshold(quantity=quantity) | c.Changed(quantity=quantity):
                yield quantity
            case c.Ratio(numerator=top, denominator=bottom):
                yield from (top, bottom)
            case c.Trending(name=name) | c.Absent(name=name):
                yield c.Quantity(where="observation", name=name)


@pytest.fixture(params=rules.rules())
def compiled(request: pytest.FixtureRequest) -> rules.Compiled:
    return rules.rules()[str(request.param)]


def test_observations_are_in_the_vocabulary(compiled: rules.Compiled) -> None:
    named = {quantity.name for quantity in quantities(compiled.condition) if quantity.where == "observation"}

    assert named <= set(vocabulary.names())


def test_settings_are_known(compiled: rules.Compiled) -> None:
    named = {part.name for part in parts(compiled.condition) if isinstance(part, c.Setting)}
    named |= {quantity.name for quantity in quantities(compiled.condition) if quantity.where == "flag"}

    assert named <= set(flags.specs())


def test_symptoms_are_in_the_list(compiled: rules.Compiled) -> None:
    for part in parts(compiled.condition):
        if isinstance(part, c.Ticked):
            kind: symptoms.Kind = "symptom" if part.kind == "seen" else "condition"
            assert set(part.ids) <= set(symptoms.ids(kind))


def test_log_lines_have_a_pattern(compiled: rules.Compiled) -> None:
    named = {name for part in parts(compiled.condition) if isinstance(part, c.Logged) for name in part.ids}
    named |= {quantity.name for quantity in quantities(compiled.condition) if quantity.where == "log"}

    assert named <= set(logs.homes())


def test_facts_can_be_known(compiled: rules.Compiled) -> None:
    hardware = {f"hardware.{field.name}" for field in fields(HardwareFacts)}
    for part in parts(compiled.condition):
        if isinstance(part, c.FactIs):
            assert part.path in hardware or part.path.startswith(("model.", "environment."))


def test_a_confidence_is_never_certain(compiled: rules.Compiled) -> None:
    assert 0 < compiled.rule.confidence < 1


def test_a_rule_says_when_it_fires_wrongly(compiled: rules.Compiled) -> None:
    assert re.fullmatch(r"[A-Z0-9]\S* .{15,}\.", compiled.rule.false_positives)


def test_references_are_pages_or_source_files(compiled: rules.Compiled) -> None:
    named = compiled.rule.references

    assert [name for name in named if not REFERENCE.fullmatch(name)] == []
    assert len(set(named)) == len(named)


def test_a_log_line_with_a_cause_of_its_own_is_never_certain() -> None:
    speaking = [pattern for pattern in logs.patterns() if pattern.cause]

    assert speaking
    assert {pattern.id: pattern.confidence for pattern in speaking if not 0 < pattern.confidence < 1} == {}
    assert {pattern.cause for pattern in speaking} <= set(causes.ids())


def test_every_predicate_is_named_and_every_name_is_one() -> None:
    named = {
        part.name
        for compiled in rules.rules().values()
        for part in parts(compiled.condition)
        if isinstance(part, c.Predicate)
    }

    assert named == set(PREDICATES)


def test_every_cause_can_be_found() -> None:
    by_rule = {compiled.rule.cause for compiled in rules.rules().values()}
    by_line = {pattern.cause for pattern in logs.patterns()}

    assert set(causes.ids()) - by_rule - by_line == BY_SYMPTOMS_ONLY


def test_every_cause_has_a_profile_and_so_a_prior() -> None:
    assert set(profiles.profiles()) == {*causes.ids(), causes.HEALTHY}
