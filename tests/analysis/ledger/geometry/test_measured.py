"""The sizes in a checkpoint's files win over computed ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.analysis.ledger.geometry import configs
from tests.analysis.ledger.geometry.configs import Config
from tests.analysis.ledger.geometry.reading import gib, read

from llmedic.analysis.ledger import geometry
from llmedic.errors import InputError
from llmedic.model.deployment import ModelFacts, TensorGroup
from llmedic.model.geometry import Geometry

HIDDEN, WIDTH, WORDS = 4096, 14336, 128256


def group(name: str, size: int, *, layer: int | None = None, dtype: str = "BF16") -> TensorGroup:
    width = {"BF16": 2, "F32": 4}.get(dtype, 1)
    return TensorGroup(name=name, dtype=dtype, tensors=1, parameters=size // width, bytes=size, layer=layer)


def llama(dtype: str = "BF16", layers: int = 32) -> list[TensorGroup]:
    """What the files of Llama-3.1-8B hold, with fused projections as some tools write them."""
    width = 4 if dtype == "F32" else 2
    found = [
        group("model.embed_tokens.weight", WORDS * HIDDEN * width, dtype=dtype),
        group("lm_head.weight", WORDS * HIDDEN * width, dtype=dtype),
        group("model.norm.weight", HIDDEN * width, dtype=dtype),
    ]
    for layer in range(layers):
        found += [
            group("model.layers.{}.self_attn.qkv_proj.weight", HIDDEN * 6144 * width, layer=layer, dtype=dtype),
            group("model.layers.{}.self_attn.o_proj.weight", HIDDEN * HIDDEN * width, layer=layer, dtype=dtype),
            group("model.layers.{}.mlp.gate_up_proj.weight", HIDDEN * 2 * WIDTH * width, layer=layer, dtype=dtype),
            group("model.layers.{}.mlp.down_proj.weight", HIDDEN * WIDTH * width, layer=layer, dtype=dtype),
            group("model.layers.{}.input_layernorm.weight", 2 * HIDDEN * width, layer=layer, dtype=dtype),
        ]
    return found


def measured(config: Config, groups: Sequence[TensorGroup], **flags: str) -> Geometry:
    return geometry.of(ModelFacts(config=config, tensors=tuple(groups)), **flags)


@pytest.mark.parametrize("dtype", ["BF16", "F32"])
def test_files_that_agree_change_nothing(dtype: str) -> None:
    found = measured(configs.LLAMA_8B, llama(dtype))
    assert [part.bytes for part in found.weights] == pytest.approx(
        [part.bytes for part in read(configs.LLAMA_8B).weights]
    )


def test_a_quantisation_that_nobody_knows_is_weighed_by_its_files() -> None:
    config = configs.LLAMA_8B | {"quantization_config": {"quant_method": "brand_new"}}
    narrow = [
        TensorGroup(
            name=one.name, layer=one.layer, dtype="I32", tensors=1, parameters=one.parameters // 8, bytes=one.bytes // 4
        )
        if "_proj" in one.name
        else one
        for one in llama()
    ]
    found = measured(config, narrow)
    assert not found.unsure
    assert gib(found, "mlp") == pytest.approx(gib(read(configs.LLAMA_8B), "mlp") / 4)
    assert gib(found, "attention", "key-value") == pytest.approx(
        gib(read(configs.LLAMA_8B), "attention", "key-value") / 4
    )
    assert gib(found, "embedding") == gib(read(configs.LLAMA_8B), "embedding")


def test_a_gguf_file_is_held_as_it_is() -> None:
    config = configs.LLAMA_8B | {"quantization_config": {"quant_method": "gguf", "file_type": "Q4_K_M"}}
    assert read(config).unsure
    groups = [
        group("token_embd.weight", 300 << 20, dtype="Q4_K"),
        group("output.weight", 400 << 20, dtype="Q6_K"),
        group("output_norm.weight", 4 * HIDDEN, dtype="F32"),
        *(group("blk.{}.attn_q.weight", 9 << 20, layer=layer, dtype="Q4_K") for layer in range(32)),
        *(group("blk.{}.ffn_down.weight", 90 << 20, layer=layer, dtype="Q4_K") for layer in range(32)),
    ]
    found = measured(config, groups)
    assert not found.unsure
    assert gib(found) == pytest.approx(sum(one.bytes for one in groups) / 2**30)
    assert gib(found, "lm head") == pytest.approx(400 / 1024)


def test_an_encoder_of_unknown_kind_is_weighed_by_its_files() -> None:
    config = configs.LLAMA_8B | {"vision_config": {"model_type": "brand_new_tower"}}
    found = measured(config, [*llama(), group("vision_tower.blocks.{}.attn.qkv.weight", 1 << 30, layer=5)])
    assert gib(found, "vision") == 1
    assert not found.unsure


def test_a_copy_of_the_embedding_is_not_loaded() -> None:
    tied = configs.LLAMA_8B | {"tie_word_embeddings": True}
    assert gib(measured(tied, llama())) == pytest.approx(gib(read(tied)))


def test_layers_beyond_the_model_are_drafts() -> None:
    config = configs.LLAMA_8B | {"num_hidden_layers": 31, "num_nextn_predict_layers": 1}
    found = measured(config, llama())
    assert gib(found) == pytest.approx(gib(read(config)))
    layer = sum(one.bytes for one in llama() if one.layer == 31)
    assert sum(part.bytes for part in found.draft_weights) == pytest.approx(layer)


def test_weights_of_another_model() -> None:
    with pytest.raises(InputError, match="it has 32 layers, the weights have 28: they are of two models"):
        measured(configs.LLAMA_8B, llama(layers=28))


def test_files_of_another_width_say_nothing_about_what_is_narrowed_while_loading() -> None:
    assert gib(measured(configs.LLAMA_8B, llama(), quantization="fp8")) == gib(
        read(configs.LLAMA_8B, quantization="fp8")
    )


def test_files_without_names_say_nothing() -> None:
    unnamed = [TensorGroup(name="pytorch_model-{}.bin", dtype="", tensors=3, parameters=0, bytes=1 << 30)]
    assert measured(configs.LLAMA_8B, unnamed) == read(configs.LLAMA_8B)
