"""The terminal report: the answer first, readable without colour, at 80 columns, in both languages."""

from __future__ import annotations

import dataclasses
import re
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from llmedic.model.evidence import Gap
from llmedic.model.finding import Fact
from llmedic.model.verdict import Change, Verdict
from llmedic.report import terminal

LANGS: tuple[Literal["en", "zh"], ...] = ("en", "zh")
COMMAND = re.compile(r"llmedic|http")


@pytest.fixture(params=LANGS)
def lang(request: pytest.FixtureRequest) -> Literal["en", "zh"]:
    return "en" if request.param == "en" else "zh"


def test_the_cause_and_its_one_change_come_first(incident: Verdict) -> None:
    report = terminal.render(incident)
    order = [
        "LLMedic: degraded",
        "CRITICAL  Long-context surge",
        "94 % sure",
        "62 %",
        "> 30 1/min",
        "Change one thing",
        "none → > 2,048 tokens",
        "expect: evictions stop",
        "verify: llmedic diagnose",
        "Explained by it",
        "Which limit binds",
        "Layers, top down",
        "Also possible",
        "The witnesses disagree",
        "Not seen",
    ]

    places = [report.index(part) for part in order]

    assert places == sorted(places)


def test_there_is_one_change_even_with_two_causes(incident: Verdict) -> None:
    twice = dataclasses.replace(incident, causes=(incident.causes[0], incident.causes[0]))

    assert terminal.render(twice).count("verify:") == 1


def test_what_it_explains_is_named_in_words(incident: Verdict) -> None:
    report = terminal.render(incident)

    assert "Offered load above capacity, deep queue (overload-deep-queue)" in report
    assert "the first token comes late now and then (P99) (ttft-spikes)" in report


def test_a_restart_is_preceded_by_a_snapshot(incident: Verdict) -> None:
    calm = dataclasses.replace(incident, restart_warning=False)

    assert "llmedic snapshot" in terminal.render(incident)
    assert "llmedic snapshot" not in terminal.render(calm)


def test_a_gap_names_the_command_that_fills_it(undecided: Verdict) -> None:
    report = terminal.render(undecided)

    assert "The evidence does not decide." in report
    assert "http://a:8000/metrics: connection refused" in report
    assert "how: llmedic diagnose http://a:8000" in report


def test_a_healthy_system_says_so(healthy: Verdict) -> None:
    report = terminal.render(healthy)

    assert report.startswith("LLMedic: healthy\n\nNothing is wrong\n")
    assert "sure" not in report


def test_it_fits_eighty_columns(verdict: Verdict, lang: Literal["en", "zh"]) -> None:
    lines = terminal.render(verdict, lang=lang).splitlines()

    assert [line for line in lines if cell_len(line) > terminal.WIDTH] == []


def test_a_command_is_never_broken(incident: Verdict) -> None:
    command = "llmedic diagnose " + " ".join(f"http://replica-{number}:8000" for number in range(9))
    long = dataclasses.replace(incident, gaps=(Gap(what="b", why="c", how=command),))

    assert f"      {command}\n" in terminal.render(long)


def test_without_colour_there_is_no_escape(verdict: Verdict, lang: Literal["en", "zh"]) -> None:
    assert "\x1b" not in terminal.render(verdict, lang=lang)


def test_colour_adds_nothing_but_colour(verdict: Verdict) -> None:
    coloured = terminal.render(verdict, colour=True)

    assert "\x1b[" in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in bare.splitlines()] == terminal.render(verdict).splitlines()


def test_headings_are_translated(incident: Verdict) -> None:
    report = terminal.render(incident, lang="zh")

    for words in (
        *("性能下降", "严重", "置信度 94 %", "证据", "只改一处", "预期", "验证", "由它引起", "当前瓶颈"),
        *("逐层定位", "未评估", "其它可能", "证据互相矛盾", "未能看到", "容量不足，等待队列很深", "请先运行"),
    ):
        assert words in report
    for words in ("Evidence", "Change one thing", "Layers", "not evaluated", "Also possible"):
        assert words not in report


def test_a_name_to_look_up_is_not_broken(incident: Verdict) -> None:
    name = "prompt_tokens_per_first_token"
    fact = Fact(name=name, value="2,044 tokens", unit="tokens", window="lifetime 15 s", source="metrics",
                compared_to="1,242 tokens lifetime and a few more words that need a second line")  # fmt: skip

    report = terminal.render(
        dataclasses.replace(incident, causes=(dataclasses.replace(incident.causes[0], evidence=(fact,)),))
    )

    assert name in report
    assert max(map(len, report.splitlines())) <= 80


def test_what_to_type_is_a_line_of_its_own(incident: Verdict) -> None:
    change = Change(variable="enable_prefix_caching", from_="false", to="true", expected="", verify="x",
                    drop="--disable-radix-cache")  # fmt: skip
    verdict = dataclasses.replace(incident, causes=(dataclasses.replace(incident.causes[0], change=change),))

    assert "\n  take off the command line: --disable-radix-cache\n" in terminal.render(verdict)
    assert "\n  从命令行去掉：--disable-radix-cache\n" in terminal.render(verdict, lang="zh")


def test_columns_line_up_in_chinese(incident: Verdict) -> None:
    lines = terminal.render(incident, lang="zh").splitlines()
    rows = [line for line in lines if re.match(r"  \S+ +[!~+?] ", line)]
    columns = {cell_len(re.split(r"[!~+?] ", row)[0]) for row in rows}

    assert len(rows) == 6
    assert len(columns) == 1


@given(text=st.text(max_size=300))
def test_any_text_is_shown_as_text(text: str) -> None:
    verdict = Verdict(health="unknown", layers=(), causes=(), gaps=(Gap(what=text, why=text, how=""),))

    report = terminal.render(verdict)

    assert report.endswith("\n")
    shown = "".join(report.split())
    word = next((word for word in text.split() if word.isascii() and word.isprintable()), "")
    assert word in shown


def test_a_log_cannot_steer_the_terminal(undecided: Verdict) -> None:
    gap = Gap(what="log", why="\x1b]0;title\x07\x1b[2Jgone\x9b31m\u202e", how="\x1b[1mllmedic")

    report = terminal.render(dataclasses.replace(undecided, gaps=(gap,)))

    assert "gone" in report
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", report)


def test_the_limit_is_named(incident: Verdict) -> None:
    assert "Which limit binds\n  KV pool: 396,000 of 410,000 tokens in use\n" in terminal.render(incident)


def test_a_long_list_of_undecided_causes_is_counted(undecided: Verdict) -> None:
    many = dataclasses.replace(undecided, cannot_tell=tuple(f"cause-{number}" for number in range(20)))

    report = " ".join(terminal.render(many).split())

    assert "cause-5, and 14 more (`--format json` lists them)" in report
    assert "cause-6" not in report


def test_a_column_that_says_nothing_is_left_out(healthy: Verdict) -> None:
    ticked = Fact(name="seen", value="hangs", source="symptoms")
    cause = dataclasses.replace(healthy.causes[0], evidence=(ticked,))

    report = terminal.render(dataclasses.replace(healthy, causes=(cause,)))

    assert "compared to" not in report
    assert re.search(r"seen +hangs +symptoms", report)


def test_the_change_says_what_to_do_before_it_names_the_variable(incident: Verdict) -> None:
    report = terminal.render(incident)
    remedy = report.index("Route long-context traffic to its own pool")

    assert report.index("Change one thing") < remedy < report.index("gateway route for long prompts: none")
    assert "网关的长提示词路由：none → > 2,048 tokens" in terminal.render(incident, lang="zh")
