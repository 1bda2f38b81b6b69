"""A decoder from its measures: embeddings, layers and head."""

from __future__ import annotations

from dataclasses import dataclass

from llmedic.analysis.ledger.geometry import attention, feedforward, states
from llmedic.analysis.ledger.geometry.shape import LayerKind, Shape
from llmedic.analysis.ledger.geometry.tensors import Layer, Tensor, linear, norm, vector


@dataclass(frozen=True, slots=True)
class Plan:
    """What tells one layer of a decoder from another."""

    kind: LayerKind
    sparse: bool
    index_width: int


def layers(shape: Shape) -> tuple[Layer, ...]:
    """Every layer in order; equal ones are one object."""
    plans = map(Plan, shape.kinds, feedforward.mixture_layers(shape), attention.index_widths(shape))
    built: dict[Plan, Layer] = {}
    return tuple(built.get(plan) or built.setdefault(plan, _layer(shape, plan)) for plan in plans)


def _layer(shape: Shape, plan: Plan) -> Layer:
    """Attention (or a recurrent state), feed-forward and norms, as most families have them."""
    if plan.kind == "state":
        mixer = states.delta_net(shape)
    elif shape.family.mixer == "mla":
        mixer = attention.latent(shape, plan.index_width)
    else:
        mixer = attention.grouped(shape, plan.kind)
    return Layer(mixer.cache, (*mixer.tensors, *feedforward.feed_forward(shape, plan.sparse), *norms(shape)))


def norms(shape: Shape) -> tuple[Tensor, ...]:
    """The normalisations of the hidden size in one layer."""
    return tuple(
        tensor
        for number in range(shape.family.norms)
        for tensor in norm(f"layernorm_{number}", shape.hidden, bias=shape.family.norm_bias)
    )


def outside(shape: Shape, tied: bool) -> tuple[Tensor, ...]:
    """What is not in a layer: embeddings, last norm, output head."""
    family, hidden, vocabulary = shape.family, shape.hidden, shape.vocabulary
    tensors = [Tensor("embed_tokens", "embedding", vocabulary, hidden, "vocabulary")]
    if family.positions is not None:
        tensors.append(Tensor("embed_positions", "embedding", shape.positions + family.positions, hidden))
    if family.final_norm:
        tensors.extend(norm("norm", hidden, bias=family.norm_bias))
    if not tied:
        tensors.append(Tensor("lm_head", "lm head", vocabulary, hidden, "vocabulary"))
    if shape.fields.switch(family.head_bias):
        tensors.extend(vector("lm_head.bias", "lm head", vocabulary, "vocabulary"))
    return tuple(tensors)
