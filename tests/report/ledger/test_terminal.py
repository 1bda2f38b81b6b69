"""The ledger at a terminal: the answer first, a map that needs no colour, 80 columns, both languages."""

from __future__ import annotations

import dataclasses
import re
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.report.ledger.conftest import DOES_NOT, FITS, PRINTED, REPORTS, UNKNOWN, exact, gib, term

from llmedic.model.ledger import Ledger, LedgerReport, Problem, Starts
from llmedic.report.ledger import chart, terminal

BAR = re.compile(r"\[([ #~!]+)\]")


def bars(text: str) -> dict[str, str]:
    """The bar of every row that has one, by the row's name."""
    found = {}
    for line in text.splitlines():
        if match := BAR.search(line):
            found[re.split(r"\s{2,}", line.strip().lstrip("-= "))[0]] = match[1]
    return found


def test_what_matters_comes_first() -> None:
    text = terminal.render(dataclasses.replace(DOES_NOT, settings=FITS.settings))
    order = [
        "LLMedic ledger: it does not start",
        "Llama-3.3-70B, 1 x H100 80GB, vllm 0.11.0",
        "65.2 GiB (64.9–65.5) are missing",
        "CRITICAL  weights of 131.43 GiB do not fit",
        "llmedic explain weights-do-not-fit",
        "would fit: --tensor-parallel-size 4",
        "Memory of one device, GiB",
        "device memory",
        "requested",
        "- weights",
        "= KV cache",
        "How each was reached",
        "Settings used",
    ]

    places = [text.index(part) for part in order]

    assert places == sorted(places)


def test_the_map_reads_from_left_to_right() -> None:
    found = bars(terminal.render(FITS))

    assert found["device memory"].strip() == found["device memory"]
    assert found["weights"].rstrip().startswith("#")
    starts = [len(bar) - len(bar.lstrip()) for bar in found.values()]
    assert starts == sorted(starts)
    assert "~" in found["KV cache"]
    assert "~" not in found["weights"]


def test_what_is_missing_is_marked_beyond_the_budget() -> None:
    found = bars(terminal.render(DOES_NOT))

    assert set(found["KV cache"].strip()) == {"!"}
    assert found["KV cache"].index("!") == len(found["requested"].rstrip())
    assert "-65.2" in terminal.render(DOES_NOT)


def test_a_small_term_is_still_seen() -> None:
    assert "#" in bars(terminal.render(FITS))["outside torch"]


def test_points_stand_below_each_other() -> None:
    rows = [line for line in terminal.render(FITS).splitlines() if BAR.search(line)]
    at = {re.search(r"\d+(\.)\d", line).start(1) for line in rows}  # type: ignore[union-attr]

    assert len(at) == 1


def test_an_exact_ledger_has_no_interval_column() -> None:
    ledger = dataclasses.replace(FITS.ledger, terms=(term("weights", gib(61.03)),), pool=term("kv_cache", gib(11.82)))

    assert "–" not in terminal.render(dataclasses.replace(FITS, ledger=dataclasses.replace(ledger, cache=None)))


@pytest.mark.parametrize(
    ("starts", "words"),
    [
        ("yes", "it starts"),
        ("no", "it does not start"),
        ("perhaps", "it may not start"),
        ("unknown", "cannot tell whether it starts"),
    ],
)
def test_whether_it_starts(starts: Starts, words: str) -> None:
    report = dataclasses.replace(FITS, ledger=dataclasses.replace(FITS.ledger, starts=starts))

    assert terminal.render(report).startswith(f"LLMedic ledger: {words}\n")


def test_without_a_card_there_is_no_map_and_the_gap_says_what_to_give() -> None:
    text = terminal.render(UNKNOWN)

    assert "Memory of" not in text
    assert "- the card: nobody said which" in text
    assert "how: llmedic ledger Qwen3-32B --gpu H100" in text


def test_without_geometry_the_size_is_still_there() -> None:
    report = dataclasses.replace(FITS, ledger=dataclasses.replace(FITS.ledger, cache=None, geometry=None))
    text = terminal.render(report)

    assert "= KV cache" in text
    assert "What the KV cache holds" not in text


def test_a_log_is_held_against_the_arithmetic() -> None:
    lines = terminal.render(PRINTED).splitlines()
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines]

    assert ["term", "printed", "computed", "residual"] in rows
    assert ["weights", "3.42 GiB", "3.40 GiB", "+0.02 GiB"] in rows
    assert ["CUDA graphs", "0.72 GiB", "unknown", "unknown"] in rows
    assert ["tokens", "463,136", "463,120", "+16"] in rows


