"""The ledger of SGLang.

The static share is of the memory that was free before the weights: rest = free after them - free before x (1 - share),
so the cache gets free-before x share - weights. Activations and CUDA graphs live in what is left outside.
"""

from __future__ import annotations

from math import ceil

from llmedic.analysis.ledger import nocache, ranges
from llmedic.analysis.ledger.flagview import Flags, assumed_release, shown
from llmedic.analysis.ledger.ranges import GIB, MIB
from llmedic.analysis.ledger.sglang import pool as pools
from llmedic.analysis.ledger.sglang import settings as flags
from llmedic.analysis.ledger.sglang.fraction import fraction
from llmedic.analysis.ledger.sglang.problems import Static, problems, undivided
from llmedic.analysis.ledger.sglang.settings import Settings
from llmedic.analysis.ledger.vllm.settings import Settings as Degrees
from llmedic.analysis.ledger.vllm.weights import stage_weights
from llmedic.model.deployment import Deployment
from llmedic.model.evidence import Gap
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import Basis, CacheFit, Ledger, Range, Setting, Starts, Term

SMI_ABOVE_CUDA = 500 * MIB
"""nvidia-smi's total counts memory that CUDA does not give out: 46068 against 45486 MiB on L40S."""
CONTEXT_ALONE = Range(low=0.3 * GIB, likely=0.55 * GIB, high=1.0 * GIB)
CONTEXT_SHARED = Range(low=0.9 * GIB, likely=2.0 * GIB, high=2.8 * GIB)
"""Gone before the weights: driver, and communicators of several ranks. Printed as "Load weight begin. avail mem":
94.63 GB on H20 96 GB with one rank; 137.29 on H200 with eight, 21.63 on 24 GB cards with four."""
_EXTRA_CONTEXT = 4
"""Rows of request slots are so much longer than the context (req_to_token_pool)."""


def ledger(geometry: Geometry, deployment: Deployment, total: Term | None) -> Ledger:
    """Where the memory of one card goes. Raises InputError or UsageError for flags that SGLang would refuse."""
    smi = (total.size.likely + SMI_ABOVE_CUDA) / MIB if total else None
    settings = flags.resolve(geometry, deployment, smi)
    static = _static(geometry, settings, deployment, total)

    def verdict(changed: Deployment) -> Starts:
        other = flags.resolve(geometry, changed, smi)
        return _starts(geometry, other, _static(geometry, other, changed, total))

    one = pools.cells(geometry, settings)
    keeps = nocache.keeps_cache(geometry)
    cache = _cache(one, static, settings) if keeps and static and static.pool.high > 0 else None
    return Ledger(
        engine="sglang",
        version=deployment.version,
        era=_era(settings),
        formula="(free before the weights) x mem-fraction-static - weights - recurrent state",
        devices=settings.tensor * settings.pipeline,
        total=total,
        requested=_requested(static) if static else None,
        terms=_terms(static, settings) if static else (_weights(geometry, settings),),
        pool=Term(id="kv_cache", size=static.pool, basis="computed", how="static share less the terms above")
        if static and (keeps or static.pool.high <= 0)
        else None,
        starts=_starts(geometry, settings, static),
        outside=_outside(static, settings, cache) if static else (),
        cache=cache,
        geometry=geometry,
        problems=(
            *undivided(geometry, deployment, settings),
            *(problems(geometry, deployment, settings, static, one, cache, verdict) if static else ()),
        ),
        settings=_shown(settings, deployment, static),
        notes=(*assumed_release(deployment), *geometry.unsure, *nocache.notes(geometry), *_notes(geometry, settings)),
        gaps=()
        if total
        else (Gap(what="memory of the card", why="no card was named", how="--gpu NAME, or nvidia-smi"),),
    )


def _static(geometry: Geometry, settings: Settings, deployment: Deployment, total: Term | None) -> Static | None:
    """The static share and who takes it; None without a card."""
    if total is None:
        return None
    share = fraction(geometry, settings, deployment, (total.size.likely + SMI_ABOVE_CUDA) / MIB)
    context = CONTEXT_ALONE if settings.tensor * settings.pipeline == 1 else CONTEXT_SHARED
    before = ranges.at_least_zero(ranges.less(total.size, context))
    weights = _weights(geometry, settings)
    rest = ranges.less(ranges.product(before, share), weights.size)
    each = pools.state_bytes(geometry, settings)
    slots = pools.state_slots(geometry, settings, rest.likely)
    state = ranges.exact((slots + 1) * each if slots else 0.0)
    return Static(
        before=before, context=context, share=share, weights=weights, state=state, slots=slots,
        pool=_pool(rest, settings, state),
    )  # fmt: skip


def _pool(rest: Range, settings: Settings, state: Range) -> Range:
    """What the KV cache gets; where state takes a share of the rest, its uncertainty is divided with it."""
    if not state.likely or settings.state_slots or not settings.prefix_caching:
        return ranges.less(rest, state)
    kept = max(rest.likely - state.likely, 0.0) / rest.likely if rest.likely > 0 else 0.0
    return Range(
        low=rest.low * kept, likely=rest.likely - state.likely, high=max(rest.high * kept, rest.likely - state.likely)
    )


def _weights(geometry: Geometry, settings: Settings) -> Term:
    """Of the fullest pipeline stage. SGLang's layers are vLLM's, and so is what their weights take when loaded."""
    degrees = Degrees(
        tensor_parallel=settings.tensor,
        pipeline_parallel=settings.pipeline,
        expert_parallel=settings.expert_parallel,
        speculative_tokens=settings.draft_tokens,
    )
    stages = (
        stage_weights(geometry, degrees, stage, "")
        for stage in range(min(settings.pipeline, len(geometry.layers) or 1))
    )
    return max(stages, key=lambda term: term.size.likely)


