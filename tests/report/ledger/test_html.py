"""The chart: one file that loads nothing, runs nothing and can be read without seeing it."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from typing import Literal
from xml.etree import ElementTree

import pytest
from tests.report.ledger.conftest import DOES_NOT, FITS, PRINTED, UNKNOWN

from llmedic.model.ledger import LedgerReport, Problem
from llmedic.report.ledger import html

VOID = {"meta", "br", "!doctype"}


class Tree(HTMLParser):
    """Checks that what is opened is closed, and keeps names and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tree(text: str) -> Tree:
    parser = Tree()
    parser.feed(text)
    parser.close()
    return parser


def svg(text: str) -> ElementTree.Element:
    found = re.search(r"<svg.*</svg>", text, re.DOTALL)
    assert found
    return ElementTree.fromstring(found[0])


def test_it_is_one_file_without_scripts(report: LedgerReport, lang: Literal["en", "zh"]) -> None:
    parsed = tree(html.render(report, lang=lang))

    assert parsed.open == ["html"]
    assert not parsed.names & {"script", "link", "img", "iframe", "object", "base", "form"}
    assert not parsed.attributes & {"src", "href", "style", "onload", "onclick"}
    assert "url(" not in html.render(report, lang=lang)


def test_the_drawing_is_described_in_words() -> None:
    picture = svg(html.render(FITS))

    assert picture.get("role") == "img"
    assert picture.get("aria-labelledby") == "map-title map-desc"
    assert picture.findtext("title") == "Memory of one device, GiB"
    described = picture.findtext("desc")
    assert described is not None
    assert "weights 61.03 GiB" in described
    assert "KV cache 5.3 GiB (4.1–6.1)" in described


def test_every_row_has_its_number_beside_the_bar() -> None:
    groups = svg(html.render(FITS)).findall("g")

    assert len(groups) == 8
    for group in groups:
        assert group.find("rect") is not None
        assert re.search(r"\d GiB.*%", group.findall("text")[1].text or "")


def test_bars_lie_inside_the_drawing(report: LedgerReport) -> None:
    text = html.render(report)
    if "<svg" in text:
        for bar in svg(text).iter("rect"):
            left, width = float(bar.get("x", "")), float(bar.get("width", ""))
            assert 170 <= left
            assert left + width <= 170 + 520 + 1


def test_the_uncertain_part_and_the_missing_one_look_different() -> None:
    assert 'class="pool unsure"' in html.render(FITS)
    assert 'class="missing"' in html.render(DOES_NOT)
    assert 'class="pool' not in html.render(DOES_NOT).partition("</style>")[2]


def test_without_a_card_there_is_no_drawing() -> None:
    assert "<svg" not in html.render(UNKNOWN)
    assert "llmedic ledger Qwen3-32B --gpu H100" in html.render(UNKNOWN)


def test_it_follows_the_readers_theme_and_language() -> None:
    assert "prefers-color-scheme: dark" in html.render(FITS)
    assert '<html lang="zh-CN">' in html.render(FITS, lang="zh")
    assert "<h2>KV cache 容量</h2>" in html.render(FITS, lang="zh")


def test_all_that_was_asked_for_is_there() -> None:
    text = html.render(PRINTED)

    for words in ("+0.02 GiB", "--max-num-seqs 48", "no longer after the change", "3.53x", "2 layer groups"):
        assert words in text


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", '"><img src=x>', "a&b", "\x1b[31m", "a\nb"])
def test_no_name_becomes_markup(hostile: str) -> None:
    problem = Problem(severity="critical", text=hostile, cause=hostile, change=hostile)
    ledger = dataclasses.replace(
        FITS.ledger, version=hostile, era=hostile, formula=hostile, problems=(problem,), notes=(hostile,),
        terms=tuple(dataclasses.replace(one, id=hostile, how=hostile) for one in FITS.ledger.terms),
    )  # fmt: skip
    text = html.render(dataclasses.replace(FITS, model_name=hostile, accelerator=hostile, ledger=ledger))

    parsed = tree(text)
    assert parsed.open == ["html"]
    assert not parsed.names & {"script", "img"}
    assert "\x1b" not in text
    assert svg(text) is not None
