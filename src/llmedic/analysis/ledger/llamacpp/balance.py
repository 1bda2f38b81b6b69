"""The ledger of llama.cpp: it is asked for layers and a context, and either they fit or the start fails.

Unlike vLLM and SGLang it does not fill the card: weights, cache and compute buffer follow from the flags, and what is
left stays free. Since the release with --fit it lowers the context and the layers that were not given itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from llmedic.analysis.ledger import nocache
from llmedic.analysis.ledger.flagview import assumed_release, shown
from llmedic.analysis.ledger.llamacpp import buffers, cache, placement
from llmedic.analysis.ledger.llamacpp import settings as flags
from llmedic.analysis.ledger.llamacpp.problems import problems
from llmedic.analysis.ledger.llamacpp.settings import Settings
from llmedic.model.deployment import Deployment
from llmedic.model.evidence import Gap
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import CacheFit, Ledger, Range, Setting, Starts, Term

MIB = 2**20
GIB = 2**30

DRIVER = Range(low=400 * MIB, likely=456 * MIB, high=800 * MIB)
"""What a card loses beside the buffers: context of the driver, cuBLAS. llama.cpp prints it as "unaccounted" at exit:
451 to 456 MiB on RTX 4090, 753 MiB on RTX PRO 6000 (pull request 15860 of ggml-org/llama.cpp and later logs)."""


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes that one card has to give, part by part."""

    card: int
    weights: float
    keys: float
    values: float
    state: float
    compute: Range

    @property
    def cache(self) -> float:
        """Keys and values."""
        return self.keys + self.values

    @property
    def size(self) -> Range:
        """Everything, the driver's share included."""
        fixed = self.weights + self.cache + self.state
        return Range(
            low=fixed + self.compute.low + DRIVER.low,
            likely=fixed + self.compute.likely + DRIVER.likely,
            high=fixed + self.compute.high + DRIVER.high,
        )


def ledger(geometry: Geometry, deployment: Deployment, total: Term | None) -> Ledger:
    """Where the memory of the fullest card goes. Raises InputError for a flag that llama.cpp would refuse.

    total: memory of one card; None when nobody said which card it is.
    """
    settings = flags.resolve(geometry, deployment, total.size.likely / GIB if total else None)
    need = tightest(geometry, settings)
    where = placement.place(geometry, settings)
    starts = verdict(need, total)
    keeps = nocache.keeps_cache(geometry)
    return Ledger(
        engine=deployment.engine or "llama.cpp",
        version=deployment.version,
        era=_era(settings),
        formula="weights of the offloaded layers + cells x row bytes + compute buffer + driver <= card",
        devices=len(settings.split),
        total=total,
        requested=total,
        terms=_terms(need, geometry, settings),
        pool=_exact("kv_cache", need.cache, _cache_arithmetic(geometry, settings)) if keeps else None,
        starts=starts if keeps or starts == "no" else "unknown",
        outside=_outside(geometry, settings, where),
        cache=_fit(geometry, settings) if keeps else None,
        geometry=geometry,
        problems=problems(geometry, settings, total, starts, need=lambda one: tightest(geometry, one).size),
        settings=_shown(settings, deployment),
        notes=(*_assumed(deployment), *settings.notes, *geometry.unsure, *nocache.notes(geometry), *_notes(settings)),
        gaps=_gaps(total),
    )


def tightest(geometry: Geometry, settings: Settings) -> Need:
    """What the fullest card has to give."""
    where = placement.place(geometry, settings)
    caches = cache.layer_caches(geometry, settings)
    homes = where.layers if settings.cache_on_card else (placement.HOST,) * len(where.layers)
    found = [_need(geometry, settings, where, caches, homes, card) for card in range(len(settings.split))]
    return max(found, key=lambda one: one.size.likely)


def verdict(need: Need, total: Term | None) -> Starts:
    """Whether the fullest card has enough memory."""
    if total is None:
        return "unknown"
    if need.size.low > total.size.high:
        return "no"
    return "yes" if need.size.high <= total.size.low else "perhaps"


def _need(
    geometry: Geometry,
    settings: Settings,
    where: placement.Placement,
    caches: tuple[cache.LayerCache, ...],
    homes: tuple[int, ...],
    card: int,
) -> Need:
    mine = [one for one, home in zip(caches, homes, strict=True) if home == card]
    return Need(
        card=card,
        weights=where.cards[card],
        keys=sum(one.keys for one in mine),
        values=sum(one.values for one in mine),
        state=sum(one.state for one in mine),
        compute=buffers.compute_buffer(geometry, settings, where, card=card),
    )


