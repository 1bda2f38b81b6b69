"""A ledger for a reader of Chinese has no sentence left in English, whole or in pieces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llmedic import errors
from llmedic.app import ledger
from llmedic.app.request import LedgerRequest
from llmedic.knowledge import models
from llmedic.report.ledger import terminal

LOGS = sorted((Path(__file__).parents[1] / "data" / "ledger" / "logs").glob("*.log"))
MODELS = models.names()[:: len(models.names()) // 24]
GOALS = ("max-num-seqs", "max-model-len", "gpu-memory-utilization", "tensor-parallel-size", "quantization", "gpu")
OLD = {"vllm": "0.10.0", "sglang": "0.4.6", "llama.cpp": "b5000", "tgi": "2.4.0"}
LONG = 4000
"""Columns: no line of the page is broken."""

ENGLISH = re.compile(r"(?<![\w./=-])[a-z]+(?:['’]s)?(?:,? [a-z]+){2,}(?![\w./=-])")
"""Three plain words in a row; flags, files, cards and models have another letter among theirs."""
MIXED = re.compile(r"\b[a-z]{3,} (?:需要|时|由)|(?:需要|时|由) [a-z]{3,} [a-z]{2,}\b")
QUOTED = re.compile(r"'[^']*'")


def english(request: LedgerRequest, log: str = "") -> set[str]:
    """What is left in English in the report, less what quotes the log."""
    report = ledger.run(request)
    lines = [QUOTED.sub("", line) for line in terminal.render(report, lang="zh", width=LONG).splitlines()]
    found = {match[0] for line in lines for match in ENGLISH.finditer(line) if match[0] not in log}
    return found | {line for line in lines if MIXED.search(line)}


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_of_a_log(log: Path) -> None:
    text = log.read_text("utf-8", errors="replace")

    assert english(LedgerRequest(log=log, lang="zh"), text) == set()


def test_of_a_log_under_another_load() -> None:
    changed = LedgerRequest(log=LOGS[-1], concurrency=64, context_tokens=4096, flags=("--max-model-len", "16384"))

    assert english(changed, LOGS[-1].read_text("utf-8")) == set()


@pytest.mark.parametrize("engine", OLD)
def test_of_a_small_card_a_large_one_and_an_old_release(engine: str) -> None:
    served: dict[str, set[str]] = {}
    for number, model in enumerate(MODELS):
        asked = (
            LedgerRequest(model=model, engine=engine, gpu="24GiB", concurrency=3, context_tokens=1_000_000),
            LedgerRequest(model=model, engine=engine, gpu="2x H100", concurrency=8, context_tokens=8192),
            LedgerRequest(model=model, engine=engine, gpu="A10", version=OLD[engine]),
        )
        try:
            served[model] = english(asked[number % len(asked)])
        except errors.CallerError:  # an engine that cannot serve this kind of model
            continue

    assert len(served) > len(MODELS) // 2
    assert {model: left for model, left in served.items() if left} == {}


@pytest.mark.parametrize("model", ["Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B"])
def test_of_what_would_be_enough(model: str) -> None:
    """A load that does not fit, and one that fits once something is changed."""
    for card, context in (("A10", 8192), ("2x H100", 30_000)):
        asked = LedgerRequest(model=model, gpu=card, concurrency=8, context_tokens=context, solve=GOALS)
        assert english(asked) == set()


def test_an_interval_is_written_in_one_way() -> None:
    report = ledger.run(LedgerRequest(model="Qwen/Qwen3-32B", gpu="2x 4090", flags=("--tensor-parallel-size", "2")))
    page = terminal.render(report, lang="zh", width=LONG)

    assert re.search(r"\d（-?[\d.]+–[\d.]+）GiB", page)
    assert not re.search(r"\d \([\d.]+(?:–| to )", page)
    assert not re.search(r"GiB ?（[\d.]+–", page)
