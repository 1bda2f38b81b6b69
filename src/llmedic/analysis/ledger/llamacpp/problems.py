"""What is wrong with a llama.cpp server's memory, and the one flag that answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from llmedic.analysis.ledger.llamacpp.settings import BLOCK_BYTES, STREAMS, Settings, with_context
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import Problem, Range, Starts, Term

_GIB = 2**30
_SMALLEST_CONTEXT = 4096
"""Below this --fit does not go either (common/common.h fit_params_min_ctx)."""

Severity = Literal["info", "warning", "critical"]
Need = Callable[[Settings], Range]
"""Settings -> what the fullest card has to give."""


def problems(
    geometry: Geometry, settings: Settings, total: Term | None, starts: Starts, *, need: Need
) -> tuple[Problem, ...]:
    """Why it does not start, or what bites later."""
    found = [*_refused(settings), *_shared(settings)]
    if total is not None and starts in ("no", "perhaps"):
        found.append(_too_large(geometry, settings, total.size.low, starts, need))
    return tuple(found)


def _refused(settings: Settings) -> list[Problem]:
    """Combinations that the engine refuses whatever the card has."""
    if settings.flash is not False or settings.value_type in ("f32", "f16", "bf16"):
        return []
    text = f"a quantised value cache ({settings.value_type}) needs flash attention, which is off"
    return [Problem(severity="critical", text=text, change="--flash-attn on")]


def _shared(settings: Settings) -> list[Problem]:
    """Slots that divide the context among them."""
    if settings.streams == 1 and (settings.build >= STREAMS or settings.slots == 1):
        return []
    text = (
        f"--ctx-size {settings.context_tokens} is divided over {settings.slots} slots: "
        f"one request has {settings.slot_tokens} tokens for its prompt and its answer"
    )
    change = "--kv-unified" if settings.build >= STREAMS else f"--ctx-size {settings.context_tokens * settings.slots}"
    return [Problem(severity="info", text=text, cause="slots-share-context", change=change)]


def _too_large(geometry: Geometry, settings: Settings, card: float, starts: Starts, need: Need) -> Problem:
    wanted = need(settings)
    severity: Severity = "critical" if starts == "no" else "warning"
    text = f"the fullest card needs {wanted.likely / _GIB:.2f} GiB and has {card / _GIB:.2f} GiB"
    if settings.fit and not (settings.layers_given and settings.context_given):
        text += "; --fit lowers what was not given"
        severity = "info" if not settings.layers_given else severity
    context = largest_context(settings, card, need)
    if context >= min(_SMALLEST_CONTEXT, settings.context_tokens):
        change = f"--ctx-size {context}"
        narrow = _quantised(settings, card, need)
        cause = "startup-no-memory-for-kv"
        return Problem(severity=severity, text=text + narrow, cause=cause, change=change)
    layers = largest_layers(geometry, settings, card, need)
    text += f"; {len(geometry.layers) + 1} layers do not fit at any context from {_SMALLEST_CONTEXT} tokens up"
    return Problem(severity=severity, text=text, cause="weights-do-not-fit", change=f"--n-gpu-layers {layers}")


def _quantised(settings: Settings, card: float, need: Need) -> str:
    """Whether the narrower cache alone would be enough."""
    if BLOCK_BYTES[settings.key_type] != (1, 2) or settings.flash is False:
        return ""
    narrow = replace(settings, key_type="q8_0", value_type="q8_0")
    if need(narrow).high > card:
        return ""
    return "; --cache-type-k q8_0 --cache-type-v q8_0 would make the whole context fit"


def largest_context(settings: Settings, card: float, need: Need) -> int:
    """Largest --ctx-size whose upper estimate fits the card; 0 when none does."""
    step = 256 * settings.streams
    low, high = 0, settings.context_tokens // step
    while low < high:
        middle = (low + high + 1) // 2
        fits = need(with_context(settings, middle * step)).high <= card
        low, high = (middle, high) if fits else (low, middle - 1)
    return low * step


def largest_layers(geometry: Geometry, settings: Settings, card: float, need: Need) -> int:
    """Largest --n-gpu-layers whose upper estimate fits the card; 0 when not even one layer does."""
    low, high = 0, min(settings.gpu_layers, len(geometry.layers) + 1)
    while low < high:
        middle = (low + high + 1) // 2
        fits = need(replace(settings, gpu_layers=middle)).high <= card
        low, high = (middle, high) if fits else (low, middle - 1)
    return low
