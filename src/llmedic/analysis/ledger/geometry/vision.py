"""How much of a card an image encoder needs while it computes: its width, and the patches behind one token."""

from __future__ import annotations

from typing import NamedTuple

from llmedic.analysis.ledger.geometry.fields import Fields

GATED_TYPES = ("qwen2_5_vl", "mistral3", "pixtral")
LARGEST_ITEMS = {"qwen2_vl": 16384, "qwen2_5_vl": 16384, "qwen3_vl": 16384, "qwen3_5": 16384}
"""Tokens of the largest image that a model's own preprocessor lets through."""
POOLED = {"gemma3": 16, "gemma4": 9}
"""Patches that become one token, where it is no square of spatial_merge_size."""


class Encoder(NamedTuple):
    """numbers: held for one patch at its widest; patches: behind one token; item_tokens: of the largest image."""

    numbers: int = 0
    patches: int = 0
    item_tokens: int = 0


def encoder(config: Fields) -> Encoder:
    """The image encoder of a model, all zeros where there is none or its width is not said.

    At its widest a block holds residual, normed input, and the feed-forward before and after its activation; or
    residual, normed input, queries, keys and values, and the rotated two of them.
    """
    vision = config.section("vision_config")
    if vision is None:
        return Encoder()
    kind = config.text("model_type")
    hidden = vision.optional("hidden_size" if vision.has("intermediate_size") else "embed_dim") or 0
    width = vision.optional("intermediate_size") or 4 * hidden
    if not hidden:
        return Encoder()
    wide = (3 if kind.startswith(GATED_TYPES) else 2) * width
    merge = vision.optional("spatial_merge_size") or config.optional("spatial_merge_size") or 1
    return Encoder(
        numbers=max(2 * hidden + wide, 7 * hidden),
        patches=_named(POOLED, kind) or merge**2,
        item_tokens=_named(LARGEST_ITEMS, kind),
    )


def _named(table: dict[str, int], kind: str) -> int:
    return next((value for name, value in table.items() if kind.startswith(name)), 0)
