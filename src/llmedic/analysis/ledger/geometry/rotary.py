"""Position tables: cos and sin of every position, which vLLM builds while loading and no checkpoint holds.

One table for each kind of rotation, shared by all layers that rotate alike (get_rope in
vllm/model_executor/layers/rotary_embedding/__init__.py, 0.6 to 0.33).
"""

from __future__ import annotations

from collections.abc import Sequence

from llmedic.analysis.ledger.geometry.fields import Fields
from llmedic.analysis.ledger.geometry.shape import Shape
from llmedic.analysis.ledger.geometry.tensors import Layer

SECTIONED = 4
"""Tables of models that rotate time, height and width apart are four times as long (MRotaryEmbedding)."""
SECTIONED_TYPES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "glm4v")
PARTIAL_TYPES = {"qwen3_next": 0.25, "qwen3_5": 0.25, "glm4": 0.5}
"""Share of a head that is rotated, where the configuration does not say it."""
KINDS_APART = ("gemma3", "gemma4")
"""Types whose sliding layers rotate by another base than their full ones."""
SCALING_NAMES = ("rope_scaling", "rope_parameters")


def numbers(shape: Shape, layers: Sequence[Layer], kind: str) -> int:
    """Numbers in all tables of a model, 0 where nothing is rotated or the length of its context is not known.

    kind  model type of the outer configuration
    """
    caches = {layer.cache for layer in layers if layer.cache is not None and layer.cache.kind != "state"}
    apart = shape.type.startswith(KINDS_APART)
    share = _share(shape)
    widths = {(cache.kind if apart else "", int(cache.head_dim * share)) for cache in caches}
    if shape.family.mixer == "mla":
        widths = {("", shape.fields.count("qk_rope_head_dim", default=64))}
    length = shape.positions * (SECTIONED if _sectioned(shape, kind) else 1)
    return length * sum(width for _, width in widths)


def _sections(fields: Fields) -> tuple[Fields, ...]:
    found = (fields.section(name) for name in SCALING_NAMES)
    return tuple(section for section in found if section is not None)


def _sectioned(shape: Shape, kind: str) -> bool:
    said = any(section.has("mrope_section") for section in _sections(shape.fields))
    return said or kind.startswith(SECTIONED_TYPES)


def _share(shape: Shape) -> float:
    """partial_rotary_factor, from the configuration or the model type."""
    for section in (shape.fields, *_sections(shape.fields)):
        value = section.get("partial_rotary_factor", "rotary_pct")
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
            return float(value)
    return next((share for kind, share in PARTIAL_TYPES.items() if shape.type.startswith(kind)), 1.0)
