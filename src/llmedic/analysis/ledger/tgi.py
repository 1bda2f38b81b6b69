"""The ledger of TGI (text-generation-inference): it warms up with the largest prefill and gives the rest to the cache.

server/text_generation_server/models/flash_causal_lm.py (warmup), models/globals.py, utils/import_utils.py of 1.1.0 to
3.3.7. Every layer keeps every token: windows only mask. The releases differ in what they leave free:

    before 1.4   blocks = free // block
    1.4 to 2.x   blocks = free x room // block
    from 3.0     blocks = (free - (1 - fraction x room) x card) // block
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor
from typing import Literal

from llmedic.analysis.ledger import nocache, ranges, trial
from llmedic.analysis.ledger.flagview import Flags, assumed_release, shown
from llmedic.analysis.ledger.ranges import GIB
from llmedic.analysis.ledger.vllm.settings import Settings as Degrees
from llmedic.analysis.ledger.vllm.variants import Values
from llmedic.analysis.ledger.vllm.weights import stage_weights
from llmedic.errors import InputError
from llmedic.knowledge import releases
from llmedic.model.deployment import Deployment
from llmedic.model.evidence import Gap
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import CacheFit, Ledger, Problem, Range, Setting, Starts, Term

ROOM, WHOLE_CARD, LAST_LOGITS = (1, 4), (3, 0), (3, 0)
_ROOMS = (((3, 3), 0.90), ((3, 1), 0.93), ((3, 0), 0.95), ((2, 4), 0.90), ((1, 4), 0.95), ((0,), 1.0))
"""TGI_WIGGLE_ROOM, since which release."""
_BLOCKS = {"flashinfer": 1, "flashdecoding": 256, "flashdecoding-ipex": 64, "paged": 16}
_CURRENT = (9, 9, 9)
_FLASHINFER_WIDTHS = (64, 128, 256)
CONTEXT = Range(low=0.3 * GIB, likely=0.6 * GIB, high=1.5 * GIB)
"""Driver, cuBLAS and NCCL."""
LOGIT_BYTES = Range(low=5.0, likely=7.2, high=12.0)
"""Of every prefill token and entry of the vocabulary, while prefill logits were computed for all tokens: Llama 3.1 8B
on A10G left 19056 tokens, Mistral 7B left 43808."""
FORWARD = Range(low=0.5, likely=1.5, high=4.0)
"""Of the widest layer's intermediate results: what PyTorch's allocator holds after the warm-up."""
_PREFILL, _LEAST_PREFILL = 4096, 256

Severity = Literal["warning", "critical"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the arithmetic needs. room: share of memory that is used at all; block: tokens."""

    version: tuple[int, ...]
    shards: int
    fraction: float
    room: float
    block: int
    prefill_tokens: int
    total_tokens: int
    element_bytes: float


def ledger(geometry: Geometry, deployment: Deployment, total: Term | None) -> Ledger:
    """Where the memory of one card goes. Raises InputError for flags that TGI would refuse."""
    settings = resolve(geometry, deployment)
    weights = stage_weights(geometry, Degrees(tensor_parallel=settings.shards), 0, "")
    cell = token_bytes(geometry, settings)
    pool = _pool(geometry, settings, weights, total) if total and cell else None
    cache = _cache(settings, cell, pool) if pool and pool.high > 0 else None
    return Ledger(
        engine="tgi",
        version=deployment.version,
        era="tgi-whole-card" if settings.version >= WHOLE_CARD else "tgi-free-memory",
        formula="what the card has, times fraction and room, less weights and the warm-up of the largest prefill",
        devices=settings.shards,
        total=total,
        requested=_requested(settings, total) if total else None,
        terms=(
            weights,
            Term(id="activation", size=warmup(geometry, settings), basis="calibrated", how=_prefill(settings)),
            Term(id="non_torch", size=CONTEXT, basis="assumed", how="driver and libraries"),
        ),
        pool=Term(id="kv_cache", size=pool, basis="computed", how="what is left after the warm-up") if pool else None,
        starts=_starts(settings, pool, cache),
        cache=cache,
        geometry=geometry,
        problems=_problems(geometry, deployment, settings, weights, total, pool, cache),
        settings=_shown(settings, deployment),
        notes=(*assumed_release(deployment), *geometry.unsure, *nocache.notes(geometry), *_notes(geometry)),
        gaps=_gaps(geometry, total, cell),
    )


