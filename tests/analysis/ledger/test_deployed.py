"""The server that evidence is about: known by its files, its name or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.analysis.ledger.servers import deployment

from llmedic.analysis.ledger import deployed
from llmedic.analysis.ledger.ranges import GIB
from llmedic.model.deployment import Deployment, Flag, ModelFacts
from llmedic.model.evidence import LogEvent

SERVER = deployment("Qwen3-8B", "H100", "0.11.0", max_model_len=8192)


def printed(gib: float) -> LogEvent:
    return LogEvent(id="vllm-pool-gib", level="info", text="", fields={"gib": gib})


def test_a_name_is_completed_from_the_catalogue() -> None:
    for named in (
        Deployment(model=ModelFacts(name="Qwen/Qwen3-8B")),
        Deployment(flags=(Flag(name="model", value="Qwen/Qwen3-8B"),)),
    ):
        found = deployed.completed(named)
        assert found.model.config["num_hidden_layers"] == 36
        assert found.model.name == "Qwen/Qwen3-8B"
    own = Deployment(model=ModelFacts(name="Qwen/Qwen3-8B", config={"num_hidden_layers": 1}))
    assert deployed.completed(own) is own
    assert deployed.completed(Deployment()) == Deployment()
    tuned = deployed.completed(Deployment(model=ModelFacts(name="acme/Qwen3-8B-tuned")))
    assert any("not in the catalogue" in note for note in tuned.model.notes)


def test_the_most_exact_size_of_the_pool_counts() -> None:
    block_bytes = 16 * 144 * 1024
    for blocks, pool_gib, events, likely in (
        (1000, 9.0, (printed(5.0),), 1000 * block_bytes),
        (None, 9.0, (printed(5.0),), 5 * GIB),
        (None, 9.0, (), 9 * GIB),
    ):
        found = deployed.server(SERVER, events, blocks=blocks, pool_gib=pool_gib)
        assert found is not None
        assert found.known_pool is not None
        assert found.known_pool.likely == likely
    unknown = deployed.server(SERVER, ())
    assert unknown is not None
    assert unknown.known_pool is None
    assert unknown.pool().likely > 0


def test_without_a_card_the_server_is_there_all_the_same() -> None:
    found = deployed.server(deployment("Qwen3-8B"), ())
    assert found is not None
    assert found.card.total_bytes.likely == 0


@pytest.mark.parametrize(
    "whole",
    [
        replace(SERVER, engine="sglang"),
        Deployment(engine="vllm"),
        Deployment(engine="vllm", model=ModelFacts(name="nobody/knows")),
        replace(SERVER, flags=(Flag(name="max_num_seqs", value="many"),)),
        replace(SERVER, model=ModelFacts(name="x", config={"num_hidden_layers": -1})),
    ],
)
def test_what_makes_no_server_is_none(whole: Deployment) -> None:
    assert deployed.server(whole, ()) is None
