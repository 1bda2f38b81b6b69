"""Bytes of quantised checkpoints, and of quantisation while loading."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analysis.ledger.geometry import configs
from tests.analysis.ledger.geometry.reading import gib, parameters, read

from llmedic.analysis.ledger.geometry.formats import FP8_TENSOR, MXFP4, NF4, NVFP4, Stored, fp8_block, grouped
from llmedic.analysis.ledger.geometry.names import Names
from llmedic.errors import InputError

FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "modules_to_not_convert": None}


def compressed(weights: dict[str, Any], *, ignore: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ignore if ignore is not None else ["lm_head"],
        **more,
    }


@pytest.mark.parametrize(
    ("stored", "rows", "columns", "size"),
    [
        (FP8_TENSOR, 4096, 4096, 4096 * 4096 + 4),
        (fp8_block(128, 128), 300, 256, 300 * 256 + 3 * 2 * 4),
        (grouped(4, 128), 4096, 4096, 4096 * 4096 / 2 + 4096 * 32 * 2),
        (grouped(4, 128, zeros=True), 4096, 4096, 4096 * 4096 / 2 + 4096 * 32 * 2.5),
        (grouped(4, -1, ordered=True), 64, 4096, 64 * 4096 / 2 + 64 * 2 + 4096 * 4),
        (NVFP4, 64, 64, 64 * 64 / 2 + 64 * 4 + 8),
        (MXFP4, 64, 64, 64 * 64 / 2 + 64 * 2),
        (NF4, 64, 64, 64 * 64 / 2 + 64 * 4),
        (Stored(bits=4, columns=32, scale_bytes=1, multiple=(256, 128)), 2880, 2880, 3072 * 2944 * (0.5 + 1 / 32)),
    ],
)
def test_a_matrix_and_what_lies_beside_it(stored: Stored, rows: int, columns: int, size: float) -> None:
    assert stored.size(rows, columns) == size


@pytest.mark.parametrize(
    ("config", "printed"),
    [
        (configs.QWEN3_8B | {"quantization_config": FP8}, 8.80),
        (configs.LLAVA_16, 14.08),
        (configs.DEEPSEEK_V3 | {"quantization_config": FP8}, 628.8),
    ],
    ids=["Qwen3-8B-FP8", "LLaVA-1.6", "DeepSeek-V3"],
)
def test_weights_as_servers_print_them(config: configs.Config, printed: float) -> None:
    assert gib(read(config)) == pytest.approx(printed, rel=0.002)


def test_weights_narrowed_while_loading() -> None:
    assert gib(read(configs.GRANITE_MICRO, quantization="fp8")) == pytest.approx(3.4244, rel=0.005)
    shape = read(configs.LLAMA_8B, quantization="bitsandbytes")
    assert shape.quantization == "bitsandbytes"
    assert gib(shape, "mlp") == pytest.approx(32 * 3 * 4096 * 14336 * 0.5625 / 2**30)


def test_only_linear_layers_are_narrowed() -> None:
    wide, narrow = read(configs.QWEN25_7B), read(configs.QWEN25_7B | {"quantization_config": AWQ})
    assert narrow.quantization == "awq"
    for name in ("embedding", "lm head", "norm"):
        assert gib(narrow, name) == gib(wide, name)
    assert gib(narrow, "mlp") == pytest.approx(gib(wide, "mlp") * (0.5 + 2.5 / 128) / 2)
    assert parameters(narrow) == parameters(wide)


def test_experts_alone() -> None:
    """gpt-oss-120b prints 65.97 GiB; the experts are padded from 2880 to 3072 and 2944."""
    large = configs.GPT_OSS_20B | {
        "num_hidden_layers": 36,
        "layer_types": ["sliding_attention", "full_attention"] * 18,
        "num_local_experts": 128,
    }
    shape = read(large)
    assert gib(shape) == pytest.approx(65.9651, rel=0.002)
    assert gib(shape, "attention") == gib(
        read({k: v for k, v in large.items() if k != "quantization_config"}), "attention"
    )


def test_a_quantised_latent_projection_is_also_kept_whole() -> None:
    shape = read(configs.DEEPSEEK_V3 | {"quantization_config": FP8})
    kept = next(
        part for part in shape.weights if part.layer == 0 and part.name == "key-value" and part.split == "tensor"
    )
    matrix = 512 * 128 * 256
    assert kept.bytes == pytest.approx(matrix * 3, rel=0.001)


def test_the_list_of_what_stays_whole() -> None:
    wide = read(configs.QWEN3_30B)
    config = compressed(
        {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True},
        ignore=["lm_head", "re:.*self_attn.*", "model.layers.0.mlp.experts.0.down_proj"],
        format="pack-quantized",
    )
    shape = read(configs.QWEN3_30B | {"quantization_config": config})
    assert gib(shape, "attention", "key-value") == gib(wide, "attention", "key-value")
    first, second = (next(p.bytes for p in shape.weights if p.layer == i and p.name == "experts") for i in (0, 1))
    assert first > 1.5 * second


@pytest.mark.parametrize(
    ("weights", "bits"),
    [
        ({"num_bits": 8, "type": "float", "strategy": "tensor"}, 8),
        ({"num_bits": 8, "type": "float", "strategy": "channel"}, 8),
        ({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}, 8),
        ({"num_bits": 8, "type": "int", "strategy": "channel"}, 8),
        ({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}, 4.5),
        ({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}, 4.25),
        ({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 64}, 4.25),
        ({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": False}, 4.15625),
    ],
)
def test_formats_of_compressed_tensors(weights: dict[str, Any], bits: float) -> None:
    shape = read(configs.LLAMA_8B | {"quantization_config": compressed(weights)})
    assert gib(shape, "mlp") * 2**33 / (32 * 3 * 4096 * 14336) == pytest.approx(bits, rel=0.002)


@pytest.mark.parametrize(
    ("config", "bits"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}, 4.125),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True}, 4.125),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4.5),
        ({"quant_method": "fbgemm_fp8"}, 8),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}, 4.5),
        ({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}, 8),
        (
            {
                "quant_method": "quark",
                "global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}},
            },
            8,
        ),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}}, 4.25),
    ],
)
def test_other_methods(config: dict[str, Any], bits: float) -> None:
    shape = read(configs.LLAMA_8B | {"quantization_config": config})
    assert gib(shape, "mlp") * 2**33 / (32 * 3 * 4096 * 14336) == pytest.approx(bits, rel=0.002)
    assert not shape.unsure


def test_layers_that_are_stored_differently() -> None:
    mixed = {
        "quant_method": "modelopt",
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {
            "model.layers.0.mlp.down_proj": {"quant_algo": "FP8"},
            "model.layers.1.mlp.down_proj": {"quant_algo": "NVFP4"},
        },
    }
    shape = read(configs.LLAMA_8B | {"quantization_config": mixed})
    sizes = [next(part.bytes for part in shape.weights if part.layer == i and part.name == "mlp") for i in range(3)]
    matrix = 4096 * 14336
    assert sizes == [pytest.approx(2 * 2 * matrix + narrow * matrix) for narrow in (1, 4.5 / 8, 2)]


def test_a_layer_of_two_entries_is_one_layer_for_the_list() -> None:
    config = configs.dense(
        "falcon_h1", 2, 1024, 8, 2, 2048, 32784, head_dim=128, mamba_d_ssm=1536, mamba_n_heads=24, mamba_d_head=64,
        mamba_d_state=128,
        quantization_config={"quant_method": "fp8", "modules_to_not_convert": ["model.layers.1.mlp"]},
    )  # fmt: skip
    sizes = [
        next(part.bytes for part in read(config).weights if part.layer == i and part.name == "mlp") for i in (1, 3)
    ]
    assert sizes == [pytest.approx(3 * 1024 * 2048, rel=0.001), 2 * 3 * 1024 * 2048]


def test_what_is_not_known_is_said() -> None:
    assert "aqlm" in read(configs.LLAMA_8B | {"quantization_config": {"quant_method": "aqlm"}}).unsure[0]
    assert "awq" in read(configs.LLAMA_8B, quantization="awq").unsure[0]
    with pytest.raises(InputError, match="quant_method"):
        read(configs.LLAMA_8B | {"quantization_config": {"bits": 4}})


def test_draft_layers_stay_whole_where_the_list_names_them() -> None:
    text = configs.QWEN35_27B["text_config"]
    narrow = read(text | {"quantization_config": compressed({"num_bits": 4, "type": "int", "group_size": 128})})
    whole = read(
        text
        | {"quantization_config": compressed({"num_bits": 4, "type": "int", "group_size": 128}, ignore=["re:.*mtp.*"])}
    )
    assert sum(p.bytes for p in whole.draft_weights) > 2 * sum(p.bytes for p in narrow.draft_weights)


@pytest.mark.parametrize(
    ("entry", "layer", "path", "meant"),
    [
        ("lm_head", None, "lm_head", True),
        ("model.layers.3.mlp", 3, "mlp.down_proj", True),
        ("model.layers.3.mlp", 4, "mlp.down_proj", False),
        ("model.language_model.layers.3.linear_attn*", 3, "linear_attn.in_proj_a", True),
        ("model.layers.0*", 0, "self_attn.q_proj", True),
        ("model.layers.*.self_attn", 7, "self_attn.q_proj", True),
        ("self_attn", 7, "self_attn.q_proj", True),
        ("*.mlp.shared_expert.*", 7, "mlp.shared_expert.up_proj", True),
        ("model.layers.2.mlp.experts.17.up_proj", 2, "mlp.experts.0.up_proj", True),
        ("model.layers.2.block_sparse_moe.experts.17.w2", 2, "mlp.experts.0.down_proj", True),
        ("re:.*mlp.gate$", 7, "mlp.gate_proj", False),
        (r"re:.*layers\.(0|1)\..*", 1, "mlp.up_proj", True),
        (r"re:.*layers\.(0|1)\..*", 2, "mlp.up_proj", False),
        ("re:(unclosed", 1, "mlp.up_proj", False),
        ("re:(a+)+b", 1, "mlp.up_proj", False),
    ],
)
def test_names_as_checkpoints_write_them(entry: str, layer: int | None, path: str, meant: bool) -> None:
    assert Names([entry]).match(layer, path) is meant
