"""The whole ledger of a vLLM server: terms, pool, what it holds, what stands in the way of a start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from llmedic.analysis.ledger import nocache
from llmedic.analysis.ledger.ranges import gib
from llmedic.analysis.ledger.vllm import cache, problems
from llmedic.analysis.ledger.vllm.candidate import Candidate, Load
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.analysis.ledger.vllm.terms import Card, Memory
from llmedic.analysis.ledger.vllm.variants import Variants
from llmedic.knowledge import flags
from llmedic.model.deployment import Deployment
from llmedic.model.evidence import Gap
from llmedic.model.ledger import Basis, Ledger, Problem, Range, Setting, Term

SHOWN = {
    "utilization": "gpu_memory_utilization",
    "cache_bytes": "kv_cache_memory_bytes",
    "blocks_override": "num_gpu_blocks_override",
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "tensor_parallel": "tensor_parallel_size",
    "pipeline_parallel": "pipeline_parallel_size",
    "block_tokens": "block_size",
}
"""Settings of the arithmetic that a reader wants to see -> the flag they come from."""
ALWAYS = ("utilization", "max_model_len", "max_num_seqs", "max_num_batched_tokens")
"""Shown even where nobody set them: their defaults depend on the release, the card and the model."""
GAP_CARD = Gap(
    what="the card's memory",
    why="nobody said which card it is",
    how="llmedic ledger MODEL --gpu NAME",
)


GAP_LAYOUT = Gap(
    what="what the model's layers cache",
    why="this kind of model is not known, so blocks, tokens and requests would be guesses",
    how="llmedic ledger MODEL --log LOG, with the log of a start: the engine prints them",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What need not be computed, because it was printed or given: bytes of one device.

    terms  by the term's id; pool: the KV cache; free: what was free on the card before the start
    """

    terms: Mapping[str, Range]
    pool: Range | None = None
    pool_basis: Basis = "printed"
    free_bytes: float | None = None


def ledger(server: Candidate, deployment: Deployment, card: Card | None, known: Known, load: Load | None) -> Ledger:
    """The ledger of a server; without a card only what does not depend on it."""
    memory = server.memory()
    pool = _pool(memory, card, known)
    found: tuple[Problem, ...] = ()
    judged = server.geometry.familiar and nocache.keeps_cache(server.geometry)
    if pool is not None and judged:
        found = problems.of(Variants(candidate=server, deployment=deployment, free_bytes=known.free_bytes, load=load))
    fit = None
    if pool is not None and judged and not server.plan().refusal and server.plan().counts:
        fit = cache.fit(server.plan(), pool.size, server.settings.max_model_len)
    return Ledger(
        engine="vllm",
        version=deployment.version,
        era=_era(memory, server.settings),
        formula=_formula(memory, server.settings),
        devices=server.settings.tensor_parallel * server.settings.pipeline_parallel,
        total=_total(card, known),
        requested=_known(memory.requested, known) if card else None,
        terms=tuple(_known(term, known) for term in memory.terms),
        outside=tuple(_known(term, known) for term in memory.outside),
        pool=pool if nocache.keeps_cache(server.geometry) else None,
        starts=problems.verdict(server, found) if pool is not None and judged else "unknown",
        cache=fit,
        geometry=server.geometry,
        problems=found,
        notes=tuple(_notes(server, deployment, pool)),
        gaps=tuple(_gaps(server, card)),
    )


def _notes(server: Candidate, deployment: Deployment, pool: Term | None) -> Iterator[str]:
    yield from deployment.model.notes
    yield from server.settings.notes
    yield from _length(server, pool)
    yield from server.geometry.unsure
    yield from nocache.notes(server.geometry)


def _gaps(server: Candidate, card: Card | None) -> Iterator[Gap]:
    if card is None:
        yield GAP_CARD
    if not server.geometry.familiar:
        yield GAP_LAYOUT


def shown(settings: Settings, deployment: Deployment) -> tuple[Setting, ...]:
    """The settings of the arithmetic, with who set them."""
    origins = {flag.name: flag.origin for flag in deployment.flags if flag.value is not None}
    found = []
    for field, name in SHOWN.items():
        origin = origins.get(name)
        if origin is None and field not in ALWAYS:
            continue
        typed = flags.typed(name, "vllm", deployment.version) or name
        said = "default" if origin is None else "log" if origin == "log" else "given"
        found.append(Setting(flag=typed, value=f"{getattr(settings, field):,}".replace(",", ""), origin=said))
    return tuple(found)


def _pool(memory: Memory, card: Card | None, known: Known) -> Term | None:
    if known.pool is not None:
        return Term(id="kv_cache", size=known.pool, basis=known.pool_basis, how="")
    if memory.pool.basis == "given":
        return memory.pool
    how = " - ".join(gib(term.size) for term in (memory.requested, *memory.terms))
    return replace(memory.pool, how=how) if card is not None else None


def _known(term: Term, known: Known) -> Term:
    """The printed size where there is one; the computed one is shown beside it."""
    size = known.terms.get(term.id)
    return term if size is None else replace(term, size=size, basis="printed", how="")


def _total(card: Card | None, known: Known) -> Term | None:
    if card is None:
        return None
    printed = "total" in known.terms
    return Term(id="total", size=card.total_bytes, basis="printed" if printed else "given")


def _length(server: Candidate, pool: Term | None) -> Iterator[str]:
    """The lengths between which one that fits itself to the memory comes to lie."""
    if server.settings.fits_length and pool is not None:
        low, high = (server.longest(size) for size in (pool.size.low, pool.size.high))
        yield f"max_model_len fits itself to the memory: {low:,} to {high:,} tokens"


def _era(memory: Memory, settings: Settings) -> str:
    if settings.cache_bytes:
        return "vllm-cache-given"
    if settings.first_engine:
        return "vllm-first-engine"
    inside = any(term.id.startswith("cuda_graphs") for term in memory.terms)
    return "vllm-graphs-inside" if inside else "vllm-graphs-outside"


def _formula(memory: Memory, settings: Settings) -> str:
    if settings.cache_bytes:
        return "KV cache = --kv-cache-memory-bytes"
    names = " - ".join(WORDS.get(term.id, term.id) for term in memory.terms)
    return f"KV cache = total x {settings.utilization:g} - {names}"


WORDS = {
    "weights": "weights",
    "lora": "LoRA slots",
    "activation": "activation peak",
    "non_torch": "non-torch",
    "cuda_graphs": "CUDA graph estimate",
    "media_decoder": "media decoder",
}
"""Names of the terms in a formula."""
