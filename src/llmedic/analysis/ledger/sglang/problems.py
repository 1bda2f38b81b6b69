"""What is wrong with an SGLang server's memory, and the one flag that answers it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Literal

from llmedic.analysis.ledger import ranges
from llmedic.analysis.ledger.ranges import GIB
from llmedic.analysis.ledger.sglang.pool import Cells
from llmedic.analysis.ledger.sglang.settings import Settings
from llmedic.model.ledger import CacheFit, Problem, Range, Term

Severity = Literal["warning", "critical"]
_HIGHEST_SHARE = 0.95
"""Above this nothing is left for activations of even a small chunk."""
_FEWEST_TOKENS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Static:
    """The static share of a card: free before the weights, the share, and who takes it."""

    before: Range
    context: Range
    share: Range
    weights: Term
    state: Range
    slots: int
    pool: Range


def problems(settings: Settings, static: Static, one: Cells, cache: CacheFit | None) -> tuple[Problem, ...]:
    """Why it does not start, or what bites later."""
    if static.pool.low <= 0:
        return (_no_room(settings, static, one),)
    found = []
    if cache is not None and 0 < cache.printed_tokens.likely < settings.context:
        found.append(_too_long(settings, cache))
    return tuple(found)


def _no_room(settings: Settings, static: Static, one: Cells) -> Problem:
    """Raise the share when that gives room for a few requests, else spread the weights."""
    wanted = static.weights.size.high + one.per_token(settings.window_ratio) * max(_FEWEST_TOKENS, settings.page)
    share = ceil(wanted / static.before.low * 1000) / 1000
    have = ranges.gib(ranges.product(static.before, static.share))
    severity: Severity = "critical" if static.pool.high <= 0 else "warning"
    text = (
        f"weights take {ranges.gib(static.weights.size)} of the static share of {have}: nothing is left for the cache"
    )
    if share <= _HIGHEST_SHARE:
        change = f"--mem-fraction-static {share:.3f}"
        return Problem(severity=severity, text=text, cause="startup-no-memory-for-kv", change=change)
    change = f"--tp-size {settings.tensor * 2}"
    return Problem(severity=severity, text=text, cause="weights-do-not-fit", change=change)


def _too_long(settings: Settings, cache: CacheFit) -> Problem:
    tokens = floor(cache.printed_tokens.low) or floor(cache.printed_tokens.likely)
    text = (
        f"the cache holds {cache.printed_tokens.likely:.0f} tokens, one request may have {settings.context}: "
        f"longer requests are refused ({cache.bytes_per_token / GIB * settings.context:.2f} GiB would be needed)"
    )
    change = f"--context-length {tokens}"
    return Problem(severity="warning", text=text, cause="max-model-len-exceeds-kv-pool", change=change)
