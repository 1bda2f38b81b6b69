"""The ledger in a ticket: the same parts, and nothing from outside becomes markup."""

from __future__ import annotations

import dataclasses
import re
from typing import Literal

from tests.report.ledger.conftest import DOES_NOT, FITS, PRINTED, UNKNOWN

from llmedic.model.ledger import LedgerReport, Problem, Solution
from llmedic.report.ledger import markdown


def test_the_parts_stand_in_order() -> None:
    text = markdown.render(DOES_NOT)
    order = [
        "# LLMedic ledger: it does not start",
        "**65.2 GiB (64.9–65.5) are missing",
        "> **CRITICAL**: weights of 131.43 GiB do not fit into 71.26 GiB (`llmedic explain weights-do-not-fit`)",
        "> would fit: `--tensor-parallel-size 4`",
        "| device memory | 79.18 |",
        "| **KV cache** | -65.2 |",
        "### How each was reached",
    ]

    places = [text.index(part) for part in order]

    assert places == sorted(places)


def test_every_table_is_whole(report: LedgerReport, lang: Literal["en", "zh"]) -> None:
    text = markdown.render(report, lang=lang)
    for block in text.split("\n\n"):
        if block.startswith("|"):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_all_that_was_asked_for_is_there() -> None:
    text = markdown.render(PRINTED)

    assert "| weights | 3.42 GiB | 3.40 GiB | +0.02 GiB |" in text
    assert "| planned | 5,000 | 313 | 192 | 92 | 138 % |" in text
    assert (
        "| `max-num-seqs` | `--max-num-seqs 48` | KV cache 12.30 GiB (12.10–12.50), room for 48.6 (47.8–49.4)" in text
    )
    assert "| `gpu` | none |" in text


def test_a_gap_names_the_command() -> None:
    assert "- **the card**: nobody said which (how: `llmedic ledger Qwen3-32B --gpu H100`)" in markdown.render(UNKNOWN)


def test_headings_are_translated() -> None:
    text = markdown.render(FITS, lang="zh")

    for words in ("# LLMedic 显存账本：可以启动", "单卡显存", "KV cache 容量", "各项如何得出", "所用参数"):
        assert words in text


def test_no_name_becomes_markup() -> None:
    hostile = "<script>alert(1)</script> | [x](y) `z`\n# head \x1b[31m"
    ledger = dataclasses.replace(DOES_NOT.ledger, problems=(Problem(severity="info", text=hostile, change=hostile),))
    solved = (Solution(goal="gpu", text=hostile, change=hostile),)
    text = markdown.render(dataclasses.replace(DOES_NOT, model_name=hostile, ledger=ledger, solutions=solved))

    outside_code = re.sub(r"(`+).*?\1", "", text.replace("\\`", ""))
    assert "\x1b" not in text
    assert "\n# head" not in text
    assert re.search(r"(?<!\\)<script", outside_code) is None
    assert re.search(r"(?<!\\)\[x\]", outside_code) is None
