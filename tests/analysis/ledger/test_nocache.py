"""Encoders under the engines that are not vLLM: there is no cache to size."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.analysis.ledger.test_sglang import card, geometry, server

from llmedic.analysis.ledger import llamacpp, nocache, sglang, tgi
from llmedic.model.deployment import Deployment

ENCODER = replace(geometry(weights_gib=0.2), layers=(None,) * 12)


def test_a_model_with_any_cached_layer_keeps_a_cache() -> None:
    assert nocache.keeps_cache(geometry())
    assert not nocache.notes(geometry())
    assert not nocache.keeps_cache(ENCODER)


@pytest.mark.parametrize(("engine", "module"), [("sglang", sglang), ("tgi", tgi), ("llama.cpp", llamacpp)])
@pytest.mark.parametrize("gib", [None, 24.0])
def test_there_is_nothing_to_size_and_the_start_is_unknown(engine: str, module: object, gib: float | None) -> None:
    deployment = Deployment(engine=engine)
    found = module.ledger(ENCODER, deployment, card(gib) if gib else None)  # type: ignore[attr-defined]
    assert (found.starts, found.pool, found.cache, found.problems) == ("unknown", None, None, ())
    assert "the model keeps no KV cache: nothing to size" in found.notes


def test_an_encoder_that_is_larger_than_the_card_still_does_not_start() -> None:
    found = sglang.ledger(replace(geometry(weights_gib=40), layers=(None,) * 12), server(), card(24))
    assert found.starts == "no"
    assert found.problems
