"""How parallelism divides weights."""

import pytest
from tests.analysis.ledger.shapes import dense

from llmedic.analysis.ledger.ranges import GIB
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.analysis.ledger.vllm.weights import stage_weights
from llmedic.model.geometry import Geometry, Split, WeightPart


def part(split: Split, size: float = 64.0, *, name: str = "other", layer: int | None = None) -> WeightPart:
    return WeightPart(name=name, parameters=0, bytes=size, split=split, layer=layer)


@pytest.mark.parametrize(
    ("split", "tensor", "share"),
    [
        ("none", 8, 64),
        ("tensor", 8, 8),
        ("key-value", 4, 16),
        ("key-value", 8, 8),
        ("key-value", 16, 8),
        ("expert", 4, 16),
    ],
)
def test_the_share_of_a_rank(split: Split, tensor: int, share: float) -> None:
    held = part(split, 64 * GIB, layer=0 if split == "key-value" else None)
    assert likely(dense(kv_heads=8, experts=16, weights=(held,)), Settings(tensor_parallel=tensor)) == about(share)


def test_the_vocabulary_is_padded_to_64_rows() -> None:
    geometry = dense(vocabulary=49155, weights=(part("vocabulary", 49155 * 2**20),))
    assert likely(geometry, Settings(tensor_parallel=2)) == about(49216 / 2 / 1024)


def test_expert_parallel_ranks_hold_whole_experts() -> None:
    geometry = dense(experts=10, weights=(part("expert", 100 * GIB),))
    assert likely(geometry, Settings(tensor_parallel=2, data_parallel=2, expert_parallel=True)) == about(30)
    assert likely(geometry, Settings(tensor_parallel=2, data_parallel=2)) == about(25)


def test_stages_hold_their_layers_and_the_ends_the_vocabulary() -> None:
    weights = (
        part("none", 10 * GIB, name="embedding"),
        *(part("none", 1 * GIB, name="mlp", layer=layer) for layer in range(5)),
        part("none", 12 * GIB, name="lm head"),
    )
    geometry = dense(layers=5, weights=weights)
    sizes = [likely(geometry, Settings(pipeline_parallel=2), stage) for stage in (0, 1)]
    assert sizes == about([10 + 3, 2 + 12])


def test_a_tied_embedding_is_on_both_ends() -> None:
    weights = (part("none", 10 * GIB, name="embedding"), part("none", 1 * GIB, name="mlp", layer=0))
    geometry = dense(layers=4, weights=weights)
    sizes = [likely(geometry, Settings(pipeline_parallel=4), stage) for stage in range(4)]
    assert sizes == about([11, 0, 0, 10])


def test_draft_weights_count_while_speculation_is_on() -> None:
    draft = (part("none", 2 * GIB, name="draft"),)
    geometry = dense(weights_gib=1, draft_weights=draft)
    assert likely(geometry, Settings(), 0) == about(1)
    assert likely(geometry, Settings(speculative_tokens=2), 0) == about(3)
    assert likely(geometry, Settings(speculative_tokens=2, draft_layers=False), 0) == about(1)


def test_what_was_assumed_widens_the_interval() -> None:
    known, assumed = (
        stage_weights(dense(weights_gib=10, unsure=unsure), Settings(), 0, "0.19.0").size
        for unsure in ((), ("quantisation",))
    )
    assert assumed.low < known.low < known.high < assumed.high


@pytest.mark.parametrize("quantization", ["", "fp8", "awq", "mxfp4"])
def test_a_quantised_checkpoint_weighs_about_what_it_says(quantization: str) -> None:
    size = stage_weights(dense(weights_gib=10, quantization=quantization), Settings(), 0, "0.19.0").size
    assert 9.8 * GIB < size.low <= size.likely <= size.high < 10.5 * GIB


def test_the_arithmetic_is_told() -> None:
    settings = Settings(tensor_parallel=2, pipeline_parallel=2)
    assert (
        stage_weights(dense(weights_gib=10), settings, 0, "").how
        == "10.00 GiB over tensor 2, pipeline 2 parallel ranks"
    )


def test_tables_of_positions_lie_whole_on_every_rank() -> None:
    numbers = GIB // 4
    one, other = (
        stage_weights(dense(weights_gib=1, rotary_numbers=count), Settings(tensor_parallel=2), 0, "")
        for count in (0, numbers)
    )
    assert other.size.likely - one.size.likely == numbers * 2
    assert other.how == "1.00 GiB over tensor 2 parallel ranks + 0.50 GiB of position tables"


@pytest.mark.parametrize(
    ("capability", "version", "low", "high"),
    [
        (8.0, "0.19.0", 65.9, 66.1),
        (9.0, "0.11.0", 64.2, 66.1),
        (9.0, "0.14.1", 64.0, 65.0),
        (10.0, "0.19.0", 65.9, 66.1),
        (None, "0.28.0", 60.5, 66.1),
    ],
)
def test_the_kernel_of_mxfp4_experts_decides_their_padding(
    capability: float | None, version: str, low: float, high: float
) -> None:
    """66 GiB of padded experts, all on one card."""
    experts = part("expert", 66 * GIB, name="experts")
    shape = dense(experts=128, quantization="mxfp4", weights=(experts,))
    size = stage_weights(shape, Settings(), 0, version, capability).size
    assert low == about(size.low / GIB)
    assert high == pytest.approx(size.high / GIB, abs=0.25)


def about(gib: object) -> object:
    """Buffers that are built while loading come on top."""
    return pytest.approx(gib, abs=0.1)


def likely(geometry: Geometry, settings: Settings, stage: int = 0) -> float:
    return stage_weights(geometry, settings, stage, "0.19.0").size.likely / GIB


def test_weights_of_unknown_width_lie_between_four_bits_and_sixteen() -> None:
    one = WeightPart(name="other", parameters=8 * GIB, bytes=4.5 * GIB, split="none")
    size = stage_weights(dense(weights=(one,), width_known=False), Settings(), 0, "0.19.0").size
    assert (size.low / GIB, size.likely / GIB, size.high / GIB) == pytest.approx((4, 4.5, 16), abs=0.2)
