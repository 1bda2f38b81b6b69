"""What all renderers say: the answer in one line, in both languages."""

from __future__ import annotations

import dataclasses
import re
from string import Formatter

import pytest
from tests.report.ledger.conftest import DOES_NOT, FITS, PRINTED, UNKNOWN, exact, gib, term

from llmedic.knowledge.texts import Lang
from llmedic.model.ledger import ContextCost, LedgerReport, Planned, Range, Setting
from llmedic.report.ledger import words

SAME = {
    "KV",
    "cache",
    "GiB",
    "MiB",
    "token",
    "tokens",
    "torch",
    "CUDA",
    "graph",
    "LoRA",
    "LLMedic",
    "x",
    "max",
    "model",
    "len",
}
"""Words that are the same in both languages."""


def places(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name is not None)


@pytest.mark.parametrize("key", words.LABELS)
def test_a_label_says_the_same_in_both_languages(key: str) -> None:
    english, chinese = words.LABELS[key]

    assert places(english) == places(chinese)
    assert bool(english) == bool(chinese)
    assert set(re.findall(r"[A-Za-z]+", re.sub(r"\{.*?\}", "", chinese))) <= SAME


@pytest.mark.parametrize(
    ("report", "lang", "text"),
    [
        (FITS, "en", "KV cache 5.3 GiB (4.1–6.1): 1.4 (1.1–1.6) requests of 16,000 tokens at once"),
        (FITS, "zh", "KV cache 5.3（4.1–6.1）GiB：同时容纳 1.4（1.1–1.6）个 16,000 token 的请求"),
        (DOES_NOT, "en", "65.2 GiB (64.9–65.5) are missing before the first block of KV cache"),
        (DOES_NOT, "zh", "还没分到第一个 KV 块，就已缺 65.2（64.9–65.5）GiB"),
        (UNKNOWN, "en", "The size of the KV cache is not known."),
        (UNKNOWN, "zh", "KV cache 大小未知。"),
        (PRINTED, "en", "KV cache 35.34 GiB: 3.53 requests of 131,072 tokens at once"),
    ],
)
def test_the_answer(report: LedgerReport, lang: Lang, text: str) -> None:
    assert words.answer(report.ledger, lang) == text


def test_the_answer_without_geometry_is_the_size_alone() -> None:
    ledger = dataclasses.replace(FITS.ledger, cache=None)

    assert words.answer(ledger, "en") == "KV cache 5.3 GiB (4.1–6.1)"


def test_what_is_known_of_the_subject() -> None:
    assert words.subject(FITS, "en") == "Qwen3-32B, 1 x H100 80GB, vllm 0.33.0"
    assert words.subject(dataclasses.replace(FITS, accelerator=""), "en") == "Qwen3-32B, 1 x 79.18 GiB, vllm 0.33.0"
    assert words.subject(UNKNOWN, "en") == "vllm"


def test_a_term_of_a_later_release_keeps_its_name() -> None:
    assert words.term_name("spare_buffers", "zh") == "spare buffers"


def test_a_term_says_how_it_came_about() -> None:
    ledger = dataclasses.replace(FITS.ledger, outside=(term("free_outside", gib(6.33), "computed"),))
    said = dict(words.arithmetic(ledger, "en"))

    assert said["requested"] == "79.18 GiB x 0.92 (computed)"
    assert said["outside torch"] == "calibrated"
    assert said["formula"].endswith("(vllm-graphs-inside)")
    assert "left to others" not in said


def test_an_era_without_a_formula_is_still_named() -> None:
    assert words.formula(dataclasses.replace(FITS.ledger, formula=""), "en") == "vllm-graphs-inside"


def test_nothing_fits_is_said_and_not_zero_tokens() -> None:
    assert FITS.ledger.cache is not None
    cache = dataclasses.replace(FITS.ledger.cache, longest_request=exact(0))

    assert dict(words.holds(cache, "en"))["longest request"] == "none: not one block is left"


def test_groups_are_told_only_where_there_are_some() -> None:
    assert PRINTED.ledger.cache is not None
    assert FITS.ledger.cache is not None

    assert "2 layer groups share them" in dict(words.holds(PRINTED.ledger.cache, "en"))["blocks"]
    assert "groups" not in dict(words.holds(FITS.ledger.cache, "en"))["blocks"]


@pytest.mark.parametrize(
    ("now", "then", "said"),
    [
        (exact(200), exact(150), "128 at once fit now and after the change"),
        (exact(200), Range(low=100, likely=120, high=140), "128 at once fit now; after the change, perhaps"),
        (exact(200), exact(92), "128 at once fit now and no longer after the change"),
        (exact(100), exact(92), "128 at once do not fit now either"),
    ],
)
def test_whether_the_wanted_concurrency_still_fits(now: Range, then: Range, said: str) -> None:
    plan = Planned(
        now=ContextCost(tokens=300, blocks=19, quick_blocks=16, requests=now),
        then=ContextCost(tokens=5000, blocks=313, quick_blocks=192, requests=then),
        concurrency=128,
    )

    assert words.fits(plan, "en") == said
    assert words.fits(dataclasses.replace(plan, concurrency=None), "en") == ""


def test_a_plan_without_a_concurrency_has_no_share() -> None:
    assert PRINTED.planned is not None
    heads, rows = words.planned(dataclasses.replace(PRINTED.planned, concurrency=None), "en")

    assert heads == ["", "tokens each", "blocks each", "rule (of 32)", "at once"]
    assert rows[1] == ("planned", "5,000", "313", "192", "92")


def test_a_pool_that_holds_none_is_more_than_full() -> None:
    assert PRINTED.planned is not None
    none = dataclasses.replace(PRINTED.planned.then, requests=exact(0), pool_blocks=0)

    _, rows = words.planned(dataclasses.replace(PRINTED.planned, then=none), "en")

    assert rows[1][-1] == "> 100 %"


def test_given_settings_come_before_defaults() -> None:
    used = (
        Setting(flag="--a", value="1", origin="default"),
        Setting(flag="--b", value="2", origin="given"),
        Setting(flag="--c", value="", origin="default"),
    )

    assert list(words.settings(used, "en")) == [("given", "--b 2"), ("default", "--a 1, --c")]
