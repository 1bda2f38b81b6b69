"""What all renderers say in the same words, in both languages."""

from __future__ import annotations

import pytest

from llmedic.knowledge import texts
from llmedic.knowledge.texts import Lang
from llmedic.model.evidence import Gap
from llmedic.model.finding import Fact
from llmedic.model.verdict import Change
from llmedic.report import words


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        ("1,024 tokens", "tokens", "1,024 tokens"),
        ("1,024", "tokens", "1,024 tokens"),
        ("62 %", "0..1", "62 %"),
        ("20/min", "1/min", "20/min"),
        ("3", "count", "3"),
        ("503", "code", "503"),
        ("1,700 MHz", "MHz", "1,700 MHz"),
    ],
)
def test_a_value_has_its_unit_once(value: str, unit: str, shown: str) -> None:
    assert words.value(Fact(name="x", value=value, unit=unit)) == shown


def test_a_fact_in_chinese() -> None:
    fact = Fact(
        name="kv_cache_tokens", value="1,024 tokens", unit="tokens", window="previous 60 s", source="metrics",
        compared_to="9,000 tokens before",
    )  # fmt: skip

    assert (
        words.line(words.in_words(fact, "zh"))
        == "kv_cache_tokens = 1,024 token (此前 9,000 token), 指标, 上一时间窗 60 s"
    )
    assert words.in_words(fact, "en") is fact


def test_a_line_of_a_log_is_quoted_as_it_is() -> None:
    fact = Fact(name="cuda-oom", value="10 tokens before", source="log")

    assert words.in_words(fact, "zh").value == "10 tokens before"


def test_a_gap_in_chinese() -> None:
    gap = Gap(
        what="http://a:1", why="http://a:1: connection refused", how="is the server running, and is this its port?"
    )

    found = words.gap(gap, "zh")

    assert (found.why, found.how) == ("http://a:1：连接被拒绝", "服务在运行吗？端口对吗？")
    assert words.gap(gap, "en") is gap


@pytest.mark.parametrize(
    ("lang", "change", "line"),
    [
        ("en", {"from_": "4", "to": "8"}, "max_num_seqs: 4 → 8"),
        ("zh", {"from_": "4", "to": "8"}, "max_num_seqs：4 → 8"),
        ("en", {"from_": "", "to": "8"}, "max_num_seqs: set to 8"),
        ("en", {"from_": "", "to": ""}, "max_num_seqs"),
    ],
)
def test_a_change(lang: Lang, change: dict[str, str], line: str) -> None:
    one = Change(variable="max_num_seqs", expected="", verify="", **change)

    assert words.change(one, lang) == line


def test_a_setting_that_the_release_lacks_is_said_to_be_missing() -> None:
    one = Change(variable="attention_backend", from_="", to="", expected="", verify="", exists=False)

    assert "no such setting" in words.change(one, "en")
    assert "没有这个参数" in words.change(one, "zh")


def test_what_lies_beneath_has_a_name() -> None:
    assert words.named("ttft-high", "zh")[1] == "ttft-high"
    assert words.named("overload-deep-queue", "en")[0] != "overload-deep-queue"
    assert words.named("something new", "en") == ("something new", "")


def test_every_indicator_has_words_in_both_languages() -> None:
    for english, chinese in texts.INDICATORS.values():
        assert english
        assert any("\u4e00" <= letter <= "\u9fff" for letter in chinese)
