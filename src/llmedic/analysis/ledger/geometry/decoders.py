"""Which recipe builds the decoder of a model type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from llmedic.analysis.ledger.geometry import gemma, hybrids, special, stack
from llmedic.analysis.ledger.geometry.shape import Shape
from llmedic.analysis.ledger.geometry.tensors import Layer, Tensor


class Outside(Protocol):
    """Makes what is outside the layers."""

    def __call__(self, shape: Shape, *, tied: bool) -> tuple[Tensor, ...]:
        """Embeddings, last norm, and the output head unless it is the embedding."""
        ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to build the layers, and what is around them."""

    layers: Callable[[Shape], tuple[Layer, ...]] = stack.layers
    outside: Outside = stack.outside


RECIPES: dict[str, Recipe] = {
    "gemma3n_text": Recipe(gemma.gemma3n, gemma.gemma3n_outside),
    "gemma4_text": Recipe(gemma.gemma4, gemma.outside),
    "jamba": Recipe(hybrids.jamba),
    "bamba": Recipe(hybrids.bamba),
    "granitemoehybrid": Recipe(hybrids.granite),
    "falcon_h1": Recipe(hybrids.falcon_h1),
    "nemotron_h": Recipe(hybrids.nemotron),
    "zamba2": Recipe(hybrids.zamba2),
    "lfm2": Recipe(hybrids.lfm2),
    "lfm2_moe": Recipe(hybrids.lfm2),
    "minimax": Recipe(hybrids.minimax),
    "minimax_text_01": Recipe(hybrids.minimax),
    "kimi_linear": Recipe(hybrids.kimi_linear),
    "mamba": Recipe(hybrids.mamba),
    "falcon_mamba": Recipe(hybrids.mamba),
    "mamba2": Recipe(hybrids.mamba2),
    "longcat_flash": Recipe(special.longcat),
    "mimo_v2": Recipe(special.mimo_v2),
    "mimo_v2_flash": Recipe(special.mimo_v2),
    "nemotron-nas": Recipe(special.deci),
    "minimax_m3": Recipe(special.minimax_m3),
    "step3p5": Recipe(special.step3),
    "whisper": Recipe(special.whisper),
}


def recipe(kind: str) -> Recipe:
    """The recipe of a model type; most share one."""
    return RECIPES.get(kind, Recipe())
