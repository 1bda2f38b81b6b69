"""The default --mem-fraction-static: what a release sets aside on a card for everything that is not weights or cache.

Sources: server_args.py of 0.4.6, 0.4.8, 0.4.10, 0.5.2 to 0.5.18; arg_groups/memory_hook.py of 0.5.20 and 0.5.23.
Sizes are MiB, as nvidia-smi tells them.
"""

from __future__ import annotations

from collections.abc import Mapping

from llmedic.analysis.ledger.sglang.settings import BATCHES, PHASES, PIECEWISE, RESERVE, Settings
from llmedic.model.deployment import Deployment
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import Range

_KIB = 1024
_SHARES = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))
"""Tensor parallel ranks from which on -> share, in the releases that looked at nothing else on cards up to 80 GiB."""
_CLASSES = ((35, 2.8, 0.1), (90, 9.5, 0.5), (160, 12.0, 0.5))
"""Card below GiB -> GiB set aside, and more of them for every rank."""
_VISION = Range(low=0.76, likely=0.95, high=0.9975)
"""What is left of the share for a model that sees: 0.95 x (0.8 to 1.05) by the size of its encoder."""
_BASE_ENCODER = 24 * 1024**2
"""Layers x width² of ViT-L/14."""


def fraction(geometry: Geometry, settings: Settings, deployment: Deployment, smi_mib: float) -> Range:
    """The share of a card of `smi_mib` MiB, typed or by default; 0 where more is set aside than the card has."""
    if settings.fraction is not None:
        return Range(low=settings.fraction, likely=settings.fraction, high=settings.fraction)
    share = max(_default(settings, smi_mib), 0.0)
    if not geometry.multimodal:
        return Range(low=share, likely=share, high=share)
    vision = _vision(deployment.model.config)
    return Range(low=share * vision.low, likely=share * vision.likely, high=share * vision.high)


def capture_sizes(largest: int) -> int:
    """How many prefill graphs are captured up to a number of tokens (generate_prefill_cuda_graph_batch_sizes)."""
    steps = (
        range(4, 33, 4),
        range(48, 257, 16),
        range(288, 513, 32),
        range(576, 1025, 64),
        range(1280, 4097, 256),
        range(4608, largest + 1, 512),
    )
    return sum(size <= largest for step in steps for size in step)


def _default(settings: Settings, smi_mib: float) -> float:
    if settings.version < RESERVE:
        if smi_mib <= 80 * _KIB:
            return next(share for ranks, share in _SHARES if settings.tensor >= ranks)
        return (smi_mib - 13 * _KIB) / smi_mib
    reserve = _by_class(settings, smi_mib) if settings.version < BATCHES else _by_batches(settings, smi_mib)
    return round((smi_mib - reserve) / smi_mib, 3)


def _by_class(settings: Settings, smi_mib: float) -> float:
    ranks = settings.tensor * settings.pipeline
    found = ((fixed + each * ranks) * _KIB for below, fixed, each in _CLASSES if smi_mib < below * _KIB)
    reserve = next(found, 32 * _KIB)
    return reserve + _draft(settings, 2) + (4 * _KIB if settings.data_attention else 0)


def _by_batches(settings: Settings, smi_mib: float) -> float:
    tokens = settings.chunk if settings.chunk > 0 else settings.prefill_tokens
    reserve = 512 + max(tokens, 2048) * 1.5
    reserve += settings.graph_batch * 2
    reserve += settings.tensor * settings.pipeline / 8 * _KIB
    if settings.data_attention:
        reserve += settings.graph_batch * settings.data * (4.5 if settings.graph_batch > 300 else 3)
    if settings.prefill_graphs and tokens > 0:
        reserve += 1.5 * _KIB if settings.latent else capture_sizes(settings.chunk) * 8
    if smi_mib > 60 * _KIB:
        reserve = max(reserve, 10 * _KIB)
    if settings.version >= PHASES:
        return reserve
    return reserve + _draft(settings, 4 if settings.version >= PIECEWISE else 2)


def _draft(settings: Settings, usual_gib: int) -> int:
    """What is set aside for drafts."""
    if not settings.speculation or (settings.speculation == "ngram" and settings.version >= BATCHES):
        return 0
    return 6 * _KIB if settings.speculation == "standalone" else usual_gib * _KIB


def _vision(config: Mapping[str, object]) -> Range:
    """`adjust_mem_fraction_for_vlm`: by the encoder's layers and width, where the configuration tells them."""
    encoder = config.get("vision_config")
    if not isinstance(encoder, Mapping):
        return _VISION
    layers, width = encoder.get("num_hidden_layers", 24), encoder.get("hidden_size", 1024)
    if not isinstance(layers, int) or not isinstance(width, int):
        return _VISION
    size = layers * width**2 / _BASE_ENCODER
    factor = 0.95 * max(0.8, min(1.05, 1.0 - 0.1 * (size - 1.0)))
    return Range(low=factor, likely=factor, high=factor)
