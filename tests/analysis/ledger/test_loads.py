"""Whether a load fits a pool of tokens."""

from __future__ import annotations

import pytest

from llmedic.analysis.ledger import account
from llmedic.errors import UsageError
from llmedic.knowledge import models
from llmedic.model.deployment import Deployment, Flag, HardwareFacts, ModelFacts
from llmedic.model.ledger import Problem


def met(engine: str, context: int | None, concurrency: int | None, **flags: int | float) -> tuple[Problem, ...]:
    known = models.find("Qwen3-8B")
    assert known is not None
    deployment = Deployment(
        engine=engine,
        flags=tuple(Flag(name=name, value=value, spelled=name, origin="args") for name, value in flags.items()),
        model=ModelFacts(name="Qwen3-8B", config=known.config),
        hardware=HardwareFacts(accelerator="NVIDIA L40S"),
    )
    wanted = account.Wanted(context_tokens=context, concurrency=concurrency)
    return account.of(deployment, wanted=wanted).ledger.problems


@pytest.mark.parametrize(
    ("engine", "context", "concurrency", "severity", "says"),
    [
        ("sglang", 4096, 8, "info", "8 requests of 4,096 tokens need 32,768 tokens of KV cache, the pool has at least"),
        ("sglang", 4096, 60, "warning", "they do not fit at once"),
        ("sglang", 50_000, 1, "critical", "50,000 tokens are longer than the 40,960 that are served: they are refused"),
        ("tgi", 4096, 8, "info", "they fit at once"),
        ("tgi", 4000, 42, "warning", "it is not certain that they fit at once"),
        ("tgi", 4096, 500, "warning", "they do not fit at once"),
        ("llama.cpp", 8192, 4, "info", "the pool has at least 40,960: they fit at once"),
        ("llama.cpp", 40_000, 4, "warning", "the pool has 40,960: they do not fit at once"),
        ("ollama", 90_000, 1, "critical", "they are refused"),
    ],
)
def test_a_load_is_answered(engine: str, context: int, concurrency: int, severity: str, says: str) -> None:
    found = met(engine, context, concurrency)

    assert [problem.severity for problem in found if says in problem.text] == [severity]


def test_more_requests_than_slots_wait() -> None:
    found = met("llama.cpp", 2048, 10, ctx_size=16_384, max_num_seqs=4)

    assert "4 requests of 2,048 tokens need 8,192 tokens of KV cache" in found[-2].text
    assert (found[-1].severity, found[-1].text) == (
        "warning",
        "6 of 10 requests wait: the server runs 4 at once",
    )


def test_a_cap_of_running_requests_is_no_matter_of_memory() -> None:
    found = met("sglang", 1024, 20, max_num_seqs=16)

    assert [problem.text for problem in found][-1] == "4 of 20 requests wait: the server runs 16 at once"


def test_a_number_of_requests_alone_is_of_the_longest_that_are_served() -> None:
    assert met("sglang", None, 500) == met("sglang", 40_960, 500)


@pytest.mark.parametrize("engine", ["sglang", "llama.cpp", "tgi"])
def test_what_is_not_answered_is_refused(engine: str) -> None:
    known = models.find("Qwen3-8B")
    assert known is not None
    deployment = Deployment(engine=engine, model=ModelFacts(name="Qwen3-8B", config=known.config))
    with pytest.raises(UsageError, match="--solve, --plan-context and --available"):
        account.of(deployment, wanted=account.Wanted(context_tokens=1, concurrency=1, solve=("gpu",)))
