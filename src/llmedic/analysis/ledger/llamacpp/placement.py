"""Which layers, weights and caches llama.cpp puts on which card, and what stays in host memory."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from llmedic.analysis.ledger.llamacpp.settings import FIT, Settings
from llmedic.errors import InputError
from llmedic.model.geometry import Geometry, WeightPart

HOST = -1

_TENSORS = {
    "attention": ("attn_q", "attn_output"),
    "key-value": ("attn_k", "attn_v"),
    "mlp": ("ffn_gate", "ffn_up", "ffn_down"),
    "experts": ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"),
    "shared experts": ("ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"),
    "router": ("ffn_gate_inp",),
    "state": ("ssm_in", "ssm_out"),
    "norm": ("attn_norm", "ffn_norm"),
}
"""Kind of weight -> its tensors in a GGUF file, taken as equally large: what --override-tensor is matched against."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Bytes of weights per card and in host memory, and the card of every layer (HOST: none)."""

    cards: tuple[float, ...]
    host: float
    layers: tuple[int, ...]
    output: int
    largest_host_tensor: float


def place(geometry: Geometry, settings: Settings) -> Placement:
    """Divide the weights as `llama_model::load_tensors` does (src/llama-model.cpp). Raises InputError for a bad regex.

    The last layers go to the cards. Since the release that counts the output layer first, N layers are the output and
    N - 1 others; before it, N layers are N others, and the output only follows when N exceeds their number.
    """
    count = len(geometry.layers)
    order = tuple(_card(settings, il, count) for il in range(count + 1))
    layers, output = order[:count], order[count]
    cards = [0.0] * len(settings.split)
    host = largest = 0.0
    patterns = _patterns(settings)
    tied = not any(part.name == "lm head" for part in geometry.weights)
    for part in geometry.weights:
        card = _home(part, layers, output)
        kept = part.bytes * _host_share(part, settings, patterns) if card != HOST else part.bytes
        if kept and part.layer is not None:
            largest = max(largest, part.bytes / len(_TENSORS.get(part.name, ("",))))
        host += kept
        if card != HOST:
            _add(cards, card, part.bytes - kept, settings)
        if part.name == "embedding" and tied:
            if output == HOST:
                largest = max(largest, part.bytes)
            else:
                _add(cards, output, part.bytes, settings)
        elif part.name == "lm head" and output == HOST:
            largest = max(largest, part.bytes)
    return Placement(tuple(cards), host, layers, output, largest)


def _card(settings: Settings, il: int, count: int) -> int:
    """Card of layer `il`; layer `count` is the output."""
    first = count + (1 if settings.build >= FIT else 0) - settings.gpu_layers
    first = max(first, 0)
    taken = min(settings.gpu_layers, count + 1)
    if il < first or il - first >= taken:
        return HOST
    if settings.split_mode != "layer" or len(settings.split) == 1:
        return 0
    whole = sum(settings.split)
    edges = [share / whole for share in accumulate(settings.split)]
    return min(bisect_right(edges, (il - first) / taken), len(edges) - 1)


def _home(part: WeightPart, layers: tuple[int, ...], output: int) -> int:
    if part.layer is not None:
        return layers[part.layer] if part.layer < len(layers) else output
    return HOST if part.name in ("embedding", "vision", "audio") else output


def _add(cards: list[float], card: int, size: float, settings: Settings) -> None:
    """A row split divides every weight over the cards by their shares; a layer split leaves it whole."""
    if settings.split_mode != "row":
        cards[card] += size
        return
    for index, share in enumerate(settings.split):
        cards[index] += size * share / sum(settings.split)


def _patterns(settings: Settings) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(re.compile(pattern) for pattern in settings.overrides)
    except re.error as error:
        raise InputError(f"override_tensor: {error}", hint="give PATTERN=BUFFER, for example exps=CPU") from None


def _host_share(part: WeightPart, settings: Settings, patterns: tuple[re.Pattern[str], ...]) -> float:
    """Share of a weight on a card that flags keep in host memory all the same."""
    if part.layer is None:
        return 0.0
    if part.name == "experts" and part.layer < settings.host_experts:
        return 1.0
    names = [f"blk.{part.layer}.{name}.weight" for name in _TENSORS.get(part.name, ())]
    hits = sum(any(pattern.search(name) for pattern in patterns) for name in names)
    return hits / len(names) if names else 0.0
