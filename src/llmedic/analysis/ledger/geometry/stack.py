"""A decoder from its measures: embeddings, layers and head."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from llmedic.analysis.ledger.geometry import attention, feedforward, states
from llmedic.analysis.ledger.geometry.shape import LayerKind, Shape
from llmedic.analysis.ledger.geometry.tensors import Layer, Tensor, norm, vector

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Plan:
    """What tells one layer of a decoder from another."""

    kind: LayerKind
    sparse: bool
    index_width: int = 0


def each(keys: Iterable[Key], build: Callable[[Key], Layer]) -> tuple[Layer, ...]:
    """A layer for each key in order; equal keys share one object."""
    built: dict[Key, Layer] = {}
    return tuple(built.get(key) or built.setdefault(key, build(key)) for key in keys)


def layers(shape: Shape) -> tuple[Layer, ...]:
    """Every layer in order, as most families have them."""
    plans = map(Plan, shape.kinds, feedforward.mixture_layers(shape), attention.index_widths(shape))
    return each(plans, lambda plan: layer(shape, plan))


def layer(shape: Shape, plan: Plan) -> Layer:
    """Attention (or a gated delta net), feed-forward and norms."""
    if plan.kind == "state":
        mixer = states.delta_net(shape)
    elif shape.family.mixer == "mla":
        mixer = attention.latent(shape, plan.index_width)
    else:
        mixer = attention.grouped(shape, plan.kind)
    return joined(mixer, feedforward.feed_forward(shape, sparse=plan.sparse), norms(shape))


def joined(mixer: Layer, *more: tuple[Tensor, ...]) -> Layer:
    """A mixer's layer with the tensors around it."""
    return Layer(mixer.cache, (*mixer.tensors, *(tensor for tensors in more for tensor in tensors)))


def norms(shape: Shape) -> tuple[Tensor, ...]:
    """The normalisations of the hidden size in one layer; one where attention and feed-forward share theirs."""
    number, fields = shape.family.norms, shape.fields
    if shape.type == "falcon" and fields.flag("parallel_attn", default=True):
        both = 2 if fields.flag("new_decoder_architecture") else 1
        number = fields.count("num_ln_in_parallel_attn", default=both, most=2)
    if shape.type == "stablelm" and fields.flag("use_parallel_residual"):
        number = 1
    return norm("layernorms", shape.hidden * number, bias=shape.family.norm_bias)


def outside(shape: Shape, *, tied: bool) -> tuple[Tensor, ...]:
    """What is not in a layer: embeddings, last norm, output head."""
    family, hidden, vocabulary = shape.family, shape.hidden, shape.vocabulary
    width = shape.fields.count("word_embed_proj_dim", "embedding_size", default=hidden)
    tensors = [Tensor("embed_tokens", "embedding", vocabulary, width, "vocabulary")]
    if family.positions is not None:
        tensors.append(Tensor("embed_positions", "embedding", shape.positions + family.positions, hidden))
    if family.encoder:
        types = shape.fields.count("type_vocab_size", default=0, least=0)
        tensors.append(Tensor("token_type_embeddings", "embedding", types, hidden))
    if family.embedding_norm:
        tensors.extend(norm("embed_norm", hidden, bias=True))
    if family.final_norm:
        tensors.extend(norm("norm", hidden, bias=family.norm_bias))
    if not tied:
        tensors.append(Tensor("lm_head", "lm head", vocabulary, hidden, "vocabulary"))
    if shape.fields.switch(family.head_bias):
        tensors.extend(vector("lm_head.bias", "lm head", vocabulary, "vocabulary"))
    return tuple(tensors)