def _requested(static: Static) -> Term:
    how = f"{ranges.gib(static.before)} free before the weights x {static.share.likely:.3f}"
    return Term(id="requested", size=ranges.product(static.before, static.share), basis="computed", how=how)


def _terms(static: Static, settings: Settings) -> tuple[Term, ...]:
    found = [static.weights]
    if static.state.likely:
        each = static.state.likely / (static.slots + 1) / MIB
        how = f"{static.slots} slots and one for padding x {each:.2f} MiB"
        basis: Basis = "given" if settings.state_slots else "computed"
        found.append(Term(id="state", size=static.state, basis=basis, how=how))
    return tuple(found)


def _outside(static: Static, settings: Settings, cache: CacheFit | None) -> tuple[Term, ...]:
    """What is known to live beside the static share, and what is left of it for activations."""
    left = Range(low=1 - static.share.high, likely=1 - static.share.likely, high=1 - static.share.low)
    free = ranges.product(static.before, left)
    found = [Term(id="non_torch", size=static.context, basis="calibrated", how="driver and communicators")]
    if cache is not None and settings.context:
        running = pools.running_limit(settings, int(cache.printed_tokens.likely), static.slots)
        size = float(running * (settings.context + _EXTRA_CONTEXT) * 4)
        how = f"{running} request slots x {settings.context + _EXTRA_CONTEXT} positions x 4 bytes"
        found.append(Term(id="request_slots", size=ranges.exact(size), basis="computed", how=how))
    if settings.graph_batch:
        reserve = settings.graph_batch * 2 * MIB
        size_graphs = Range(low=reserve * 0.25, likely=float(reserve), high=max(reserve * 4.0, 4.5 * GIB))
        how = f"the engine counts 2 MiB for each of {settings.graph_batch} requests"
        found.append(Term(id="cuda_graphs", size=size_graphs, basis="assumed", how=how))
    rest = ranges.less(free, ranges.total(term.size for term in found if term.id != "non_torch"))
    found.append(Term(id="free_outside", size=ranges.at_least_zero(rest), basis="computed", how="for activations"))
    return tuple(found)


def _cache(one: pools.Cells, static: Static, settings: Settings) -> CacheFit:
    each = one.per_token(settings.window_ratio)
    tokens = [
        pools.pool(one, size, settings).tokens for size in (static.pool.low, static.pool.likely, static.pool.high)
    ]
    blocks = Range(low=tokens[0] // settings.page, likely=tokens[1] // settings.page, high=tokens[2] // settings.page)
    count = Range(low=tokens[0], likely=tokens[1], high=tokens[2])
    length = max(settings.context, 1)
    return CacheFit(
        bytes_per_block=round(each * settings.page),
        block_tokens=settings.page,
        groups=2 if one.sliding and one.full else 1,
        bytes_per_token=each,
        blocks=blocks,
        printed_tokens=count,
        blocks_per_request=ceil(length / settings.page),
        max_model_len=settings.context,
        concurrency=ranges.times(count, 1 / length),
        longest_request=Range(
            low=min(count.low, length), likely=min(count.likely, length), high=min(count.high, length)
        ),
        most_at_once=pools.running_limit(settings, tokens[1], static.slots),
    )


def _starts(geometry: Geometry, settings: Settings, static: Static | None) -> Starts:
    if settings.pipeline > max(len(geometry.layers), 1):
        return "no"
    if static is None:
        return "unknown"
    if static.pool.high <= 0:
        return "no"
    if not nocache.keeps_cache(geometry):
        return "unknown"
    return "yes" if static.pool.low > 0 else "perhaps"


def _shown(settings: Settings, deployment: Deployment, static: Static | None) -> tuple[Setting, ...]:
    """The share is of a card: without one its default is not known."""
    share = settings.fraction if static is None else static.share.likely
    used = {
        "mem_fraction_static": f"{share:.3f}".rstrip("0") if share else "",
        "max_model_len": str(settings.context or ""),
        "kv_cache_dtype": str(Flags(deployment).value("kv_cache_dtype") or "auto"),
        "tensor_parallel_size": str(settings.tensor),
        "pipeline_parallel_size": str(settings.pipeline) if settings.pipeline > 1 else "",
        "chunked_prefill_size": str(settings.chunk) if static else "",
        "max_cudagraph_capture_size": str(settings.graph_batch) if static else "",
        "max_num_seqs": str(settings.running or ""),
    }
    return shown(deployment, used)


def _era(settings: Settings) -> str:
    names = (
        (flags.PHASES, "sglang-phases"),
        (flags.PIECEWISE, "sglang-piecewise"),
        (flags.BATCHES, "sglang-batches"),
        (flags.RESERVE, "sglang-classes"),
    )
    return next((name for since, name in names if settings.version >= since), "sglang-shares")


def _notes(geometry: Geometry, settings: Settings) -> tuple[str, ...]:
    found = []
    if settings.fraction is None and geometry.multimodal:
        found.append("--mem-fraction-static is lowered for models that see, by the size of their encoder")
    windows = any(layer is not None and layer.kind in ("sliding", "chunked") for layer in geometry.layers)
    if windows and not pools.splits(geometry, settings):
        found.append("this release keeps every token in layers with a window for this architecture")
    return tuple(found)
