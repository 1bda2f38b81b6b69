"""Sizes that real llama.cpp servers printed: caches to the print rounding, the compute buffer inside its interval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from llmedic.analysis.ledger.llamacpp import cache, ledger, settings
from llmedic.model.deployment import Deployment, Flag
from llmedic.model.geometry import CacheLayer, Geometry, StateTensor, WeightPart

MIB = 2**20
ROUNDING = 0.005 + 1e-6
CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "ledger" / "llamacpp.yaml").read_text(encoding="utf-8")
)


def layer(kind: str, *numbers: int) -> CacheLayer:
    if kind == "mla":
        return CacheLayer(kind="mla", latent_dim=numbers[0], index_dim=numbers[1])
    heads, width, *window = numbers
    return CacheLayer(
        kind="sliding" if window else "full", kv_heads=heads, head_dim=width, window_tokens=window[0] if window else 0
    )


def shape(case: dict[str, Any]) -> Geometry:
    given = case["shape"]
    layers = [layer(kind, *rest) for kind, count, *rest in given["layers"] for _ in range(count)]
    if "state" in given:
        count, first, second = given["state"]
        states = (StateTensor(name="conv", elements=first), StateTensor(name="ssm", elements=second))
        layers += [CacheLayer(kind="state", state=states)] * count
    experts, chosen, width = given.get("experts", (0, 0, 0))
    return Geometry(
        architecture="test",
        layers=tuple(layers),
        weights=(WeightPart(name="lm head", parameters=1, bytes=1.0, split="vocabulary"),),
        hidden_size=given.get("hidden", 1),
        vocabulary=given.get("vocabulary", 1),
        query_heads=given.get("heads", 1),
        mlp_width=given.get("mlp", 0),
        experts=experts,
        experts_per_token=chosen,
        expert_width=width,
        positions=262144,
    )


def server(case: dict[str, Any]) -> Deployment:
    flags = tuple(Flag(name=name, value=value) for name, value in case["flags"].items())
    return Deployment(engine="llama.cpp", version=f"b{case['build']}", flags=flags)


def with_printed(key: str) -> list[dict[str, Any]]:
    return [case for case in CASES if key in case["printed"]]


def name(case: dict[str, Any]) -> str:
    return str(case["id"])


@pytest.mark.parametrize("case", with_printed("kv"), ids=name)
def test_every_cache_has_the_size_that_was_printed(case: dict[str, Any]) -> None:
    geometry = shape(case)
    resolved = settings.resolve(geometry, server(case), None)
    caches = cache.layer_caches(geometry, resolved)
    found: dict[tuple[str, int], tuple[float, float, int]] = {}
    for kept, one in zip(geometry.layers, caches, strict=True):
        if one.cells and kept is not None:
            keys, values, _ = found.get((kept.kind, one.cells), (0.0, 0.0, 0))
            found[kept.kind, one.cells] = (keys + one.keys, values + one.values, one.cells)
    assert [cells for _, _, cells in found.values()] == case["printed"]["cells"]
    sizes = [(keys + values) / MIB for keys, values, _ in found.values()]
    assert sizes == pytest.approx(case["printed"]["kv"], abs=ROUNDING)
    keys = [keys / MIB for keys, _, _ in found.values()]
    assert keys == pytest.approx(case["printed"].get("k", keys), abs=ROUNDING)


@pytest.mark.parametrize("case", with_printed("state"), ids=name)
def test_recurrent_states_have_the_size_that_was_printed(case: dict[str, Any]) -> None:
    geometry = shape(case)
    caches = cache.layer_caches(geometry, settings.resolve(geometry, server(case), None))
    assert sum(one.state for one in caches) / MIB == pytest.approx(case["printed"]["state"], abs=ROUNDING)


@pytest.mark.parametrize("case", with_printed("context"), ids=name)
def test_the_context_of_a_memory_breakdown_is_cache_and_state(case: dict[str, Any]) -> None:
    found = ledger(shape(case), server(case), None)
    state = next(term.size.likely for term in found.terms if term.id == "state")
    assert found.pool is not None
    assert (found.pool.size.likely + state) / MIB == pytest.approx(case["printed"]["context"], abs=1)


@pytest.mark.parametrize("case", with_printed("kv_total"), ids=name)
def test_both_caches_together_have_the_size_that_was_printed(case: dict[str, Any]) -> None:
    geometry = shape(case)
    resolved = settings.resolve(geometry, server(case), None)
    caches = cache.layer_caches(geometry, resolved)
    assert sum(one.keys + one.values for one in caches) / MIB == pytest.approx(case["printed"]["kv_total"], abs=0.5)
    assert min(one.cells for one in caches) == case["printed"]["window_cells"]


@pytest.mark.parametrize("case", with_printed("on_card"), ids=name)
def test_a_layer_that_is_not_offloaded_keeps_its_cache_in_host_memory(case: dict[str, Any]) -> None:
    found = ledger(shape(case), server(case), None)
    assert found.pool is not None
    assert found.pool.size.likely / MIB == pytest.approx(case["printed"]["on_card"], abs=ROUNDING)


@pytest.mark.parametrize("case", with_printed("compute"), ids=name)
def test_the_compute_buffer_lies_in_its_interval(case: dict[str, Any]) -> None:
    found = ledger(shape(case), server(case), None)
    size = next(term.size for term in found.terms if term.id == "compute_buffers")
    assert size.low <= case["printed"]["compute"] * MIB <= size.high
    if not case.get("partial"):
        assert size.likely == pytest.approx(case["printed"]["compute"] * MIB, rel=0.1)


def test_the_cases_are_enough() -> None:
    assert len(with_printed("kv")) >= 20
    assert len(with_printed("compute")) >= 10
