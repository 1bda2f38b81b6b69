"""The geometry of a model from its facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llmedic.analysis.ledger.geometry import (
    checks,
    decoders,
    drafts,
    measured,
    quantised,
    rotary,
    towers,
    vision,
    weigh,
    wrappers,
)
from llmedic.analysis.ledger.geometry.families import FAMILIES, Family
from llmedic.analysis.ledger.geometry.fields import Fields, fault, shown
from llmedic.analysis.ledger.geometry.shape import shape_of
from llmedic.analysis.ledger.geometry.tensors import Layer
from llmedic.model.deployment import ModelFacts
from llmedic.model.geometry import Geometry

MOST_PARAMETERS = 10**14
DTYPE_BYTES = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}


def of(model: ModelFacts, *, quantization: str = "", dtype: str = "") -> Geometry:
    """The memory-relevant shape of `model`.

    quantization and dtype are the engine's flags ("" or "auto": as the configuration says).
    Raises `InputError` for a configuration that is missing, contradictory or absurd.
    """
    config = Fields(model.config)
    wrapper, text = wrappers.unwrap(config)
    kind = wrappers.type_of(config, text)
    checks.refuse_unexplained(text, kind)
    shape = shape_of(text, kind, FAMILIES.get(kind, Family()))
    recipe = decoders.recipe(kind)
    layers = recipe.layers(shape)
    if _attends_both_ways(text, shape.family):
        layers = tuple(replace(layer, cache=None) for layer in layers)
    bytes_each = activation_bytes(config, text, dtype)
    scheme = quantised.scheme_of(config, text, quantization)
    encoders, uncounted = towers.towers(wrapper, shape.hidden)
    around = (*recipe.outside(shape, tied=_tied(config, text, shape.family)), *encoders)
    drafted = drafts.drafts(shape)
    weights = weigh.parts(layers, around, scheme, bytes_each)
    draft_weights = weigh.draft_parts(drafted, scheme, bytes_each, first=shape.layers)
    doubts, width_known = (*uncounted, *scheme.unsure), scheme.width_known
    if measured.usable(model.tensors) and not scheme.online:
        stored = weigh.parts(layers, around, scheme, bytes_each, stored=True)
        files = measured.Files(model.tensors, 0 if scheme.method == "gguf" else bytes_each, shape.layers)
        weights, draft_weights, doubts = files.correct(weights, stored), files.correct_drafts(draft_weights), ()
        width_known = True
    total = sum(part.parameters for part in weights)
    if total > MOST_PARAMETERS:
        raise fault(f"its fields make {total:.1e} parameters, more than any model has")
    unknown = (
        () if kind in FAMILIES else (f"the model type {shown(kind)} is not known; it is taken for a usual decoder",)
    )
    encoder = vision.encoder(wrapper)
    return Geometry(
        architecture=(config.words("architectures") or (kind,))[0],
        layers=tuple(layer.cache for layer in layers),
        weights=weights,
        hidden_size=shape.hidden,
        vocabulary=shape.vocabulary,
        query_heads=shape.heads,
        mlp_width=_dense_width(layers),
        experts=shape.experts,
        experts_per_token=shape.experts_per_token,
        expert_width=shape.expert_width,
        positions=shape.positions,
        bytes_each=bytes_each,
        quantization=scheme.method,
        multimodal=towers.multimodal(wrapper),
        rotary_numbers=rotary.numbers(shape, layers, config.text("model_type")),
        encoder_numbers=encoder.numbers,
        encoder_patches=encoder.patches,
        encoder_item_tokens=encoder.item_tokens,
        draft_layers=tuple(layer.cache for layer in drafted if layer.cache),
        draft_weights=draft_weights,
        familiar=kind in FAMILIES,
        width_known=width_known,
        unsure=(*unknown, *doubts),
    )


def _tied(config: Fields, text: Fields, family: Family) -> bool:
    """The output head is the embedding: the outer section decides where it says so."""
    return config.flag("tie_word_embeddings", default=text.flag("tie_word_embeddings", default=family.tied))


def _attends_both_ways(text: Fields, family: Family) -> bool:
    """An encoder, or a decoder made into one for embeddings: nothing is cached."""
    return family.encoder or text.get("is_causal") is False or text.get("use_bidirectional_attention") is True


def _dense_width(layers: Sequence[Layer]) -> int:
    """The widest feed-forward that a token meets outside the experts, shared experts included."""
    ups = (
        tensor.rows
        for layer in {id(layer): layer for layer in layers}.values()
        for tensor in layer.tensors
        if tensor.part in ("mlp", "shared experts") and tensor.path.endswith("up_proj")
    )
    return max(ups, default=0)


def activation_bytes(config: Fields, text: Fields, dtype: str) -> int:
    """Bytes of an activation: the flag, else the configuration (vLLM serves float32 checkpoints as 16 bit)."""
    if dtype and dtype != "auto":
        name = dtype
    else:
        name = config.text("dtype", "torch_dtype") or text.text("dtype", "torch_dtype", default="bfloat16")
        name = "bfloat16" if name in ("float32", "torch.float32") else name
    name = name.removeprefix("torch.")
    if name not in DTYPE_BYTES:
        raise fault(f"dtype {name[:40]!r} is not one that a model computes in")
    return DTYPE_BYTES[name]
