"""A configuration that cannot be a model's is one clear line, whatever is wrong with it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.ledger.geometry import configs
from tests.analysis.ledger.geometry.reading import read

from llmedic.analysis.ledger import geometry
from llmedic.errors import InputError
from llmedic.model.deployment import ModelFacts
from llmedic.model.geometry import Geometry

MODELS = [
    configs.LLAMA_8B,
    configs.GPT_OSS_20B,
    configs.DEEPSEEK_V32,
    configs.GEMMA4_E2B,
    configs.QWEN35_27B,
    configs.NEMOTRON_NANO,
    configs.JAMBA,
    configs.LLAVA_16,
    configs.CHATGLM3,
    configs.GRANITE_TINY,
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.text(max_size=8)
    | st.sampled_from([10**12, 10**40, "4096", "full_attention", "auto", [], {}, [1], ["full_attention"]])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"num_hidden_layers": 0}, "num_hidden_layers must be between 1 and 2000, not 0"),
        ({"num_hidden_layers": -32}, "not -32"),
        ({"num_hidden_layers": 10**12}, "num_hidden_layers must be between"),
        ({"num_hidden_layers": 10**40}, "more than 18 digits"),
        ({"num_hidden_layers": None}, "num_hidden_layers is missing"),
        ({"hidden_size": "4096"}, "hidden_size must be a whole number, not '4096'"),
        ({"hidden_size": True}, "hidden_size must be a whole number, not True"),
        ({"hidden_size": 4096.0}, "whole number"),
        ({"vocab_size": float("nan")}, "vocab_size must be a whole number, not nan"),
        ({"num_attention_heads": 33, "head_dim": 128}, "33 does not divide by 8"),
        ({"num_attention_heads": 24, "hidden_size": 4097}, "4097 does not divide by 24"),
        ({"layer_types": ["full_attention"] * 31}, "layer_types has 31 entries for 32 layers"),
        ({"layer_types": "full_attention"}, "layer_types must be a list"),
        ({"layer_types": [1] * 32}, "layer_types must hold texts"),
        ({"layer_types": ["quantum_attention"] * 32}, "'quantum_attention'"),
        ({"text_config": [1, 2]}, "text_config must be a section of fields, not a list of 2"),
        ({"torch_dtype": "int3"}, "'int3'"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings must be true or false"),
        ({"quantization_config": {"quant_method": "awq", "bits": 4096}}, "quantization_config.bits"),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128]}}, "weight_block_size"),
        ({"sliding_window": -1}, "sliding_window"),
        ({"head_dim": 0}, "head_dim must be between"),
    ],
)
def test_a_fault_names_the_field(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        read(configs.LLAMA_8B | fields)
    assert words in caught.value.message
    assert caught.value.hint
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("config", [{}, {"model_type": "llama"}, {"vocab_size": 5}, {"text_config": {}}])
def test_nothing_is_made_up_for_a_configuration_without_a_model(config: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="missing"):
        read(config | ({"text_config": {"model_type": "brand_new"}} if config.get("text_config") == {} else {}))


def test_experts_without_a_width_and_mixtures_without_experts() -> None:
    with pytest.raises(InputError, match="moe_intermediate_size"):
        read({k: v for k, v in configs.MIXTRAL.items() if k != "intermediate_size"})
    with pytest.raises(InputError, match="num_experts_per_tok"):
        read(configs.MIXTRAL | {"num_experts_per_tok": 9})


def answer(config: dict[str, Any]) -> Geometry | InputError:
    try:
        return geometry.of(ModelFacts(config=config))
    except InputError as error:
        return error


@given(st.dictionaries(st.text(max_size=12), JSON, max_size=6))
@settings(max_examples=100, deadline=None)
def test_any_mapping_gives_a_geometry_or_one_line(config: dict[str, Any]) -> None:
    assert isinstance(answer(config), Geometry | InputError)


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_any_damage_gives_a_geometry_or_one_line(data: st.DataObject) -> None:
    config = copy.deepcopy(data.draw(st.sampled_from(MODELS)))
    for _ in range(data.draw(st.integers(1, 3))):
        section = config
        name = data.draw(st.sampled_from(sorted(section)))
        if isinstance(section[name], dict) and section[name] and data.draw(st.booleans()):
            section = section[name]
            name = data.draw(st.sampled_from(sorted(section)))
        section[name] = data.draw(JSON)
    found = answer(config)
    if isinstance(found, InputError):
        assert "\n" not in found.message
        assert len(found.message) < 300
    else:
        assert all(part.parameters >= 0 and part.bytes >= 0 for part in found.weights)


def test_fields_that_are_each_possible_but_not_together() -> None:
    with pytest.raises(InputError, match="more than any model has"):
        read(configs.LLAMA_8B | {"hidden_size": 2**23, "intermediate_size": 2**23})
