"""Layers that only speculative decoding uses: multi-token prediction in the model itself.

Sources: vLLM 0.33 `deepseek_mtp.py`, `qwen3_5_mtp.py`, `mimo_v2_mtp.py`, `nemotron_h_mtp.py`. Embedding and output head
are those of the model.
"""

from __future__ import annotations

from dataclasses import replace

from llmedic.analysis.ledger.geometry import attention, feedforward, hybrids, special, stack
from llmedic.analysis.ledger.geometry.fields import fault
from llmedic.analysis.ledger.geometry.shape import Shape
from llmedic.analysis.ledger.geometry.tensors import Layer, Tensor, norm

MOST_MODULES = 64
NAMES = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
WITHOUT = frozenset({"gemma3n_text", "jamba", "bamba", "falcon_h1", "zamba2", "mamba", "mamba2", "falcon_mamba"})


def drafts(shape: Shape) -> tuple[Layer, ...]:
    """The model's own draft layers, in order; none for most models."""
    number = shape.fields.count(*NAMES, default=0, least=0, most=MOST_MODULES)
    if not number or shape.type in WITHOUT:
        return ()
    return tuple(_drafted(layer) for layer in _module(shape)) * number


def _module(shape: Shape) -> tuple[Layer, ...]:
    """The layers of one prediction module, the joint of hidden state and embedding in the first."""
    fields, hidden = shape.fields, shape.hidden
    joint = (Tensor("mtp.eh_proj", "draft", hidden, 2 * hidden), *norm("mtp.norms", 3 * hidden))
    if shape.type == "nemotron_h":
        pattern = fields.text("mtp_hybrid_override_pattern", default="*E")
        if not pattern or set(pattern) - set("M*E-"):
            raise fault("mtp_hybrid_override_pattern names a kind of layer that is not known")
        first, *others = (hybrids.nemotron_layer(shape, hybrids.LETTERS[letter]) for letter in pattern[:MOST_MODULES])
        return (stack.joined(first, joint), *others)
    if shape.type in ("mimo_v2", "mimo_v2_flash"):
        mixer = special.mimo_v2_attention(shape, sliding=True)
        after = feedforward.dense("mlp", "mlp", hidden, shape.width)
        return (stack.joined(mixer, after, stack.norms(shape), joint),)
    sparse = feedforward.mixture_layers(shape)[-1]
    width = max(attention.index_widths(shape), default=0)
    return (stack.joined(stack.layer(shape, stack.Plan("full", sparse, width)), joint),)


def _drafted(layer: Layer) -> Layer:
    return Layer(replace(layer.cache, draft=True) if layer.cache else None, layer.tensors)
