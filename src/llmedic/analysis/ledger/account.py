"""Draws up the account: from a deployment and what its log printed to everything that a ledger shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from llmedic.analysis.ledger import (
    asprinted,
    elsewhere,
    explain,
    llamacpp,
    loads,
    logged,
    sglang,
    startup,
    subject,
    tgi,
)
from llmedic.analysis.ledger.flagview import Flags
from llmedic.analysis.ledger.logged import Log
from llmedic.analysis.ledger.ranges import exact
from llmedic.analysis.ledger.sglang.balance import CONTEXT_ALONE
from llmedic.analysis.ledger.vllm import balance, cache, problems, settings, solve
from llmedic.analysis.ledger.vllm.candidate import Candidate, Load
from llmedic.analysis.ledger.vllm.terms import Card
from llmedic.analysis.ledger.vllm.variants import Variants
from llmedic.errors import UsageError
from llmedic.model.deployment import Deployment
from llmedic.model.evidence import Gap, LogEvent
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import ContextCost, Ledger, LedgerReport, Planned, Printed, Range, Solution, Term

OTHERS = {"sglang": sglang.ledger, "llama.cpp": llamacpp.ledger, "ollama": llamacpp.ledger, "tgi": tgi.ledger}
COUNTED_BLOCKS = 100_000
"""So many that a block of padding does not matter."""
QUICK_MOST_BLOCKS = 256
"""The rule of thumb of a published incident review: min(256, ceil(1.2 x tokens / 32) + 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked beside the ledger itself.

    available_bytes  the size of the KV cache on one device, where it is known; available_slack_bytes: how far the
                     truth may be from it to either side, because it was printed with few digits
    log              the name of the start-up log, "" without one
    """

    available_bytes: int | None = None
    available_slack_bytes: float = 0.0
    context_tokens: int | None = None
    concurrency: int | None = None
    plan_context: int | None = None
    solve: Sequence[str] = ()
    log: str = ""

    @property
    def load(self) -> Load | None:
        """The load that has to fit; one request where only its length is known."""
        return (
            None
            if self.context_tokens is None
            else Load(concurrency=self.concurrency or 1, context_tokens=self.context_tokens)
        )

    def load_of(self, max_model_len: int) -> Load | None:
        """The load that has to fit; requests whose length nobody said are as long as the server takes them."""
        if self.load is None and self.concurrency:
            return Load(concurrency=self.concurrency, context_tokens=max_model_len)
        return self.load

    @property
    def planned(self) -> Load | None:
        """The load after the planned change."""
        load = self.load
        return None if load is None or self.plan_context is None else replace(load, context_tokens=self.plan_context)


def of(
    deployment: Deployment,
    events: Sequence[LogEvent] = (),
    wanted: Wanted | None = None,
    before: Deployment | None = None,
) -> LedgerReport:
    """The ledger of a deployment.

    before: the deployment that printed the log, where a changed one is asked about

    Raises:
        InputError: the model's configuration cannot be one.
        UsageError: a setting cannot be one, or something was asked that this engine's ledger does not answer.
    """
    wanted = wanted or Wanted()
    log = logged.read(events, deployment.version, wanted.log, before)
    deployment = logged.completed(deployment, log)
    card = subject.card(deployment.hardware, log.found.printed)
    shape = subject.shape(deployment)
    if shape is not None:
        log = logged.held_against(log, deployment, card.total_bytes if card else None, _weights(deployment, shape, log))
    if shape is None:
        report = LedgerReport(ledger=_printed_only(deployment, log, card), printed=log.found.printed)
    elif deployment.engine in OTHERS:
        report = _other(deployment, shape, card, log, wanted)
    else:
        report = _vllm(deployment, shape, card, log, wanted)
    return replace(
        report,
        ledger=logged.told(report.ledger, log, deployment),
        model_name=deployment.model.name,
        accelerator=deployment.hardware.accelerator,
    )


def _weights(deployment: Deployment, shape: Geometry, log: Log) -> Range | None:
    """Bytes of the weights on one device of the server that printed the log; None without one."""
    if not log.found.printed:
        return None
    printing = log.before or deployment
    if deployment.engine in OTHERS:
        terms: Sequence[Term] = OTHERS[deployment.engine](shape, printing, None).terms
    else:
        terms = subject.server(shape, settings.resolve(printing, shape), None, printing).memory().terms
    return next((term.size for term in terms if term.id == "weights"), None)


def quick_blocks(tokens: int) -> int:
    """Blocks of one request by the rule of thumb."""
    return min(QUICK_MOST_BLOCKS, ceil(tokens * 1.2 / 32) + 4)


def _vllm(deployment: Deployment, shape: Geometry, card: Card | None, log: Log, wanted: Wanted) -> LedgerReport:
    printing = deployment if log.before is None else logged.completed(log.before, log)
    resolved = settings.resolve(printing, shape)
    nothing = balance.Known(terms={})
    computed = subject.server(shape, resolved, card, printing)
    beside = startup.beside(log.found.printed, balance.ledger(computed, printing, card, nothing, None))
    known = _known(log, computed, wanted)
    server = subject.server(shape, resolved, card, printing, known.pool)
    if log.before is not None:
        resolved = settings.resolve(deployment, shape)
        server = server.resettled(resolved)
        known = balance.Known(terms={}, pool=server.known_pool, pool_basis="computed", free_bytes=known.free_bytes)
    load = wanted.load_of(server.settings.max_model_len)
    whole = balance.ledger(server, deployment, card, known, load)
    if known.pool is None and any(one.unit in ("blocks", "tokens") for one in log.found.printed):
        whole = replace(whole, notes=(*whole.notes, "the log counts more blocks than the card can hold: left out"))
    if log.ended is not None:
        variants = Variants(candidate=server, deployment=deployment, free_bytes=known.free_bytes, load=load)
        whole = replace(whole, problems=explain.why(log.ended, variants, whole))
    if wanted.planned is not None and whole.pool is not None and whole.starts != "no":
        coming = Variants(candidate=server, deployment=deployment, free_bytes=known.free_bytes, load=wanted.planned)
        whole = replace(whole, problems=(*whole.problems, *problems.planned(coming)))
    return LedgerReport(
        ledger=whole,
        settings=balance.shown(server.settings, deployment),
        printed=beside,
        solutions=_solutions(server, deployment, wanted),
        planned=_planned(server, whole, wanted),
    )


def _known(log: Log, computed: Candidate, wanted: Wanted) -> balance.Known:
    """What need not be computed: printed sizes, the pool that was given, and what a failure tells."""
    inside = any(term.id == "cuda_graphs" for term in computed.memory().terms)
    sizes = startup.terms(log.found.printed, graphs_inside=inside)
    free = log.found.size("free")
    if log.failure is not None and log.failure.others and log.failure.total is not None:
        free = log.failure.total - log.failure.others
    if wanted.available_bytes is not None:
        size, slack = wanted.available_bytes, wanted.available_slack_bytes
        pool = Range(low=size - slack, likely=size, high=size + slack)
        return balance.Known(terms=sizes, pool=pool, pool_basis="given", free_bytes=free)
    failed = explain.pool(log.ended, computed, log.found) if log.ended is not None else None
    pool_size = failed or sizes.get("kv_cache") or _counted(log.found.printed, computed)
    return balance.Known(terms=sizes, pool=pool_size, free_bytes=free)


def _counted(found: Sequence[Printed], server: Candidate) -> Range | None:
    """The pool by the blocks or tokens that releases before 0.9.2 print instead of its size; None if no card has it."""
    counts = {one.id: one.value for one in found}
    plan = server.plan()
    if not plan.counts or plan.refusal:
        return None
    blocks = counts.get("blocks", 0.0)
    if not blocks and counts.get("kv_tokens"):
        many = exact(COUNTED_BLOCKS * plan.bytes_per_block)
        each = cache.fit(plan, many, server.settings.max_model_len).printed_tokens.likely / COUNTED_BLOCKS
        blocks = counts["kv_tokens"] / each if each else 0.0
    size, card = blocks * plan.bytes_per_block, server.card.total_bytes.high
    return exact(size) if blocks and (size <= card or card <= 0) else None


def _solutions(server: Candidate, deployment: Deployment, wanted: Wanted) -> tuple[Solution, ...]:
    if not wanted.solve:
        return ()
    longest = server.settings.max_model_len
    load = wanted.load_of(longest) or Load(concurrency=1, context_tokens=longest)
    return solve.solve(Variants(candidate=server, deployment=deployment, load=load), load, wanted.solve)


def _planned(server: Candidate, whole: Ledger, wanted: Wanted) -> Planned | None:
    if wanted.context_tokens is None or wanted.plan_context is None or whole.pool is None:
        return None
    return Planned(
        now=_cost(server, whole.pool.size, wanted.context_tokens),
        then=_cost(server, whole.pool.size, wanted.plan_context),
        concurrency=wanted.concurrency,
    )


def _cost(server: Candidate, pool: Range, tokens: int) -> ContextCost:
    plan = server.plan()
    each = plan.blocks_per_request(tokens)
    usable = [plan.usable(plan.blocks(size)) for size in (pool.low, pool.likely, pool.high)]
    replicas = server.settings.data_parallel
    counts = [blocks // each * replicas if each else 0 for blocks in usable]
    return ContextCost(
        tokens=tokens,
        blocks=each,
        quick_blocks=quick_blocks(tokens),
        requests=Range(low=counts[0], likely=counts[1], high=counts[2]),
        pool_blocks=usable[1] * replicas,
    )


def _other(deployment: Deployment, shape: Geometry, card: Card | None, log: Log, wanted: Wanted) -> LedgerReport:
    if wanted.solve or wanted.plan_context or wanted.available_bytes:
        raise UsageError(
            f"--solve, --plan-context and --available are not there for {deployment.engine}",
            hint="they are for --engine vllm",
        )
    total = None if card is None else Term(id="total", size=card.total_bytes, basis="given")

    def draw(one: Deployment) -> Ledger:
        own = OTHERS[deployment.engine](shape, one, total)
        return replace(own, notes=(*deployment.model.notes, *own.notes))

    whole = draw(deployment)
    beside = startup.beside(log.found.printed, whole)
    if deployment.engine in ("sglang", "tgi") and log.before is None and log.found.printed:
        each = tgi.token_bytes(shape, tgi.resolve(shape, deployment)) if deployment.engine == "tgi" else 0.0
        whole = asprinted.ledger(whole, log.found, deployment, each)
    if log.ended is not None:
        total = total or _assumed_total(deployment, log)
        whole = elsewhere.why(log.ended, whole, deployment, draw)
    answered = loads.answered(whole, _load(whole, wanted))
    return LedgerReport(ledger=answered, settings=answered.settings, printed=beside)


def _assumed_total(deployment: Deployment, log: Log) -> Term | None:
    """A card of which SGLang printed what was free before the weights: enough to try changes on."""
    free = log.found.size("free")
    if deployment.engine != "sglang" or free is None:
        return None
    return Term(id="total", size=exact(free + CONTEXT_ALONE.likely), basis="assumed")


def _load(whole: Ledger, wanted: Wanted) -> Load | None:
    """What has to fit: requests as long as are served where only their number is known."""
    if wanted.load is not None or wanted.concurrency is None or whole.cache is None:
        return wanted.load
    return Load(concurrency=wanted.concurrency, context_tokens=max(whole.cache.max_model_len, 1))


def _devices(deployment: Deployment) -> int:
    """Devices that hold one copy of the model: llama.cpp takes every card that it sees."""
    if deployment.engine in ("llama.cpp", "ollama"):
        return max(1, deployment.hardware.count or 1)
    given = Flags(deployment)
    names = ("tensor_parallel_size", "pipeline_parallel_size")
    return prod(max(1, given.count(name, default=1)) for name in names)


def _printed_only(deployment: Deployment, log: Log, card: Card | None) -> Ledger:
    """What the log says by itself, where the model's shape is not known."""
    found = log.found.printed
    sizes = {one.id: startup.rounded(one.value) for one in found if one.unit == "bytes"}
    terms = tuple(
        Term(id=name, size=sizes[name], basis="printed")
        for name in ("consumed", "weights", "activation", "non_torch", "cuda_graphs_estimate")
        if name in sizes and not (name == "weights" and "consumed" in sizes)
    )
    pool = Term(id="kv_cache", size=sizes["kv_cache"], basis="printed") if "kv_cache" in sizes else None
    why = (
        f"{deployment.model.name} is not in the catalogue" if deployment.model.name else "nobody said which model it is"
    )
    how = "llmedic ledger MODEL_DIRECTORY" + (f" --log {log.name}" if log.name else "")
    gap = Gap(what="the model's shape", why=why, how=how)
    return Ledger(
        engine=deployment.engine,
        version=deployment.version,
        era="",
        formula="",
        devices=_devices(deployment),
        total=None if card is None else Term(id="total", size=card.total_bytes, basis="printed"),
        requested=Term(id="requested", size=sizes["requested"], basis="printed") if "requested" in sizes else None,
        terms=terms,
        pool=pool,
        starts="no" if pool is not None and pool.size.high <= 0 else "unknown",
        problems=logged.without_ledger(log, deployment),
        gaps=(gap,),
    )
