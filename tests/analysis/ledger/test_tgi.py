"""TGI's warm-up, blocks and verdicts, and the tokens that real servers printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from llmedic.analysis.ledger import tgi
from llmedic.errors import InputError
from llmedic.model.deployment import Deployment, Flag, FlagValue, HardwareFacts
from llmedic.model.geometry import CacheLayer, Geometry, WeightPart
from llmedic.model.ledger import Range, Term

GIB = 2**30
CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "ledger" / "tgi.yaml").read_text(encoding="utf-8")
)


def geometry(weights_gib: float = 14.96, *, head_dim: int = 128, kind: str = "full") -> Geometry:
    layer = CacheLayer(kind="full", kv_heads=8, head_dim=head_dim)
    if kind == "mla":
        layer = CacheLayer(kind="mla", latent_dim=576)
    return Geometry(
        architecture="LlamaForCausalLM",
        layers=(layer,) * 32,
        weights=(WeightPart(name="mlp", parameters=1, bytes=weights_gib * GIB, split="tensor", layer=0),),
        hidden_size=4096,
        vocabulary=128256,
        query_heads=32,
        mlp_width=14336,
        positions=131072,
    )


def server(
    version: str = "3.3.5", flags: dict[str, FlagValue] | None = None, environment: dict[str, str] | None = None
) -> Deployment:
    return Deployment(
        engine="tgi",
        version=version,
        flags=tuple(Flag(name=name, value=value) for name, value in (flags or {}).items()),
        environment=environment or {},
    )


def card(gib: float) -> Term:
    return Term(id="total", size=Range(low=gib * GIB, likely=gib * GIB, high=gib * GIB), basis="given")


def shape(case: dict[str, Any]) -> Geometry:
    given = case["shape"]
    count, heads, width = given["layers"]
    return Geometry(
        architecture="test",
        layers=(CacheLayer(kind="full", kv_heads=heads, head_dim=width),) * count,
        weights=(WeightPart(name="mlp", parameters=1, bytes=case["weights_gib"] * GIB, split="tensor", layer=0),),
        hidden_size=given["hidden"],
        vocabulary=given["vocabulary"],
        query_heads=heads,
        mlp_width=given["mlp"],
        positions=131072,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_the_tokens_that_were_printed_lie_in_the_interval(case: dict[str, Any]) -> None:
    found = tgi.ledger(shape(case), server(case["version"], case["flags"]), card(case["card_gib"]))
    printed = case["printed"]
    assert found.cache is not None
    assert found.cache.block_tokens == printed.get("block", 16)
    tokens = printed.get("blocks", printed["tokens"] // found.cache.block_tokens) * found.cache.block_tokens
    assert printed["tokens"] % found.cache.block_tokens == 0
    assert found.cache.printed_tokens.low <= tokens <= found.cache.printed_tokens.high
    assert found.cache.printed_tokens.likely == pytest.approx(tokens, rel=0.35)


@pytest.mark.parametrize(
    ("version", "room", "block"),
    [("1.1.0", 1.0, 16), ("2.0.4", 0.95, 16), ("2.4.1", 0.9, 1), ("3.0.2", 0.95, 1), ("3.2.3", 0.93, 1), ("", 0.9, 1)],
)
def test_room_and_blocks_are_those_of_the_release(version: str, room: float, block: int) -> None:
    found = tgi.resolve(geometry(), server(version))
    assert (found.room, found.block) == (room, block)


def test_room_and_attention_can_be_set() -> None:
    given = tgi.resolve(geometry(), server(environment={"TGI_WIGGLE_ROOM": "0.8", "ATTENTION": "paged"}))
    assert (given.room, given.block) == (0.8, 16)
    assert tgi.resolve(geometry(head_dim=80), server()).block == 256


def test_what_is_left_free_depends_on_the_release() -> None:
    total, used = (Range(low=gib * GIB, likely=gib * GIB, high=gib * GIB) for gib in (80, 20))
    new = tgi.available(tgi.resolve(geometry(), server()), total, used)
    old = tgi.available(tgi.resolve(geometry(), server("2.0.4")), total, used)
    assert new.likely / GIB == pytest.approx(80 * 0.9 - 20)
    assert old.likely / GIB == pytest.approx(60 * 0.95)
    flags: dict[str, FlagValue] = {"cuda_memory_fraction": 0.5}
    half = tgi.available(tgi.resolve(geometry(), server("2.0.4", flags)), total, used)
    assert half.likely / GIB == pytest.approx(20 * 0.95)


def test_logits_of_every_prefill_token_cost_before_they_were_left_out() -> None:
    old = tgi.warmup(geometry(), tgi.resolve(geometry(), server("2.2.0")))
    new = tgi.warmup(geometry(), tgi.resolve(geometry(), server()))
    assert old.likely - new.likely == pytest.approx(7.2 * 4146 * 128256)


@pytest.mark.parametrize(
    ("deployment", "word"),
    [
        (server(flags={"cuda_memory_fraction": 1.5}), "share of the card"),
        (server(environment={"TGI_WIGGLE_ROOM": "wide"}), "not a number"),
        (server(environment={"ATTENTION": "eager"}), "no 'eager'"),
    ],
)
def test_a_value_that_the_engine_would_refuse_is_one_clear_line(deployment: Deployment, word: str) -> None:
    with pytest.raises(InputError, match=word):
        tgi.ledger(geometry(), deployment, card(22))


def test_shards_and_narrow_caches_take_less() -> None:
    whole = tgi.token_bytes(geometry(), tgi.resolve(geometry(), server()))
    assert whole == 32 * 2 * 8 * 128 * 2
    flags: dict[str, FlagValue] = {"tensor_parallel_size": 2, "kv_cache_dtype": "fp8_e4m3fn"}
    assert tgi.token_bytes(geometry(), tgi.resolve(geometry(), server(flags=flags))) == whole / 4


def test_a_prefill_that_is_too_large_comes_with_one_that_fits() -> None:
    flags: dict[str, FlagValue] = {"max_prefill_tokens": 16384}
    found = tgi.ledger(geometry(), server("2.2.0", flags), card(22.06))
    problem = found.problems[0]
    assert (found.starts, problem.cause) == ("no", "prefill-budget-activation-oom")
    smaller: dict[str, FlagValue] = {"max_prefill_tokens": int(problem.change.rpartition(" ")[2])}
    assert tgi.ledger(geometry(), server("2.2.0", smaller), card(22.06)).starts == "yes"


def test_weights_that_are_too_large_need_more_cards() -> None:
    found = tgi.ledger(geometry(30), server(), card(22.06))
    assert (found.starts, found.problems[0].change) == ("no", "--num-shard 2")


def test_a_request_that_is_longer_than_the_cache_does_not_start() -> None:
    flags: dict[str, FlagValue] = {"max_total_tokens_per_request": 131072}
    found = tgi.ledger(geometry(), server(flags=flags), card(22.06))
    problem = found.problems[0]
    assert (found.starts, problem.cause) == ("no", "max-model-len-exceeds-kv-pool")
    shorter: dict[str, FlagValue] = {"max_total_tokens_per_request": int(problem.change.rpartition(" ")[2])}
    assert tgi.ledger(geometry(), server(flags=shorter), card(22.06)).starts == "yes"


def test_what_it_cannot_know_is_a_gap() -> None:
    found = tgi.ledger(geometry(), server(), None)
    assert (found.starts, found.pool, found.gaps[0].what) == ("unknown", None, "memory of the card")
    latent = tgi.ledger(geometry(kind="mla"), server(), card(79.2))
    assert (latent.starts, latent.pool, latent.gaps[0].what) == ("unknown", None, "size of the KV cache")


@pytest.mark.parametrize("count", [None, 1, 2, 4, 8])
@pytest.mark.parametrize("weights_gib", [30, 90, 440])
def test_what_is_advised_starts_when_it_is_typed_and_needs_no_card_that_is_not_there(
    count: int | None, weights_gib: float
) -> None:
    shape, machine = geometry(weights_gib), HardwareFacts(count=count)
    found = tgi.ledger(shape, replace(server(), hardware=machine), card(24)).problems[0]
    if not found.change:
        assert weights_gib > 16 * (count or 16)
        return
    flag, value = found.change.split()
    assert flag == "--num-shard"
    assert int(value) <= (count or 16)
    assert tgi.ledger(shape, server(flags={"tensor_parallel_size": int(value)}), card(24)).starts == "yes"


def test_a_prefill_that_the_launcher_refuses_is_not_advised() -> None:
    flags: dict[str, FlagValue] = {"max_input_tokens": 32000, "max_prefill_tokens": 32000}
    found = tgi.ledger(geometry(20), server(flags=flags), card(24)).problems[0]
    assert found.change.startswith("--num-shard ")
