"""What divides over which ranks, and what stands against a plan of devices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.analysis.ledger.vllm import placement
from llmedic.analysis.ledger.vllm.placement import Plan
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.knowledge import accelerators
from llmedic.model.geometry import CacheLayer, Geometry, WeightPart


def model(*, billions: float = 72.0, bytes_each: float = 2.0, layers: int = 80, **fields: object) -> Geometry:
    """Qwen2.5-72B, unless the fields say otherwise."""
    shape: dict[str, object] = {
        "architecture": "Qwen2ForCausalLM",
        "layers": (CacheLayer(kind="full", kv_heads=8, head_dim=128),) * layers,
        "weights": (
            WeightPart(name="mlp", parameters=int(billions * 1e9), bytes=billions * 1e9 * bytes_each, split="tensor"),
        ),
        "hidden_size": 8192, "vocabulary": 152064, "query_heads": 64, "mlp_width": 29568,
    }  # fmt: skip
    return Geometry(**(shape | fields))  # type: ignore[arg-type]


def card(word: str) -> accelerators.Accelerator:
    """A known card."""
    found = accelerators.find(word)
    assert found is not None
    return found


def plan(geometry: Geometry | None = None, word: str = "h100", **fields: object) -> Plan:
    """A plan; settings by their own names."""
    own = {name: fields.pop(name) for name in tuple(fields) if name in Settings.__dataclass_fields__}
    fields.setdefault("version", "0.33.0")
    return Plan(
        geometry=geometry or model(), settings=Settings(**own), accelerator=card(word) if word else None, **fields  # type: ignore[arg-type]
    )  # fmt: skip


def test_degrees_follow_heads_vocabulary_and_widths() -> None:
    assert placement.allowed_degrees(model(), 16) == (1, 2, 4, 8, 16)
    assert placement.allowed_degrees(model(), 16, group_size=128) == (1,)
    assert placement.allowed_degrees(model(query_heads=28, layers=2, mlp_width=18944), 8) == (1, 2, 4)
    assert placement.allowed_degrees(model(), 0) == (1,)


def test_kv_heads_are_divided_or_repeated() -> None:
    assert list(placement.refusals(model(mlp_width=0), 16)) == []
    few = model(layers=1, query_heads=24, mlp_width=24576, vocabulary=64 * 24)
    assert list(placement.refusals(few, 12)) == ["8 KV heads can be neither divided nor repeated over 12 ranks"]


def test_mla_is_copied_and_divides_by_any() -> None:
    latent = CacheLayer(kind="mla", latent_dim=576, kv_heads=1, value_dim=128)
    deepseek = model(query_heads=128, mlp_width=18432, expert_width=2048, experts=256, vocabulary=129280)
    deepseek = replace(deepseek, layers=(latent,) * 61)
    assert placement.allowed_degrees(deepseek, 16, group_size=128) == (1, 2, 4, 8, 16)
    assert list(placement.refusals(deepseek, 32, 128)) == [
        "the MLP width 18432 / 32 = 576 is no multiple of the group of 128",
        "the expert width 2048 / 32 = 64 is no multiple of the group of 128",
    ]
    assert 32 not in placement.allowed_degrees(deepseek, 32, 128, expert_parallel=True)
    assert 16 in placement.allowed_degrees(deepseek, 16, 128, expert_parallel=True)


@given(st.integers(1, 300_000))
def test_padded_vocabulary_is_the_next_multiple(vocabulary: int) -> None:
    rows = placement.padded_vocabulary(vocabulary)
    assert rows % 64 == 0
    assert vocabulary <= rows < vocabulary + 64


@given(st.integers(1, 128), st.integers(1, 32), st.integers(0, 60_000), st.sampled_from([0, 32, 64, 128]))
def test_an_allowed_degree_is_refused_by_nothing(heads: int, kv_heads: int, width: int, group: int) -> None:
    geometry = replace(
        model(layers=1, query_heads=heads, mlp_width=width),
        layers=(CacheLayer(kind="full", kv_heads=kv_heads, head_dim=64),),
    )
    degrees = placement.allowed_degrees(geometry, 16, group)
    assert degrees[0] == 1
    for degree in degrees[1:]:
        assert heads % degree == 0
        assert kv_heads % degree == 0 or degree % kv_heads == 0
        assert width % degree == 0


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"quantization_config": {"quant_method": "awq", "group_size": 128}}, 128),
        ({"quantization_config": {"quant_method": "gptq", "group_size": -1}}, 0),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 64]}}, 64),
        ({"quantization_config": {"config_groups": {"group_0": {"weights": {"group_size": 32}}}}}, 32),
        ({"quantization_config": {"config_groups": {"group_0": {"weights": {"group_size": None}}}}}, 0),
        ({"quantization_config": {"config_groups": {"group_0": None}, "group_size": True}}, 0),
        ({"quantization_config": "awq"}, 0),
        ({}, 0),
    ],
)
def test_group_size_of_a_checkpoint(config: dict[str, object], expected: int) -> None:
    assert placement.group_size(config) == expected


def test_a_fitting_plan_has_no_problem() -> None:
    assert placement.problems(plan(tensor_parallel=4, count=8)) == ()
    assert placement.problems(plan(word="")) == ()


def test_what_does_not_divide_names_the_degree_that_does() -> None:
    geometry = model(bytes_each=0.55, quantization="gptq")
    found = placement.problems(plan(geometry, tensor_parallel=2, group_size=128))
    assert [(one.severity, one.cause) for one in found] == [("critical", "tp-degree-not-divisible")]
    assert found[0].text == "the MLP width 29568 / 2 = 14784 is no multiple of the group of 128"
    assert found[0].change == "--tensor-parallel-size 1"


def test_more_devices_than_there_are() -> None:
    (found,) = placement.problems(plan(tensor_parallel=8, pipeline_parallel=2, count=8))
    assert found.text == "tensor 8 x pipeline 2 x data 1 parallel take 16 devices, the machine has 8"
    assert found.change == "--tensor-parallel-size 4"
    (found,) = placement.problems(plan(tensor_parallel=4, pipeline_parallel=8, count=4))
    assert found.change == "--pipeline-parallel-size 1"


def test_stages_of_a_pipeline() -> None:
    (found,) = placement.problems(plan(model(layers=61, billions=600), pipeline_parallel=4))
    assert found.severity == "info"
    assert found.text.startswith("61 layers over 4 stages are 15, 15, 16, 15")
    (found,) = placement.problems(plan(model(layers=2), pipeline_parallel=4))
    assert (found.severity, found.change) == ("critical", "--pipeline-parallel-size 2")


def test_tensor_parallel_over_hosts() -> None:
    (found,) = placement.problems(plan(model(billions=600), tensor_parallel=16, count=16))
    assert found.severity == "warning"
    assert found.change == "--tensor-parallel-size 8 --pipeline-parallel-size 2"


def test_tensor_parallel_over_pcie() -> None:
    (found,) = placement.problems(plan(word="l40s", tensor_parallel=4))
    assert found.severity == "info"
    assert found.text == "tensor parallel 4 goes over PCIe 4: NVIDIA L40S has no faster links between devices"


@pytest.mark.parametrize(
    ("word", "quantization", "severity", "cause"),
    [("v100", "awq", "critical", "quant-unsupported-on-gpu"), ("a100", "fp8", "info", ""),
     ("mi300x", "nvfp4", "info", "")],
)  # fmt: skip
def test_quantisation_against_the_card(word: str, quantization: str, severity: str, cause: str) -> None:
    (found,) = placement.problems(plan(model(quantization=quantization), word))
    assert (found.severity, found.cause) == (severity, cause)


def test_quantisation_that_runs_is_no_problem() -> None:
    assert placement.problems(plan(model(quantization="fp8"), "h100")) == ()
    assert placement.problems(plan(model(quantization="unheard-of"), "h100")) == ()


def test_a_small_model_on_many_devices() -> None:
    (found,) = placement.problems(
        plan(model(billions=8, layers=32, query_heads=32, mlp_width=14336), tensor_parallel=8)
    )
    assert found.cause == "tp-oversplit-small-model"
    assert found.text.startswith("8.0 billion parameters over 8 devices are 1.0 billion each")
    assert found.change == "--tensor-parallel-size 1"
    assert placement.problems(plan(model(billions=14), "t4", tensor_parallel=4))[0].cause == ""


def test_the_gravest_comes_first_and_each_engine_has_its_words() -> None:
    found = placement.problems(
        plan(model(quantization="awq"), "v100", tensor_parallel=3, count=8, engine="sglang", version="0.5.2")
    )
    assert [one.severity for one in found] == sorted((one.severity for one in found), key=["critical", "info"].index)
    assert {one.change for one in found if one.cause == "tp-degree-not-divisible"} == {"--tp-size 2"}