def _terms(need: Need, geometry: Geometry, settings: Settings) -> tuple[Term, ...]:
    on_card = f"{min(settings.gpu_layers, len(geometry.layers) + 1)} of {len(geometry.layers) + 1} layers on the card"
    compute = f"one batch of {settings.ubatch} tokens over {settings.cells_tokens} cells"
    terms = [_exact("weights", need.weights, on_card)]
    if need.state:
        terms.append(_exact("state", need.state, f"fp32 state of {settings.slots} slots"))
    terms.append(Term(id="compute_buffers", size=need.compute, basis="calibrated", how=compute))
    terms.append(Term(id="driver", size=DRIVER, basis="calibrated", how="driver context and libraries"))
    return tuple(terms)


def _outside(geometry: Geometry, settings: Settings, where: placement.Placement) -> tuple[Term, ...]:
    """Host memory."""
    caches = cache.layer_caches(geometry, settings)
    homes = where.layers if settings.cache_on_card else (placement.HOST,) * len(where.layers)
    kept = sum(
        one.keys + one.values + one.state for one, home in zip(caches, homes, strict=True) if home == placement.HOST
    )
    found = [_exact("host_weights", where.host, "token embedding and layers that are not offloaded")]
    if kept:
        found.append(_exact("host_kv_cache", kept, "cache of the layers that are not offloaded"))
    pinned = buffers.host_buffer(geometry, settings)
    size = Range(low=pinned * 0.7, likely=pinned, high=pinned * 1.3)
    found.append(Term(id="host_compute_buffers", size=size, basis="calibrated", how="embedded tokens and the mask"))
    return tuple(found)


def _fit(geometry: Geometry, settings: Settings) -> CacheFit:
    each = cache.bytes_per_token(geometry, settings)
    cells = settings.cells_tokens * settings.streams
    atonce = settings.slots if not cache.shares_cells(settings) else max(1, cells // settings.slot_tokens)
    kinds = {(one.cells, one.state > 0) for one in cache.layer_caches(geometry, settings) if one.cells or one.state}
    return CacheFit(
        bytes_per_block=round(each),
        block_tokens=1,
        groups=len(kinds),
        bytes_per_token=each,
        blocks=_whole(cells),
        printed_tokens=_whole(cells),
        blocks_per_request=settings.slot_tokens,
        max_model_len=settings.slot_tokens,
        concurrency=_whole(atonce),
        longest_request=_whole(settings.slot_tokens),
        most_at_once=settings.slots,
    )


def _cache_arithmetic(geometry: Geometry, settings: Settings) -> str:
    cells: dict[int, int] = {}
    for one in cache.layer_caches(geometry, settings):
        if one.cells:
            cells[one.cells] = cells.get(one.cells, 0) + 1
    parts = [f"{count} layers x {size} cells" for size, count in cells.items()]
    streams = f" x {settings.streams} slots" if settings.streams > 1 else ""
    return " + ".join(parts) + streams + f", K {settings.key_type}, V {settings.value_type}"


def _assumed(deployment: Deployment) -> tuple[str, ...]:
    """Ollama's releases say nothing of the llama.cpp inside: a current one is assumed."""
    return assumed_release(replace(deployment, version="") if deployment.engine == "ollama" else deployment)


def _shown(settings: Settings, deployment: Deployment) -> tuple[Setting, ...]:
    context = settings.slot_tokens if deployment.engine == "ollama" else settings.context_tokens
    used = {
        "ctx_size": str(context),
        "max_num_seqs": str(settings.slots),
        "n_gpu_layers": str(settings.gpu_layers),
        "cache_type_k": settings.key_type,
        "cache_type_v": settings.value_type,
        "flash_attn": {True: "on", False: "off", None: "auto"}[settings.flash],
        "batch_size": str(settings.batch),
        "ubatch_size": str(settings.ubatch),
    }
    return shown(deployment, used)


def _era(settings: Settings) -> str:
    if settings.build >= flags.FIT:
        return "llamacpp-fit"
    if settings.build >= flags.AUTO_SLOTS:
        return "llamacpp-unified"
    return "llamacpp-streams" if settings.build >= flags.STREAMS else "llamacpp-shared"


def _notes(settings: Settings) -> tuple[str, ...]:
    found = []
    if settings.split_mode == "row":
        found.append("a row split divides the weights over the cards; the cache is taken to lie on the first one")
    if settings.build < flags.WINDOWS:
        found.append("builds before b5554 keep the whole context in layers with a window, or a window and a full batch")
    if settings.flash is None:
        found.append("flash attention was not said: the compute buffer's upper end is without it")
    return tuple(found)


def _gaps(total: Term | None) -> tuple[Gap, ...]:
    if total is not None:
        return ()
    return (Gap(what="memory of the card", why="no card was named", how="--gpu NAME, or nvidia-smi"),)


def _exact(key: str, size: float, how: str) -> Term:
    return Term(id=key, size=_whole(size), basis="computed", how=how)


def _whole(number: float) -> Range:
    return Range(low=number, likely=number, high=number)
