"""A diagnosis and a ledger of the same failed start say the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from llmedic.analysis.ledger import witness
from llmedic.analysis.view import View
from llmedic.app import evidence, judging, ledger
from llmedic.app.request import LedgerRequest
from llmedic.collect import logs
from llmedic.model.deployment import Deployment, Flag, HardwareFacts, ModelFacts
from llmedic.model.evidence import Evidence, Symptoms

LOGS = Path(__file__).parent.parent.parent / "data" / "ledger" / "logs"
FAILED = sorted(LOGS.glob("fails-*.log"))
NOT_MEMORY = ("fails-not-memory", "fails-serving")


def read(path: Path) -> Evidence:
    return evidence.of(logs.capture([str(path)], stdin=sys.stdin.buffer))


@pytest.mark.parametrize("log", FAILED, ids=lambda log: log.stem)
def test_a_diagnosis_has_the_change_and_the_arithmetic_of_the_ledger(log: Path) -> None:
    if log.stem in NOT_MEMORY:
        assert judging.view(read(log)).startup is None
        return
    problem = ledger.run(LedgerRequest(log=log)).ledger.problems[0]

    top = judging.judge(read(log), "en").causes[0]

    assert top.id == problem.cause
    said = [fact.value for fact in top.evidence if fact.source == "ledger"]
    assert (problem.text in said) is any(letter.isdigit() for letter in problem.text)
    assert top.change is not None
    if problem.change:
        assert top.change.add == problem.change
        assert top.change.to in ("true", problem.change.split()[1])


def failing(count: int | None, *flags: Flag, model: str = "Qwen/Qwen3-32B", seen: str = "start-fails") -> View:
    deployment = Deployment(
        engine="vllm",
        version="0.11.0",
        flags=flags,
        model=ModelFacts(name=model),
        hardware=HardwareFacts(accelerator="NVIDIA L4", count=count),
    )
    return View(Evidence(deployment=deployment, symptoms=Symptoms(seen=frozenset({seen}))))


def test_without_a_log_somebody_has_to_say_that_it_fails() -> None:
    start = failing(4, Flag(name="tensor_parallel_size", value=1)).startup

    assert start is not None
    assert witness.decides(start)
    problem = witness.about(start, "weights-do-not-fit")
    assert problem is not None
    assert "61.0" in problem.text
    assert witness.about(start, "kv-pool-exhausted-preemption") is None
    assert failing(1, seen="slow-first-token").startup is None


@pytest.mark.parametrize(
    ("count", "flags", "known"),
    [
        (None, (), True),
        (1, (), True),
        (8, (), False),
        (8, (Flag(name="max_num_seqs", value=8, origin="case"),), False),
        (8, (Flag(name="max_num_seqs", value=8, origin="args"),), True),
        (8, (Flag(name="tensor_parallel_size", value=8, origin="case"),), True),
    ],
)
def test_a_machine_with_several_cards_may_use_any_of_them(
    count: int | None, flags: tuple[Flag, ...], known: bool
) -> None:
    view = failing(count, *flags)

    assert view.knows_shards is known
    assert (view.server is not None) is known
    assert (view.startup is not None) is known


def test_a_setting_that_cannot_be_is_no_ledger() -> None:
    negative = Flag(name="tensor_parallel_size", value=-1)
    deployment = Deployment(engine="vllm", version="0.11.0", flags=(negative,), model=ModelFacts(name="Qwen/Qwen3-8B"))

    assert witness.failed(deployment, (), said=True) is None
