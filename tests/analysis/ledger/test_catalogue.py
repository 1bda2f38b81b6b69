"""Every catalogued model has a geometry, with as many parameters as transformers counts for it."""

from __future__ import annotations

import pytest

from llmedic.analysis.ledger import geometry
from llmedic.knowledge import models
from llmedic.model.deployment import ModelFacts
from llmedic.model.geometry import Geometry

RECORDS = list(models.records())

UNSURE = {"google/gemma-3n-E4B-it", "baichuan-inc/Baichuan2-7B-Chat", "openai/whisper-large-v3-turbo"}
"""Models with a part that the geometry does not know, and says so."""


def of(name: str) -> Geometry:
    found = models.find(name)
    assert found is not None
    return geometry.of(ModelFacts(name=name, config=found.config))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_model_of_the_catalogue_has_a_geometry(record: models.ModelRecord) -> None:
    found = of(record.name)
    total = sum(part.parameters for part in found.weights)
    assert bool(found.unsure) == (record.name in UNSURE)
    assert found.layers
    assert total == pytest.approx(record.parameters or total, rel=0.005)
    for variant in record.variants:
        stored = of(variant.name)
        assert sum(part.parameters for part in stored.weights) == total
        assert sum(part.bytes for part in stored.weights) < sum(part.bytes for part in found.weights)


@pytest.mark.parametrize(
    ("name", "full", "others"),
    [
        ("Llama-3.1-8B", (32, 8, 128), {}),
        ("Llama-3.1-70B", (80, 8, 128), {}),
        ("Mistral-7B-v0.3", (32, 8, 128), {}),
        ("Mistral-Small-3.2-24B-Instruct-2506", (40, 8, 128), {}),
        ("llava-v1.6-mistral-7b", (32, 8, 128), {}),
        ("Qwen2.5-0.5B", (24, 2, 64), {}),
        ("Qwen2.5-1.5B", (28, 2, 128), {}),
        ("Qwen2.5-3B", (36, 2, 128), {}),
        ("Qwen2.5-7B", (28, 4, 128), {}),
        ("Qwen2.5-14B", (48, 8, 128), {}),
        ("Qwen3-0.6B", (28, 8, 128), {}),
        ("Qwen3-8B", (36, 8, 128), {}),
        ("Qwen3-14B", (40, 8, 128), {}),
        ("Qwen3-32B", (64, 8, 128), {}),
        ("Qwen3-30B-A3B", (48, 4, 128), {}),
        ("Qwen3-235B-A22B", (94, 4, 128), {}),
        ("granite-4.0-micro", (40, 8, 64), {}),
        ("gpt-oss-20b", (12, 8, 64), {"sliding": (12, 8, 64)}),
        ("gpt-oss-120b", (18, 8, 64), {"sliding": (18, 8, 64)}),
        ("Llama-4-Scout-17B-16E", (12, 8, 128), {"chunked": (36, 8, 128)}),
        ("gemma-4-31B", (10, 4, 512), {"sliding": (50, 16, 256)}),
        ("gemma-4-E2B", (3, 1, 512), {"sliding": (12, 1, 256)}),
        ("Qwen3-Next-80B-A3B", (12, 2, 256), {"state": (36, 0, 0)}),
        ("Qwen3.5-9B", (8, 4, 256), {"state": (24, 0, 0)}),
        ("Qwen3.6-27B", (16, 4, 256), {"state": (48, 0, 0)}),
        ("Qwen3.6-35B-A3B", (10, 2, 256), {"state": (30, 0, 0)}),
    ],
)
def test_caches_are_those_of_servers_that_ran(
    name: str, full: tuple[int, int, int], others: dict[str, tuple[int, int, int]]
) -> None:
    cached: dict[str, tuple[int, int, int]] = {}
    for layer in of(name).layers:
        if layer is not None:
            count, _, _ = cached.get(layer.kind, (0, 0, 0))
            cached[layer.kind] = (count + 1, layer.kv_heads, layer.head_dim)
    assert cached == {"full": full, **others}


def test_latent_caches_are_one_per_layer() -> None:
    layers = [layer for layer in of("moonshotai/Kimi-K2-Thinking").layers if layer is not None]
    assert {(layer.kind, layer.latent_dim) for layer in layers} == {("mla", 512 + 64)}
    assert len(layers) == 61
