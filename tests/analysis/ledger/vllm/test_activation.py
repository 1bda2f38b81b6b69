"""The activation peak, held against what real servers printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.analysis.ledger.shapes import dense

from llmedic.analysis.ledger.ranges import GIB
from llmedic.analysis.ledger.vllm.activation import (
    Stage,
    activation,
    encoder,
    expert_workspace,
    forward,
    penalty_state,
    sampler,
)
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.model.geometry import Geometry

PRINTED = yaml.safe_load((Path(__file__).parents[3] / "data" / "ledger" / "terms.yaml").read_text())
ROUNDING_GIB = 0.005
H100 = Stage(hopper=True)


def shape(model: str) -> Geometry:
    return dense(**PRINTED["shapes"][model])


def release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def predicted(server: dict[str, Any]) -> Any:
    settings = Settings(
        version=release(server["version"]),
        max_num_seqs=1024,
        max_num_batched_tokens=8192,
        tensor_parallel=server.get("tensor", 1),
        pipeline_parallel=server.get("pipeline", 1),
    )
    stage = Stage(first=True, last="pipeline" not in server, hopper=True)
    return activation(shape(server["model"]), settings, stage, server["version"])


@pytest.mark.parametrize("server", PRINTED["servers"], ids=lambda server: f"{server['model']} {server['version']}")
def test_printed_peaks_lie_in_the_interval(server: dict[str, Any]) -> None:
    size = predicted(server).size
    assert size.low / GIB - ROUNDING_GIB <= server["activation_gib"] <= size.high / GIB + ROUNDING_GIB
    assert size.likely / GIB == pytest.approx(server["activation_gib"], rel=0.07)


def test_half_of_them_within_one_percent() -> None:
    errors = sorted(
        abs(predicted(server).size.likely / GIB / server["activation_gib"] - 1) for server in PRINTED["servers"]
    )
    assert errors[len(errors) // 2] < 0.01


def test_the_sampler_decides_with_many_requests_and_the_step_with_few() -> None:
    llama = shape("meta-llama/Llama-3.1-8B-Instruct")
    many, few = (
        activation(llama, Settings(version=(0, 19, 0), max_num_seqs=seqs, max_num_batched_tokens=8192), H100, "0.19.0")
        for seqs in (1024, 16)
    )
    assert many.how == "sampling 1024 requests over 128256 logits"
    assert few.how == "one step of 8192 tokens"
    assert few.size.likely < many.size.likely


def test_sorting_few_rows_takes_another_route() -> None:
    llama = shape("meta-llama/Llama-3.1-8B-Instruct")
    before, after = (
        sampler(llama, Settings(version=(0, 11, 0), max_num_seqs=seqs), "0.11.0").likely / seqs for seqs in (127, 128)
    )
    assert before > after


@pytest.mark.parametrize(("version", "bytes_per_logit"), [("0.24.0", 6), ("0.28.0", 2), ("0.33.0", 14)])
def test_the_second_runner_samples_otherwise(version: str, bytes_per_logit: int) -> None:
    settings = Settings(version=release(version), max_num_seqs=256, max_num_batched_tokens=2048)
    logits, hidden = 256 * 128256, 2048 * 4096 * 2
    assert sampler(dense(), settings, version).likely == bytes_per_logit * logits + hidden


def test_the_second_runner_keeps_penalties_that_are_counted_since_0_27() -> None:
    counted = {
        version: penalty_state(dense(), Settings(version=release(version)), version).likely
        for version in ("0.19.0", "0.24.0", "0.26.0", "0.27.0", "0.33.0")
    }
    assert counted == {
        "0.19.0": 0, "0.24.0": 0, "0.26.0": 0, "0.27.0": 4.125 * 256 * 128256, "0.33.0": 4.125 * 256 * 128256,
    }  # fmt: skip


def test_the_workspace_of_experts_stays_since_0_14() -> None:
    moe = shape("Qwen/Qwen3-30B-A3B")
    old, new = (
        activation(moe, Settings(version=version, max_num_seqs=1024, max_num_batched_tokens=8192), H100, "").size.likely
        for version in ((0, 13, 0), (0, 14, 0))
    )
    assert new - old == pytest.approx(expert_workspace(moe, Settings(max_num_batched_tokens=8192)))


def test_expert_parallel_ranks_compute_whole_experts() -> None:
    moe = shape("mistralai/Mixtral-8x7B-Instruct-v0.1")
    cut, whole = (
        expert_workspace(moe, Settings(tensor_parallel=2, expert_parallel=expert)) for expert in (False, True)
    )
    assert whole == 2 * cut


def test_an_encoder_can_be_the_peak_where_few_requests_are_sampled() -> None:
    text, vision = (
        activation(dense(multimodal=multimodal), Settings(version=(0, 19, 0), max_num_seqs=8), Stage(), "0.19.0")
        for multimodal in (False, True)
    )
    assert vision.how == "the encoder's dummy images"
    assert vision.size.likely > text.size.likely
    assert vision.size.high - vision.size.low > text.size.high - text.size.low


VISION = {"multimodal": True, "encoder_numbers": 7 * 1152, "encoder_patches": 4, "encoder_item_tokens": 16384}


def test_the_encoder_computes_at_least_its_largest_image() -> None:
    small, large = (
        encoder(dense(**VISION), Settings(version=(0, 19, 0), max_num_batched_tokens=tokens), "0.19.0").likely
        for tokens in (2048, 32768)
    )
    assert small == 16384 * 4 * 7 * 1152 * 2
    assert large == 2 * small


def test_the_first_engine_leaves_out_an_image_that_is_longer_than_the_step() -> None:
    short, long = (
        activation(
            dense(**VISION),
            Settings(version=(0, 6, 6), first_engine=True, max_num_seqs=256, max_num_batched_tokens=tokens),
            Stage(),
            "0.6.6",
        )
        for tokens in (8192, 32768)
    )
    assert short.how == "one step of 8192 tokens"
    assert long.size.likely > short.size.likely


@pytest.mark.parametrize(
    ("version", "asked", "bytes_per_logit"),
    [("0.8.2", True, 38), ("0.11.0", True, 14), ("0.11.0", False, 38), ("0.11.0", None, 38), ("0.24.0", True, 6)],
)
def test_flashinfer_samples_where_it_is_asked_to(version: str, asked: bool | None, bytes_per_logit: int) -> None:
    settings = Settings(
        version=release(version), max_num_seqs=256, max_num_batched_tokens=2048, flashinfer_sampler=asked
    )
    found = sampler(dense(), settings, version).likely
    assert found == pytest.approx(bytes_per_logit * 256 * 128256 + 2048 * 4096 * 2)


def test_a_product_that_is_quantised_while_it_is_computed_is_not_kept() -> None:
    few = Settings(version=(0, 11, 0), max_num_seqs=1, max_num_batched_tokens=8192)
    whole, fp8, int8 = (
        forward(dense(quantization=quantization), few, Stage(), "0.11.0") for quantization in ("", "fp8", "int8")
    )
    assert fp8.likely < whole.likely < int8.likely <= fp8.high
