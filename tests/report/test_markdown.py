"""The Markdown report: the terminal's parts, and nothing from outside becomes markup."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from llmedic.model.evidence import Gap
from llmedic.model.verdict import Layer, Verdict
from llmedic.report import markdown


def test_parts_stand_in_order(incident: Verdict) -> None:
    report = markdown.render(incident)
    order = [
        "# LLMedic: degraded",
        "> **Restarting",
        "## CRITICAL: Long-context surge",
        "### Evidence",
        "| `prefix_cache_hit_ratio` | 62 % | 91 % before | metrics, 60 s |",
        "### Change one thing",
        "Route long-context traffic",
        "- verify: `llmedic diagnose",
        "### Explained by it",
        "- Offered load above capacity, deep queue (`overload",
        "### Which limit binds",
        "### Layers",
        "| load | CAUSE |",
        "### Also possible",
        "### The witnesses",
        "### Not seen",
        "### Cannot be decided",
    ]

    places = [report.index(part) for part in order]

    assert places == sorted(places)


def test_it_speaks_chinese(incident: Verdict) -> None:
    report = markdown.render(incident, lang="zh")

    for words in ("# LLMedic: 性能下降", "### 证据", "### 只改一处", "| 负载 | 根因 |", "### 未能看到"):
        assert words in report


def test_healthy_and_undecided_say_so(healthy: Verdict, undecided: Verdict) -> None:
    assert "## Nothing is wrong" in markdown.render(healthy)
    assert "**The evidence does not decide.**" in markdown.render(undecided)


def test_markup_in_foreign_text_is_text(undecided: Verdict) -> None:
    gap = Gap(what="a|b", why="<script> *x* [y](z)\nsecond line", how="grep `x` ``y`` log")
    report = markdown.render(dataclasses.replace(undecided, gaps=(gap,)))

    assert r"a\|b" in report
    assert r"\<script\> \*x\* \[y\](z) second line" in report
    assert "``` grep `x` ``y`` log ```" in report


@given(st.text(max_size=100))
def test_a_table_row_stays_one_row(summary: str) -> None:
    verdict = Verdict(health="unknown", layers=(Layer(layer="load", status="ok", summary=summary),) * 3, causes=())

    rows = [line for line in markdown.render(verdict).split("\n") if line.startswith("| load")]

    assert len(rows) == 3
    assert all(row.endswith(" |") for row in rows)


def test_foreign_text_steers_no_terminal(undecided: Verdict) -> None:
    gap = Gap(what="log \x1b[31m", why="\x07gone\x9b31m\u202e", how="\x1b[1mllmedic")

    report = markdown.render(dataclasses.replace(undecided, gaps=(gap,)))

    assert "gone" in report
    assert not set(report) & set("\x1b\x07\x9b\u202e")
