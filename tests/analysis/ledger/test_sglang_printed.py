"""Figures that real SGLang servers printed: pools, tokens from free memory, slots of state, default shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from llmedic.analysis.ledger.sglang import pool, settings
from llmedic.analysis.ledger.sglang.fraction import fraction
from llmedic.model.deployment import Deployment, Flag
from llmedic.model.geometry import CacheLayer, Geometry, StateTensor

GIB = 2**30
ROUNDING = 0.005 + 1e-6
CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "ledger" / "sglang.yaml").read_text(encoding="utf-8")
)


def layer(kind: str, *numbers: int) -> CacheLayer:
    if kind == "mla":
        return CacheLayer(kind="mla", latent_dim=numbers[0], index_dim=numbers[1])
    heads, width, value, window = (*numbers, 0, 0)[:4]
    shape = "sliding" if kind == "sliding" else "full"
    return CacheLayer(kind=shape, kv_heads=heads, head_dim=width, value_dim=value, window_tokens=window)


def shape(case: dict[str, Any]) -> Geometry:
    layers = [layer(kind, *rest) for kind, count, *rest in case["layers"] for _ in range(count)]
    if "state" in case:
        count, conv, ssm = case["state"]
        states = (StateTensor(name="conv", elements=conv), StateTensor(name="ssm", elements=ssm))
        layers += [CacheLayer(kind="state", state=states)] * count
    return Geometry(
        architecture=case.get("architecture", "test"),
        layers=tuple(layers),
        weights=(),
        hidden_size=1,
        vocabulary=1,
        query_heads=1,
        positions=40960,
    )


def server(case: dict[str, Any]) -> Deployment:
    flags = tuple(Flag(name=name, value=value) for name, value in case["flags"].items())
    return Deployment(engine="sglang", version=case["version"], flags=flags)


def resolved(case: dict[str, Any]) -> settings.Settings:
    return settings.resolve(shape(case), server(case), case.get("smi"))


def with_printed(key: str) -> list[dict[str, Any]]:
    return [case for case in CASES if key in case["printed"]]


def name(case: dict[str, Any]) -> str:
    return str(case["id"])


@pytest.mark.parametrize("case", with_printed("k"), ids=name)
def test_keys_and_values_take_what_was_printed(case: dict[str, Any]) -> None:
    printed = case["printed"]
    sliding = "sliding_tokens" in printed
    tokens = printed["sliding_tokens"] if sliding else printed["tokens"]
    one = pool.cells(shape(case), resolved(case))
    found = pool.printed_gib(one, tokens, resolved(case), sliding=sliding)
    assert found == pytest.approx((printed["k"], printed["v"]), abs=ROUNDING)


@pytest.mark.parametrize("case", with_printed("kv"), ids=name)
def test_latents_take_what_was_printed(case: dict[str, Any]) -> None:
    one = pool.cells(shape(case), resolved(case))
    found = pool.printed_gib(one, case["printed"]["tokens"], resolved(case))
    assert found == (pytest.approx(case["printed"]["kv"], abs=ROUNDING), 0.0)


@pytest.mark.parametrize("case", with_printed("after"), ids=name)
def test_free_memory_and_the_share_give_the_tokens_that_were_printed(case: dict[str, Any]) -> None:
    printed = case["printed"]
    assert printed["before"] == pytest.approx(printed["after"] + printed["usage"], abs=0.011)
    one = pool.cells(shape(case), resolved(case))

    def tokens(after: float, before: float) -> int:
        rest = after - before * (1 - case["default"])
        return pool.pool(one, rest * GIB, resolved(case)).tokens

    low = tokens(printed["after"] - 0.005, printed["before"] + 0.01)
    high = tokens(printed["after"] + 0.005, printed["before"] - 0.01)
    assert low <= printed["tokens"] <= high
    assert tokens(printed["after"], printed["before"]) == pytest.approx(printed["tokens"], rel=0.002)


@pytest.mark.parametrize("case", [case for case in CASES if "default" in case], ids=name)
def test_the_share_that_was_not_typed_is_that_of_the_release(case: dict[str, Any]) -> None:
    assert fraction(shape(case), resolved(case), server(case), case["smi"]).likely == case["default"]


@pytest.mark.parametrize("case", with_printed("conv"), ids=name)
def test_slots_of_state_take_what_was_printed(case: dict[str, Any]) -> None:
    printed = case["printed"]
    slots = pool.state_slots(shape(case), resolved(case), 1e12)
    assert slots == printed["slots"]
    taken = (slots + 1) * pool.state_bytes(shape(case), resolved(case)) / GIB
    assert taken == pytest.approx(printed["conv"] + printed["ssm"], abs=2 * ROUNDING)


@pytest.mark.parametrize("case", with_printed("state_gib"), ids=name)
def test_state_and_cache_share_the_rest_by_their_ratio(case: dict[str, Any]) -> None:
    printed = case["printed"]
    rest = printed["state_gib"] + printed["kv"]
    ratio = resolved(case).state_ratio
    assert printed["state_gib"] == pytest.approx(rest * ratio / (1 + ratio), abs=2 * printed["state_gib"] / 614)


@pytest.mark.parametrize("case", with_printed("full_tokens"), ids=name)
def test_the_sliding_pool_is_a_share_of_the_full_one(case: dict[str, Any]) -> None:
    printed = case["printed"]
    one = pool.cells(shape(case), resolved(case))
    bytes_for_them = printed["full_tokens"] * one.per_token(resolved(case).window_ratio)
    found = pool.pool(one, bytes_for_them + 1, resolved(case))
    assert found.tokens == printed["full_tokens"]
    assert found.sliding_tokens == printed.get("sliding_tokens", printed.get("pool_sliding"))
