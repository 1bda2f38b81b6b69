"""Finding the decoder inside a configuration: multimodal models nest it, and omit what its class has by default."""

from __future__ import annotations

from collections.abc import Mapping

from llmedic.analysis.ledger.geometry.fields import Fields

TEXT_SECTIONS = ("text_config", "llm_config", "language_config", "thinker_config")

_LLAMA = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
}
NESTED_DEFAULTS: dict[str, Mapping[str, object]] = {
    "llama": _LLAMA,
    "mistral": _LLAMA
    | {"intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072, "sliding_window": 4096},
    "gemma3_text": {
        "vocab_size": 262208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131072,
    },
}
"""What a nested section may leave out, by its model type (transformers 5.19; saving drops defaults of sections)."""


def decoder(config: Fields) -> Fields:
    """The section that describes the text decoder: the configuration itself, or a nested one."""
    for name in TEXT_SECTIONS:
        nested = config.section(name)
        if nested is not None:
            known = NESTED_DEFAULTS.get(nested.text("model_type", default="llama"))
            return decoder(Fields(nested.values, nested.path, known))
    return config
