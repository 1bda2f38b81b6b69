"""What is wrong with an SGLang server's memory, and the one flag that answers it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import ceil, floor
from typing import Literal

from llmedic.analysis.ledger import ranges, trial
from llmedic.analysis.ledger.ranges import GIB
from llmedic.analysis.ledger.sglang.pool import Cells
from llmedic.analysis.ledger.sglang.settings import Settings
from llmedic.analysis.ledger.trial import Verdict
from llmedic.analysis.ledger.vllm.variants import Values
from llmedic.knowledge import flags
from llmedic.model.deployment import Deployment
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import CacheFit, Problem, Range, Term

Severity = Literal["warning", "critical"]
_HIGHEST_SHARE = 0.95
"""Above this nothing is left for activations of even a small chunk."""
_FEWEST_TOKENS = 2048
_LEAST_CHUNK, _LEAST_GRAPHS = 2048, 8
"""The engine's own defaults on the smallest cards."""


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


def problems(
    geometry: Geometry,
    deployment: Deployment,
    settings: Settings,
    static: Static,
    one: Cells,
    cache: CacheFit | None,
    verdict: Verdict,
) -> tuple[Problem, ...]:
    """Why it does not start, or what bites later. verdict: tries a change before it is advised."""
    if static.pool.low <= 0:
        return (_no_room(geometry, deployment, settings, static, one, verdict),)
    found = []
    if cache is not None and 0 < cache.printed_tokens.likely < settings.context:
        found.append(_too_long(settings, cache))
    return tuple(found)


def undivided(geometry: Geometry, deployment: Deployment, settings: Settings) -> tuple[Problem, ...]:
    """More pipeline stages than layers."""
    layers = len(geometry.layers)
    if settings.pipeline <= max(layers, 1):
        return ()
    text = f"{layers} layers cannot be divided over {settings.pipeline} pipeline stages"
    flag = flags.typed("pipeline_parallel_size", deployment.engine, deployment.version)
    most = min(layers, deployment.hardware.count or layers)
    change = f"{flag} {max(most // settings.tensor, 1)}" if flag else ""
    return (Problem(severity="critical", starts="no", text=text, change=change),)


def _no_room(
    geometry: Geometry, deployment: Deployment, settings: Settings, static: Static, one: Cells, verdict: Verdict
) -> Problem:
    """Set less aside, or raise the share, when that gives room for a few requests; else spread the weights."""
    have = ranges.gib(ranges.product(static.before, static.share))
    severity: Severity = "critical" if static.pool.high <= 0 else "warning"
    text = (
        f"weights take {ranges.gib(static.weights.size)} of the static share of {have}: nothing is left for the cache"
    )
    inside = chain(_smaller_batches(settings, static), _shares(settings, static, one))
    change = trial.first(inside, deployment, verdict)
    if change:
        return Problem(severity=severity, text=text, cause="startup-no-memory-for-kv", change=change)
    wider = trial.wider(geometry, deployment, settings.tensor, settings.pipeline)
    change = trial.first(wider, deployment, verdict)
    return Problem(severity=severity, text=text, cause="weights-do-not-fit", change=change)


def _smaller_batches(settings: Settings, static: Static) -> Iterator[Values]:
    """Where the batches that were asked for have more set aside than there is: half of them, a quarter, and so on."""
    if static.share.likely > 0:
        return
    for name, now, least in (
        ("chunked_prefill_size", settings.chunk, _LEAST_CHUNK),
        ("max_cudagraph_capture_size", settings.graph_batch, _LEAST_GRAPHS),
    ):
        while now // 2 >= least:
            now //= 2
            yield {name: now}


def _shares(settings: Settings, static: Static, one: Cells) -> Iterator[Values]:
    """The share that holds the weights and a few requests."""
    wanted = static.weights.size.high + one.per_token(settings.window_ratio) * max(_FEWEST_TOKENS, settings.page)
    if wanted <= static.before.low * _HIGHEST_SHARE:
        yield {"mem_fraction_static": ceil(wanted / static.before.low * 1000) / 1000}


def _too_long(settings: Settings, cache: CacheFit) -> Problem:
    tokens = floor(cache.printed_tokens.low) or floor(cache.printed_tokens.likely)
    text = (
        f"the cache holds {cache.printed_tokens.likely:.0f} tokens, one request may have {settings.context}: "
        f"longer requests are refused ({cache.bytes_per_token / GIB * settings.context:.2f} GiB would be needed)"
    )
    change = f"--context-length {tokens}"
    return Problem(severity="warning", text=text, cause="max-model-len-exceeds-kv-pool", change=change)