def resolve(geometry: Geometry, deployment: Deployment) -> Settings:
    """The settings with the defaults of the release. Raises InputError."""
    flags = Flags(deployment)
    version = releases.numbers(deployment.version) or _CURRENT
    fraction = flags.number("cuda_memory_fraction", default=1.0)
    if not 0 < fraction <= 1:
        raise InputError(f"cuda_memory_fraction: {fraction:g} is no share of the card", hint="for example 0.8")
    usual = next(room for since, room in _ROOMS if version >= since)
    room = _number(deployment.environment.get("TGI_WIGGLE_ROOM"), usual)
    return Settings(
        version=version,
        shards=flags.count("tensor_parallel_size", default=1, low=1),
        fraction=fraction,
        room=room,
        block=_block(geometry, version, deployment.environment.get("ATTENTION", "")),
        prefill_tokens=flags.count(
            "max_prefill_tokens", default=flags.count("max_input_tokens", default=_PREFILL) + 50
        ),
        total_tokens=flags.count("max_total_tokens_per_request"),
        element_bytes=1.0 if flags.word("kv_cache_dtype").startswith("fp8") else float(geometry.bytes_each),
    )


def token_bytes(geometry: Geometry, settings: Settings) -> float:
    """Of one token on one card; 0 for layers that this arithmetic does not hold for (latent attention, states)."""
    found = 0.0
    for layer in geometry.layers:
        if layer is None:
            continue
        if layer.kind in ("mla", "state"):
            return 0.0
        heads = max(1, layer.kv_heads // settings.shards)
        found += heads * (layer.head_dim + (layer.value_dim or layer.head_dim)) * settings.element_bytes
    return found


def warmup(geometry: Geometry, settings: Settings) -> Range:
    """What the warm-up leaves in PyTorch's allocator: one layer's results, and logits of every token before 3.0."""
    tokens = settings.prefill_tokens
    width = max(geometry.mlp_width, geometry.experts_per_token * geometry.expert_width) * 3 / settings.shards
    forward = tokens * (width + 8 * geometry.hidden_size) * geometry.bytes_each
    rows = tokens if settings.version < LAST_LOGITS else 0
    logits = ranges.times(LOGIT_BYTES, float(rows * geometry.vocabulary))
    return ranges.stacked((ranges.times(FORWARD, forward), logits))


def available(settings: Settings, total: Range, used: Range) -> Range:
    """Bytes for the cache on a card of `total` bytes of which `used` are taken after the warm-up."""
    if settings.version >= WHOLE_CARD:
        return ranges.less(ranges.times(total, settings.fraction * settings.room), used)
    free = ranges.less(ranges.times(total, settings.fraction), used)
    return Range(
        low=_shrunk(free.low, settings.room),
        likely=_shrunk(free.likely, settings.room),
        high=_shrunk(free.high, settings.room),
    )


def _shrunk(free: float, room: float) -> float:
    return free * room if free > 0 else free


def _pool(geometry: Geometry, settings: Settings, weights: Term, total: Term) -> Range:
    return available(settings, total.size, ranges.total((weights.size, warmup(geometry, settings), CONTEXT)))


def _block(geometry: Geometry, version: tuple[int, ...], attention: str) -> int:
    """Tokens of a block: by the attention that is asked for, else by release and width of a head."""
    if attention:
        if attention not in _BLOCKS:
            raise InputError(f"ATTENTION: TGI has no {attention!r}", hint="one of " + ", ".join(_BLOCKS))
        return _BLOCKS[attention]
    if version < (2, 3):
        return _BLOCKS["paged"]
    widths = {layer.head_dim for layer in geometry.layers if layer is not None and layer.head_dim}
    return _BLOCKS["flashinfer" if widths <= set(_FLASHINFER_WIDTHS) else "flashdecoding"]


def _cache(settings: Settings, cell: float, pool: Range) -> CacheFit:
    each = cell * settings.block
    low, likely, high = (float(max(0, floor(size / each))) for size in (pool.low, pool.likely, pool.high))
    blocks = Range(low=low, likely=likely, high=high)
    tokens = ranges.times(blocks, settings.block)
    length = settings.total_tokens or max(1, int(tokens.likely))
    return CacheFit(
        bytes_per_block=round(each),
        block_tokens=settings.block,
        groups=1,
        bytes_per_token=cell,
        blocks=blocks,
        printed_tokens=tokens,
        blocks_per_request=-(-length // settings.block),
        max_model_len=length,
        concurrency=ranges.times(tokens, 1 / length),
        longest_request=tokens,
    )


def _requested(settings: Settings, total: Term) -> Term:
    share = settings.fraction * (settings.room if settings.version >= WHOLE_CARD else 1.0)
    how = f"{ranges.gib(total.size)} x {share:.2f}"
    return Term(id="requested", size=ranges.times(total.size, share), basis="computed", how=how)


def _starts(settings: Settings, pool: Range | None, cache: CacheFit | None) -> Starts:
    if pool is None:
        return "unknown"
    if cache is None or cache.printed_tokens.high < settings.total_tokens:
        return "no"
    return "yes" if pool.low > 0 and cache.printed_tokens.low >= settings.total_tokens else "perhaps"


def _problems(
    geometry: Geometry,
    deployment: Deployment,
    settings: Settings,
    weights: Term,
    total: Term | None,
    pool: Range | None,
    cache: CacheFit | None,
) -> tuple[Problem, ...]:
    if total is None or pool is None:
        return ()
    if cache is None or pool.low <= 0:
        return (_no_room(geometry, deployment, settings, weights, total, certain=cache is None),)
    if settings.total_tokens > cache.printed_tokens.low:
        tokens = floor(cache.printed_tokens.low)
        text = (
            f"--max-total-tokens {settings.total_tokens} is more than the cache holds: "
            f"{cache.printed_tokens.likely:.0f} tokens of {cache.bytes_per_token:.0f} bytes"
        )
        change = f"--max-total-tokens {tokens}"
        severe = settings.total_tokens > cache.printed_tokens.high
        cause = "max-model-len-exceeds-kv-pool"
        return (Problem(severity="critical" if severe else "warning", text=text, cause=cause, change=change),)
    return ()


def _no_room(
    geometry: Geometry, deployment: Deployment, settings: Settings, weights: Term, total: Term, *, certain: bool
) -> Problem:
    """A smaller prefill when that leaves something for the cache, else more cards."""
    peak = warmup(geometry, settings)
    text = (
        f"weights take {ranges.gib(weights.size)} and the warm-up of {settings.prefill_tokens} tokens "
        f"{ranges.gib(peak)} of {ranges.gib(total.size)}: nothing is left for the cache"
    )

    def verdict(changed: Deployment) -> Starts:
        return "no" if refused(changed) else _tried(geometry, resolve(geometry, changed), total)

    severity: Severity = "critical" if certain else "warning"
    change = trial.first(_prefills(settings, Flags(deployment).count("max_input_tokens")), deployment, verdict)
    if change:
        return Problem(severity=severity, text=text, cause="prefill-budget-activation-oom", change=change)
    change = trial.first(trial.wider(geometry, deployment, settings.shards), deployment, verdict)
    return Problem(severity=severity, text=text, cause="weights-do-not-fit", change=change)


def _tried(geometry: Geometry, settings: Settings, total: Term) -> Starts:
    """Whether it starts under other settings, with room for one prefill."""
    weights = stage_weights(geometry, Degrees(tensor_parallel=settings.shards), 0, "")
    pool, cell = _pool(geometry, settings, weights, total), token_bytes(geometry, settings)
    if pool.low <= settings.prefill_tokens * cell:
        return "no"
    return _starts(settings, pool, _cache(settings, cell, pool))


def _prefills(settings: Settings, longest_input: int) -> Iterator[Values]:
    """Smaller prefills, and inputs no longer than them, which the launcher asks for."""
    tokens = settings.prefill_tokens
    while tokens > _LEAST_PREFILL:
        tokens //= 2
        yield {"max_prefill_tokens": tokens} | ({"max_input_tokens": tokens} if longest_input > tokens else {})


def refused(deployment: Deployment) -> bool:
    """TGI's launcher refuses inputs that are longer than one prefill (launcher/src/main.rs)."""
    given = Flags(deployment)
    prefill = given.count("max_prefill_tokens")
    return 0 < prefill < given.count("max_input_tokens") and deployment.engine == "tgi"


def _shown(settings: Settings, deployment: Deployment) -> tuple[Setting, ...]:
    used = {
        "cuda_memory_fraction": f"{settings.fraction:g}",
        "max_prefill_tokens": str(settings.prefill_tokens),
        "max_total_tokens_per_request": str(settings.total_tokens or ""),
        "kv_cache_dtype": str(Flags(deployment).value("kv_cache_dtype") or ""),
        "tensor_parallel_size": str(settings.shards),
    }
    return shown(deployment, used)


def _prefill(settings: Settings) -> str:
    return f"warm-up of {settings.prefill_tokens} prefill tokens"


def _notes(geometry: Geometry) -> tuple[str, ...]:
    windows = any(layer is not None and layer.kind in ("sliding", "chunked") for layer in geometry.layers)
    return ("TGI keeps every token in layers with a window",) if windows else ()


def _gaps(geometry: Geometry, total: Term | None, cell: float) -> tuple[Gap, ...]:
    found = []
    if total is None:
        found.append(Gap(what="memory of the card", why="no card was named", how="--gpu NAME, or nvidia-smi"))
    if not cell and nocache.keeps_cache(geometry):
        why = "TGI's cache for latent attention and recurrent layers follows other rules"
        found.append(Gap(what="size of the KV cache", why=why, how="the log line 'Setting max batch total tokens to'"))
    return tuple(found)


def _number(text: str | None, usual: float) -> float:
    try:
        return float(text) if text else usual
    except ValueError:
        raise InputError(f"TGI_WIGGLE_ROOM: {text!r} is not a number") from None
