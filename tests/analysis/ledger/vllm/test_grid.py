"""Combinations come from the most modest on, each once, and none that cannot be."""

from __future__ import annotations

from tests.analysis.ledger.servers import deployment, variants

from llmedic.analysis.ledger.vllm import grid
from llmedic.analysis.ledger.vllm.candidate import Load

LOAD = Load(concurrency=20, context_tokens=4000)


def key(one: grid.Combination) -> tuple[object, ...]:
    return one.degree, one.quantization, one.card and one.card.name, one.share, one.cap


def test_every_combination_is_there_once() -> None:
    base = variants(deployment("Qwen3-32B", "H100", count=4))
    found = [key(one) for one in grid.combinations(base, LOAD, ("tensor-parallel-size", "gpu-memory-utilization"))]
    assert len(found) == len(set(found)) == 3 * 6  # as it is (0.9), 0.91 to 0.95
    assert [degree for degree, *_ in found[::6]] == [1, 2, 4]


def test_a_full_grid_is_thousands() -> None:
    base = variants(deployment("Qwen3-32B", "H100"))
    found = [key(one) for one in grid.combinations(base, LOAD, grid.AXES)]
    assert len(found) == len(set(found)) > 5000


def test_the_order_is_that_of_what_it_costs() -> None:
    base = variants(deployment("Qwen3-32B"))
    found = list(grid.combinations(base, LOAD, ("gpu", "quantization", "tensor-parallel-size")))
    names = ["", *grid.QUANTISATIONS]
    order = [
        (one.degree, names.index(one.quantization or ""), one.card and (one.card.memory.likely, one.card.name))
        for one in found
    ]
    assert order == sorted(order)


def test_the_cap_is_never_below_the_load() -> None:
    base = variants(deployment("Qwen3-8B", "H100", max_num_seqs=8))
    found = list(grid.combinations(base, LOAD, ("max-num-seqs",)))
    assert [one.cap for one in found] == [20, 32, 64, 128, 256, 512, 1024]
    assert all(one.server.settings.max_num_seqs == one.cap for one in found)
    (alone,) = grid.combinations(base, LOAD, ())
    assert (alone.cap, alone.values) == (20, {"max_num_seqs": 20})


def test_each_card_has_its_own_defaults() -> None:
    base = variants(deployment("Qwen3-8B", version="0.33.0"))
    caps = {one.card.name: one.server.settings.max_num_seqs
            for one in grid.combinations(base, LOAD, ("gpu",)) if one.card}  # fmt: skip
    assert (caps["NVIDIA L4"], caps["NVIDIA H200"]) == (256, 1024)


def test_a_quantisation_without_a_kernel_is_left_out() -> None:
    base = variants(deployment("Qwen3-8B", "V100", "0.33.0"))
    found = {one.quantization for one in grid.combinations(base, LOAD, ("quantization",))}
    assert "awq" not in found
    assert "" in found


def test_what_is_typed_and_what_is_bought() -> None:
    base = variants(deployment("Qwen3-32B", "H200", "0.33.0"))
    by_name = {one.quantization: one for one in grid.combinations(base, LOAD, ("quantization",))}
    assert (by_name["fp8"].bought, by_name["fp8"].values) == (("", ""), {"quantization": "fp8"})
    assert (by_name["awq"].bought, by_name["awq"].values) == (("", "checkpoint: awq"), {})


def test_a_quantised_model_weighs_less() -> None:
    sizes = {
        name: sum(part.bytes for part in one.candidate.geometry.weights)
        for name, one in grid.quantised(variants(deployment("Qwen3-32B", "H100")))
    }
    assert sizes[""] > sizes["fp8"] > sizes["awq"]
    assert all(size < sizes[""] for name, size in sizes.items() if name)


def test_groups_of_a_quantisation_limit_the_degrees() -> None:
    """29,568 / 2 is no multiple of a group of 128."""
    base = variants(deployment("Qwen2.5-72B-Instruct", "H200", "0.33.0"))
    axes = ("tensor-parallel-size", "quantization")
    found = {(one.degree, one.quantization) for one in grid.combinations(base, LOAD, axes)}
    assert (2, "") in found
    assert (2, "awq") not in found


def test_cards_are_common_and_grow() -> None:
    cards = grid.cards()
    assert all(card.common and card.vendor == "nvidia" and not card.unified for card in cards)
    assert len(cards) >= 12
    assert [card.memory.likely for card in cards] == sorted(card.memory.likely for card in cards)
