"""The account as a whole: what is asked beside the ledger, what is known of the card, what is not known at all."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.ledger.servers import deployment

from llmedic.analysis.ledger import account, subject
from llmedic.analysis.ledger.account import Wanted
from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.analysis.ledger.vllm.candidate import Load
from llmedic.errors import UsageError
from llmedic.model.deployment import Deployment, Flag, HardwareFacts, ModelFacts
from llmedic.model.ledger import Printed

SERVER = deployment("Qwen3-8B", "H100", "0.33.0")
BLOCK_BYTES = 16 * 144 * 1024


def test_the_report_names_what_it_is_about() -> None:
    found = account.of(SERVER)
    assert (found.model_name, found.accelerator) == ("Qwen/Qwen3-8B", "NVIDIA H100 80GB HBM3")
    assert found.ledger.starts == "yes"
    assert found.solutions == ()
    assert found.planned is None
    assert found.settings[0].flag == "--gpu-memory-utilization"


def test_a_size_that_was_printed_makes_the_rest_exact() -> None:
    found = account.of(SERVER, (), Wanted(available_bytes=1000 * BLOCK_BYTES)).ledger
    assert found.pool is not None
    assert (found.pool.size, found.pool.basis) == (exact(1000 * BLOCK_BYTES), "given")
    assert found.cache is not None
    assert found.cache.blocks == exact(1000)
    assert found.cache.concurrency == exact(1000 / 2560)


def test_a_planned_change_is_counted_in_blocks() -> None:
    """Mean input 300 -> 5,000 tokens: the rule of thumb reserves 192 blocks of 32, exactly it is 313 of 16."""
    wanted = Wanted(available_bytes=1600 * BLOCK_BYTES, context_tokens=300, concurrency=64, plan_context=5000)
    planned = account.of(SERVER, (), wanted).planned
    assert planned is not None
    assert (planned.now.blocks, planned.now.quick_blocks, planned.now.requests) == (19, 16, exact(1599 // 19))
    assert (planned.then.blocks, planned.then.quick_blocks, planned.then.requests) == (313, 192, exact(1599 // 313))
    assert planned.concurrency == 64
    assert planned.then.share(64) == 64 * 313 / 1599
    replicas = replace(SERVER, flags=(*SERVER.flags, Flag(name="data_parallel_size", value=2)))
    both = account.of(replicas, (), wanted).planned
    assert both is not None
    assert (both.then.requests, both.then.pool_blocks) == (exact(2 * (1599 // 313)), 2 * 1599)


def test_without_a_pool_nothing_can_be_planned() -> None:
    wanted = Wanted(context_tokens=300, plan_context=5000)
    assert account.of(deployment("Qwen3-8B"), (), wanted).planned is None


@pytest.mark.parametrize(("tokens", "blocks"), [(1, 5), (300, 16), (5000, 192), (6720, 256), (10**6, 256)])
def test_the_rule_of_thumb(tokens: int, blocks: int) -> None:
    assert account.quick_blocks(tokens) == blocks


@given(st.integers(1, 10**7))
def test_the_rule_of_thumb_is_the_published_one(tokens: int) -> None:
    assert account.quick_blocks(tokens) == min(256, ceil(tokens * 1.2 / 32) + 4)


def test_the_load_of_one_request_is_a_load() -> None:
    assert Wanted().load is None
    assert Wanted(context_tokens=500).load == Load(concurrency=1, context_tokens=500)
    assert Wanted(context_tokens=500).planned is None
    planned = Wanted(context_tokens=500, concurrency=7, plan_context=900).planned
    assert planned == Load(concurrency=7, context_tokens=900)


def test_what_the_card_has() -> None:
    named = subject.card(HardwareFacts(accelerator="NVIDIA H100 80GB HBM3"))
    assert named is not None
    assert (named.compute_capability, named.total_bytes.exact) == (9.0, False)
    sized = subject.card(HardwareFacts(accelerator="NVIDIA H100 80GB HBM3", memory_gib=40))
    assert sized is not None
    assert sized.total_bytes == exact(40 * GIB)
    printed = subject.card(HardwareFacts(memory_gib=40), [Printed(id="total", value=79.19 * GIB)])
    assert printed is not None
    assert printed.total_bytes.likely == 79.19 * GIB
    assert subject.card(HardwareFacts()) is None
    assert subject.card(HardwareFacts(accelerator="a card that nobody knows")) is None


def test_solutions_come_with_the_load_or_with_one_longest_request() -> None:
    (found,) = account.of(SERVER, (), Wanted(solve=("max-num-seqs",), context_tokens=4000, concurrency=8)).solutions
    assert "requests of 4,000 tokens fit at once" in found.text
    (alone,) = account.of(SERVER, (), Wanted(solve=("max-num-seqs",))).solutions
    assert "requests of 40,960 tokens fit at once" in alone.text


def test_a_card_can_be_asked_for_where_none_is_there() -> None:
    (found,) = account.of(deployment("Qwen3-8B"), (), Wanted(solve=("gpu",), context_tokens=4000)).solutions
    assert found.change.startswith(("NVIDIA", "Tesla"))
    with pytest.raises(UsageError, match="needs a card"):
        account.of(deployment("Qwen3-8B"), (), Wanted(solve=("max-num-seqs",)))


@pytest.mark.parametrize("engine", ["sglang", "llama.cpp", "tgi"])
def test_other_engines_have_no_solver(engine: str) -> None:
    whole = replace(SERVER, engine=engine, version="")
    assert account.of(whole).ledger.engine == engine
    with pytest.raises(UsageError, match=f"not there for {engine}"):
        account.of(whole, (), Wanted(solve=("gpu",)))


def test_a_model_that_nobody_knows_is_a_gap() -> None:
    unknown = account.of(Deployment(engine="vllm", model=ModelFacts(name="acme/secret"))).ledger
    (gap,) = unknown.gaps
    assert (gap.what, gap.why) == ("the model's shape", "acme/secret is not in the catalogue")
    assert (unknown.starts, unknown.cache, unknown.terms) == ("unknown", None, ())
    assert account.of(Deployment(engine="vllm")).ledger.gaps[0].why == "nobody said which model it is"


def test_a_flag_of_the_quantisation_weighs_the_model_again() -> None:
    plain, fp8 = (
        account.of(replace(SERVER, flags=flags)).ledger.terms[0].size.likely
        for flags in ((), (Flag(name="quantization", value="fp8"),))
    )
    assert fp8 < 0.7 * plain


def test_notes_of_the_model_stay_with_its_ledger() -> None:
    noted = replace(SERVER, model=replace(SERVER.model, notes=("by name",)))
    for engine in ("vllm", "sglang"):
        assert "by name" in account.of(replace(noted, engine=engine)).ledger.notes
