"""What sources and analysis say in English can be read in Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules import build, test_rules

from llmedic.analysis import findings
from llmedic.knowledge import flags, phrases, rules, vocabulary
from llmedic.model.finding import Fact

KINDS: tuple[test_rules.Kind, ...] = ("fires", "quiet")
NAMES = {"token", "CPU", "GiB", "MHz", "min", "max", "awq", "CUTLASS", "Blackwell"}
"""Words that are the same in both languages."""


@pytest.mark.parametrize("phrase", phrases.phrases(), ids=lambda phrase: phrase.id)
def test_a_phrase_is_found_before_a_wider_one(phrase: phrases.Phrase) -> None:
    parts = [str(number) for number in range(11, 11 + phrase.id.count("{}"))]

    assert phrases.chinese(phrase.id.format(*parts)) == phrase.zh.format(*parts)
    assert all(part in phrase.zh.format(*parts) for part in parts)


def test_no_phrase_is_there_twice() -> None:
    found = [phrase.id for phrase in phrases.phrases()]
    assert len(found) == len(set(found))


def test_parts_are_phrases_too() -> None:
    assert phrases.chinese("pool of 1,024 tokens") == "KV 池 1,024 token"
    assert phrases.chinese("45 tokens/s at 1,000 tokens") == "1,000 token 时 45 token/s"
    assert phrases.chinese("http://a:1/metrics: rates") == "http://a:1/metrics：速率"
    assert (
        phrases.chinese("no engine's series for any job in the previous window")
        == "上一时间窗内没有 任何 job 的引擎序列"
    )


@pytest.mark.parametrize(
    "text",
    [
        "room for what nobody has put into Chinese",
        "some words of it - and some other words",
        "whatever is left of it at 4 requests of 8,192 tokens",
    ],
)
def test_a_wide_phrase_takes_no_sentence_to_pieces(text: str) -> None:
    assert phrases.chinese(text) == text


def test_a_wide_phrase_takes_what_has_a_phrase_of_its_own() -> None:
    assert phrases.chinese("weights - activation peak") == "权重 - 激活峰值"
    assert phrases.chinese("61.02 GiB x 0.92") == "61.02 GiB × 0.92"


@given(st.text(max_size=600))
def test_any_text_is_taken(text: str) -> None:
    assert isinstance(phrases.chinese(text), str)


def facts() -> Iterator[Fact]:
    for rule in test_rules.records():
        for kind in KINDS:
            for case in test_rules.cases(rule, kind):
                for found in findings.of(build.view(case), {rule: rules.rules()[rule]}, lambda _: None):
                    yield from found.facts


def test_nothing_that_a_fact_is_held_against_stays_english() -> None:
    known = NAMES | set(vocabulary.names()) | set(flags.specs())
    held = {fact.compared_to for fact in facts()}

    assert len(held) > 50
    words = re.compile(r"[A-Za-z_]{3,}\b(?!\.)")  # "flag." and "hardware." lead to names
    english = {text for text in map(phrases.chinese, held) if set(words.findall(text)) - known - {"memory_gib"}}
    assert english == set()
