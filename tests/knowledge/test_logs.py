"""The log library: every record is sound, found by its own example, and not mistaken for another."""

from __future__ import annotations

import pytest

from llmedic.collect import logs as source
from llmedic.knowledge import causes, load, logs
from llmedic.knowledge.schema import LogPattern

PATTERNS = logs.patterns()
BY_ID = {pattern.id: pattern for pattern in PATTERNS}
IDS = [pattern.id for pattern in PATTERNS]


def base(pattern: LogPattern) -> LogPattern:
    return BY_ID[pattern.id.split(logs.VARIANT)[0]]


def test_the_library_is_broad() -> None:
    assert len(PATTERNS) > 500
    engines = {pattern.engine for pattern in PATTERNS}
    assert engines == {
        "vllm",
        "sglang",
        "llama.cpp",
        "tgi",
        "ollama",
        "cuda",
        "nccl",
        "driver",
        "kernel",
        "python",
        "proxy",
        "kubernetes",
    }


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_its_example_is_its_own(pattern: LogPattern) -> None:
    assert pattern.literal in pattern.example
    regex = logs.regex(pattern.id)
    assert regex is None or any(regex.search(line) for line in pattern.example.splitlines())


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_its_cause_exists_and_is_honest(pattern: LogPattern) -> None:
    known = {text.id for text in causes.causes().values()}
    assert not pattern.cause or pattern.cause in known
    assert bool(pattern.cause) == (0 < pattern.confidence < 1)


@pytest.mark.parametrize("pattern", [item for item in PATTERNS if logs.VARIANT in item.id], ids=lambda item: item.id)
def test_a_variant_has_the_literal_of_its_base(pattern: LogPattern) -> None:
    assert base(pattern).literal == pattern.literal


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_the_lines_a_rule_may_read_name_real_fields(pattern: LogPattern) -> None:
    regex = logs.regex(pattern.id)
    groups = set(regex.groupindex) if regex else set()
    scaled = {name.rsplit("_", 1)[0] for name in groups}
    for told in (*pattern.observes.values(), *pattern.sets.values(), *pattern.facts.values()):
        stem = told.removesuffix("_ratio").removesuffix("_gib").removesuffix("_per_min").removesuffix("_s")
        assert told.startswith("=") or told in groups or stem in scaled


@pytest.mark.parametrize(
    "pattern",
    [item for item in PATTERNS if item.level == "fatal" and logs.VARIANT not in item.id],
    ids=lambda item: item.id,
)
def test_a_fatal_example_is_not_mistaken_for_another_cause(pattern: LogPattern) -> None:
    events = source.read_text(pattern.example).events
    said = {event.id.split(logs.VARIANT)[0]: BY_ID[event.id] for event in events}
    assert pattern.id in said
    others = {
        item.cause
        for item in said.values()
        if item.level == "fatal" and item.cause and item.confidence > base(pattern).confidence + 0.25
    }
    assert others <= {said[pattern.id].cause, pattern.cause}


def test_the_index_agrees_with_the_records() -> None:
    plain = [item for item in PATTERNS if logs.VARIANT not in item.id]
    assert {key: item for item in plain for key in (item.id,)}.keys() == {
        key for keys in logs.literals().values() for key in keys
    }
    assert all(item.id in logs.literals()[item.literal] for item in plain)


def test_every_file_is_read_record_by_record() -> None:
    for path in logs.files():
        for key in load.chunks(path):
            assert logs.pattern(key) == BY_ID[key]


def test_an_unknown_id_is_none() -> None:
    assert logs.pattern("no-such-pattern") is None
    assert logs.regex("no-such-pattern") is None
