"""Finding the decoder inside a configuration, and its type: multimodal models nest it, and omit what is default."""

from __future__ import annotations

import re
from collections.abc import Mapping

from llmedic.analysis.ledger.geometry.families import ALIASES, FAMILIES
from llmedic.analysis.ledger.geometry.fields import Fields, fault

SECTIONS = ("text_config", "llm_config", "language_config", "thinker_config")
DEEPEST = 4
LLAMA_INSIDE = ("llava", "vipllava", "video_llava")
"""Types whose text section is a Llama when it does not say what it is."""

_LLAMA = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
}
_MISTRAL = _LLAMA | {
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
}
_QWEN2 = {
    "vocab_size": 151936,
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 32768,
}
_GEMMA3 = {
    "vocab_size": 262208,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131072,
}
_GEMMA4 = _GEMMA3 | {"vocab_size": 262144, "num_hidden_layers": 30, "hidden_size_per_layer_input": 256}
_GEMMA3N = {
    "vocab_size": 262400,
    "hidden_size": 2048,
    "intermediate_size": 16384,
    "num_hidden_layers": 35,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "max_position_embeddings": 32768,
    "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262144,
    "num_kv_shared_layers": 15,
}
_LLAMA4 = {
    "vocab_size": 202048,
    "hidden_size": 5120,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 131072,
    "num_local_experts": 16,
    "num_experts_per_tok": 1,
    "interleave_moe_layer_step": 1,
}
NESTED_DEFAULTS: dict[str, Mapping[str, object]] = {
    "llama": _LLAMA,
    "mistral": _MISTRAL,
    "qwen2": _QWEN2,
    "gemma3_text": _GEMMA3,
    "gemma3n_text": _GEMMA3N,
    "gemma4_text": _GEMMA4,
    "llama4_text": _LLAMA4,
}
"""What a nested section may leave out, by its type: transformers drops defaults when it saves a section (5.19)."""


def unwrap(config: Fields) -> tuple[Fields, Fields]:
    """The section that holds the encoders, and the one that describes the text decoder (often the same)."""
    wrapper = text = config
    for _ in range(DEEPEST):
        found = next((section for name in SECTIONS if (section := text.section(name)) is not None), None)
        if found is None:
            break
        wrapper, text = text, found
    if text is config:
        return config, _whisper(config) if config.text("model_type") == "whisper" else config
    kind = text.text("model_type") or ("llama" if config.text("model_type").startswith(LLAMA_INSIDE) else "")
    return wrapper, Fields(text.values, text.path, NESTED_DEFAULTS.get(kind))


def _whisper(config: Fields) -> Fields:
    """The decoder of Whisper in the words of other models."""
    words = {
        "num_hidden_layers": "decoder_layers",
        "num_attention_heads": "decoder_attention_heads",
        "hidden_size": "d_model",
        "intermediate_size": "decoder_ffn_dim",
        "vocab_size": "vocab_size",
        "max_position_embeddings": "max_target_positions",
        "max_source_positions": "max_source_positions",
        "model_type": "model_type",
    }
    return Fields({name: config.get(theirs) for name, theirs in words.items()})


def type_of(config: Fields, text: Fields) -> str:
    """The model type of the decoder; by its architecture when the type is absent or unknown, as vLLM goes by that."""
    named = text.text("model_type", default="" if text is not config else config.text("model_type"))
    if (kind := ALIASES.get(named, named)) in FAMILIES:
        return kind
    for architecture in (text.words("architectures") or ()) + (config.words("architectures") or ()):
        words = re.sub(r"For[A-Z]\w*$|Model$|LMHeadModel$", "", architecture)
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words).lower()
        for candidate in (snake, snake.replace("_", ""), f"{snake}_text"):
            if (found := ALIASES.get(candidate, candidate)) in FAMILIES:
                return found
    if not named and not config.has("architectures", "model_type"):
        raise fault("model_type is missing")
    outer = config.text("model_type")
    return kind or ALIASES.get(outer, outer)