def test_solutions_name_what_to_type_and_what_it_gives() -> None:
    text = terminal.render(PRINTED)
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]

    assert (
        "  - max-num-seqs: --max-num-seqs 48\n    KV cache 12.30 GiB (12.10–12.50), room for 48.6 (47.8–49.4)" in text
    )
    assert "  - gpu: none\n    no card of the catalogue is large enough\n" in text
    assert ["planned", "5,000", "313", "192", "92", "138 %"] in rows
    assert "128 at once fit now and no longer after the change" in text


@pytest.mark.parametrize("width", [60, 80, 100])
def test_it_fits_the_width(report: LedgerReport, lang: Literal["en", "zh"], width: int) -> None:
    lines = terminal.render(report, lang=lang, width=width).splitlines()

    assert [line for line in lines if cell_len(line) > width] == []


def test_bars_line_up_in_chinese() -> None:
    lines = terminal.render(FITS, lang="zh").splitlines()
    edges = {cell_len(line[: line.index("[")]) for line in lines if BAR.search(line)}

    assert len(edges) == 1


def test_no_english_is_left_in_chinese() -> None:
    """Names, flags and what is the same in both languages apart; sentences come from the analysis and its phrases."""
    for report in REPORTS.values():
        ledger = dataclasses.replace(
            report.ledger, formula="", problems=(), notes=(), gaps=(),
            terms=tuple(dataclasses.replace(one, how="") for one in report.ledger.terms),
            total=report.ledger.total and dataclasses.replace(report.ledger.total, how=""),
            pool=report.ledger.pool and dataclasses.replace(report.ledger.pool, how=""),
        )  # fmt: skip
        solutions = tuple(dataclasses.replace(one, text="") for one in report.solutions)
        text = terminal.render(dataclasses.replace(report, ledger=ledger, solutions=solutions), lang="zh")
        flagless = re.sub(r"--[a-z-]+|\b[a-z]+(-[a-z]+)+|KV cache|CUDA graph", "", text)

        assert re.findall(r"[A-Za-z]{3,} +[A-Za-z]{3,}", flagless) == []


def test_colour_adds_nothing_but_colour(report: LedgerReport, lang: Literal["en", "zh"]) -> None:
    coloured = terminal.render(report, lang=lang, colour=True)

    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert "\x1b[" in coloured
    assert [line.rstrip() for line in bare.splitlines()] == terminal.render(report, lang=lang).splitlines()


def test_no_name_steers_the_terminal() -> None:
    hostile = "evil\x1b[2J\x07\u202e[bold]name\nsecond line"
    problem = Problem(severity="warning", text=hostile, change=hostile)
    ledger = dataclasses.replace(DOES_NOT.ledger, version=hostile, problems=(problem,), notes=(hostile,))
    text = terminal.render(dataclasses.replace(DOES_NOT, model_name=hostile, ledger=ledger))

    assert not set(text) & {"\x1b", "\x07", "\u202e"}
    assert "[bold]name" in text


def test_every_severity_is_a_word() -> None:
    problems = tuple(Problem(severity=one, text="so it is") for one in ("info", "warning", "critical"))
    text = terminal.render(dataclasses.replace(FITS, ledger=dataclasses.replace(FITS.ledger, problems=problems)))

    for word in ("note  so it is", "WARNING  so it is", "CRITICAL  so it is"):
        assert word in text


def test_a_narrow_page_drops_the_bars_and_keeps_the_numbers() -> None:
    text = terminal.render(FITS, width=50)

    assert bars(text) == {}
    assert re.search(r"- weights +61\.03 +77 %$", text, re.MULTILINE)


sizes = st.floats(-200, 400).map(lambda number: round(number, 2))


@given(st.lists(st.tuples(sizes, sizes, sizes).map(sorted), min_size=3, max_size=6), st.sampled_from([60, 80]))
def test_any_ledger_can_be_drawn(drawn: list[list[float]], width: int) -> None:
    ranges = [gib(*bounds) for bounds in drawn]
    ledger = Ledger(
        engine="vllm", version="", era="", formula="", devices=1, starts="perhaps",
        total=term("total", exact(abs(ranges[0].likely))), requested=term("requested", ranges[1]),
        terms=tuple(term("weights", one) for one in ranges[3:]), pool=term("kv_cache", ranges[2]),
    )  # fmt: skip
    text = terminal.render(LedgerReport(ledger=ledger), width=width)

    assert max(map(cell_len, text.splitlines())) <= width
    assert len(chart.rows(ledger)) == len([line for line in text.splitlines() if re.match(r"  [-= ] \w", line)])
    assert len({len(bar) for bar in BAR.findall(text)}) <= 1


@pytest.mark.parametrize("width", [1, 10, 33])
def test_a_bar_has_its_width(width: int) -> None:
    rows = chart.rows(FITS.ledger)

    assert {len(terminal.bar(row, chart.extent(rows), width)) for row in rows} == {width}
    assert terminal.bar(rows[0], 0, width) == " " * width
