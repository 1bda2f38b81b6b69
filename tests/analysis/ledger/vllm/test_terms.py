"""The pool, from model, card and flags alone, held against what real servers printed."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest
import yaml
from tests.analysis.ledger.shapes import dense

from llmedic.analysis.ledger import geometry
from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.analysis.ledger.vllm import settings, terms
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.analysis.ledger.vllm.terms import Card
from llmedic.analysis.ledger.vllm.weights import stage_weights
from llmedic.knowledge import accelerators, models
from llmedic.model.deployment import Deployment, Flag, HardwareFacts, ModelFacts
from llmedic.model.geometry import WeightPart
from llmedic.model.ledger import Range

DATA = Path(__file__).parents[3] / "data" / "ledger"
ROUNDING_BYTES = 0.005 * GIB
H100 = Card(total_bytes=exact(79.19 * GIB), compute_capability=9.0)


class Outcome(NamedTuple):
    error: float
    inside: bool
    half_bar: float


def predicted(server: dict[str, Any]) -> Range:
    found = models.find(server["model"])
    config = server.get("config") or (found.config if found else None)
    assert config is not None, server["model"]
    card = accelerators.find(server["card"])
    gib = server.get("total_gib") or (card.memory_mib.likely / 1024 if card else 0)
    deployment = Deployment(
        engine="vllm",
        version=server["version"],
        flags=tuple(Flag(name=name, value=value) for name, value in server["flags"].items()),
        model=ModelFacts(name=server["model"], config=config),
        hardware=HardwareFacts(
            accelerator=card.name if card else server["card"],
            memory_gib=gib,
            compute_capability=card.capability if card else None,
        ),
    )
    shape = geometry.of(deployment.model, quantization=str(server["flags"].get("quantization", "")))
    seen = Card(
        total_bytes=exact(gib * GIB),
        compute_capability=card.capability if card else None,
        unified=card.unified if card else False,
    )
    return terms.terms(shape, settings.resolve(deployment, shape), seen).pool.size


@cache
def outcomes(file: str) -> tuple[Outcome, ...]:
    found = []
    for server in yaml.safe_load((DATA / file).read_text()):
        if "outlier" in server:
            continue
        size, truth = predicted(server), server["pool_gib"] * GIB
        inside = size.low - ROUNDING_BYTES <= truth <= size.high + ROUNDING_BYTES
        found.append(Outcome(abs(size.likely / truth - 1), inside, (size.high - size.low) / 2 / size.likely))
    return tuple(found)


@pytest.mark.parametrize("file", ["pools.yaml", "heldout.yaml"])
def test_the_median_error_is_below_two_percent(file: str) -> None:
    assert median(outcome.error for outcome in outcomes(file)) <= 0.02


@pytest.mark.parametrize(("file", "share"), [("pools.yaml", 0.9), ("heldout.yaml", 0.8)])
def test_the_truth_lies_in_the_interval(file: str, share: float) -> None:
    assert sum(outcome.inside for outcome in outcomes(file)) >= share * len(outcomes(file))


@pytest.mark.parametrize(("file", "half", "share"), [("pools.yaml", 0.031, 0.85), ("heldout.yaml", 0.055, 0.45)])
def test_the_interval_is_narrow_where_the_pool_is_not_a_small_rest(file: str, half: float, share: float) -> None:
    assert median(outcome.half_bar for outcome in outcomes(file)) <= half
    assert sum(outcome.half_bar <= 0.05 for outcome in outcomes(file)) >= share * len(outcomes(file))


def test_the_terms_add_up_to_what_was_requested() -> None:
    found = terms.terms(dense(weights_gib=15), Settings(version=(0, 21, 0)), H100)
    taken = sum(term.size.likely for term in found.terms)
    assert [term.id for term in found.terms] == ["weights", "activation", "non_torch", "cuda_graphs"]
    assert found.pool.size.likely == pytest.approx(found.requested.size.likely - taken)
    assert found.outside == ()


def test_graphs_lie_outside_in_earlier_releases_and_nowhere_when_eager() -> None:
    before = terms.terms(dense(), Settings(version=(0, 19, 0)), H100)
    assert [term.id for term in before.outside] == ["cuda_graphs"]
    eager = terms.terms(dense(), Settings(version=(0, 19, 0), eager=True), H100)
    assert eager.outside == ()
    assert eager.pool == before.pool


def test_a_size_of_the_cache_bypasses_everything() -> None:
    found = terms.terms(dense(weights_gib=15), Settings(cache_bytes=10 * GIB), H100, reserved_bytes=1 * GIB)
    assert found.pool.size == exact(9 * GIB)
    assert found.pool.basis == "given"


def test_the_tightest_stage_decides() -> None:
    """The last stage samples, so it ends with less than the first although both hold as many layers."""
    geometry_of_two = dense(weights_gib=10)
    one = terms.terms(geometry_of_two, Settings(version=(0, 11, 0), pipeline_parallel=2, max_num_seqs=1024), H100)
    assert "sampling" in next(term.how for term in one.terms if term.id == "activation")


def test_more_stages_than_layers_are_no_fault() -> None:
    found = terms.terms(dense(layers=2, weights_gib=1), Settings(pipeline_parallel=8), H100)
    assert found.pool.size.likely > 0


def test_weights_in_the_hosts_memory_leave_the_card() -> None:
    full = terms.terms(dense(weights_gib=15), Settings(), H100)
    offloaded = terms.terms(dense(weights_gib=15), Settings(), H100, offload_bytes=10 * GIB)
    assert offloaded.pool.size.likely - full.pool.size.likely == pytest.approx(10 * GIB)
    assert offloaded.terms[0].how == "15.00 GiB - 10.00 GiB in host memory"


def test_slots_of_adapters_are_taken_before_the_first_adapter_comes() -> None:
    found = terms.terms(dense(layers=32), Settings(lora_slots=4, lora_rank=64), H100)
    slots = next(term for term in found.terms if term.id == "lora")
    assert 0.5 * GIB < slots.size.likely < 2 * GIB
    twice = terms.terms(dense(layers=32), Settings(lora_slots=8, lora_rank=64), H100)
    assert next(term for term in twice.terms if term.id == "lora").size.likely == 2 * slots.size.likely


@pytest.mark.parametrize(
    ("version", "tensor", "capability", "printed_gib"),
    [
        ((0, 11, 0), 1, 9.0, 0.13),
        ((0, 11, 0), 2, 9.0, 0.54),
        ((0, 19, 0), 1, 9.0, 0.25),
        ((0, 19, 0), 2, 9.0, 2.07),
        ((0, 19, 0), 4, 9.0, 2.21),
        ((0, 10, 2), 8, 8.9, 0.21),
        ((0, 10, 2), 1, 8.9, 0.02),
        ((0, 19, 1), 1, 8.0, 0.09),
    ],
)
def test_printed_memory_outside_pytorch(
    version: tuple[int, ...], tensor: int, capability: float, printed_gib: float
) -> None:
    card = Card(total_bytes=exact(80 * GIB), compute_capability=capability)
    release = ".".join(map(str, version))
    size = terms.non_torch(dense(), Settings(version=version, tensor_parallel=tensor), card, release).size
    assert size.low / GIB <= printed_gib <= size.high / GIB


def test_shared_memory_makes_the_pool_uncertain() -> None:
    own, shared = (
        terms.non_torch(dense(), Settings(), Card(total_bytes=exact(120 * GIB), unified=unified), "").size
        for unified in (False, True)
    )
    assert shared.likely > own.likely + 2 * GIB
    assert shared.high - shared.low > 4 * (own.high - own.low)


@pytest.mark.parametrize(
    ("version", "quantization", "unified", "word"),
    [
        ((0, 26, 0), "awq", False, "measured"),
        ((0, 28, 0), "awq", False, "repacked weights"),
        ((0, 28, 0), "", False, "measured"),
        ((0, 28, 0), "awq", True, "on the host"),
    ],
)
def test_the_larger_part_of_what_pytorch_does_not_know_is_told(
    version: tuple[int, ...], quantization: str, unified: bool, word: str
) -> None:
    card = Card(total_bytes=exact(80 * GIB), compute_capability=8.0, unified=unified)
    shape = dense(architecture="MixtralForCausalLM", quantization=quantization)
    how = terms.non_torch(shape, Settings(version=version), card, ".".join(map(str, version))).how
    assert how.endswith(word) if word == "measured" else word in how


def test_weights_of_one_byte_leave_smaller_holes_than_packed_ones_and_none_counted_before() -> None:
    card = Card(total_bytes=exact(80 * GIB), compute_capability=8.0)
    plain, fp8, awq = (
        terms.non_torch(dense(quantization=name), Settings(version=(0, 28, 0)), card, "0.28.0").size.likely
        for name in ("", "fp8", "awq")
    )
    assert plain < fp8 < awq
    before = {
        terms.non_torch(dense(quantization=name), Settings(version=(0, 26, 0)), card, "0.26.0").size
        for name in ("", "fp8", "awq")
    }
    assert len(before) == 1


def test_weights_follow_from_no_more_settings_than_a_search_tells_apart() -> None:
    """Every other setting leaves the weights alone, so that candidates of a search may share them."""
    shape = replace(
        dense(weights=(WeightPart(name="mlp", parameters=1, bytes=8 * GIB, split="tensor", layer=0),)),
        draft_weights=(WeightPart(name="draft", parameters=1, bytes=GIB, split="tensor"),),
    )
    usual = Settings(version=(0, 19, 0))
    plain = stage_weights(shape, usual, 0, "0.19.0", 9.0)
    for field in fields(Settings):
        value = getattr(usual, field.name)
        if field.name not in terms.WEIGHED and isinstance(value, bool | int | float):
            changed = not value if isinstance(value, bool) else value + 1
            other = replace(usual, **{field.name: changed})  # type: ignore[arg-type]
            assert stage_weights(shape, other, 0, "0.19.0", 9.0) == plain, field.name
    assert stage_weights(shape, replace(usual, tensor_parallel=2), 0, "0.19.0", 9.0) != plain
