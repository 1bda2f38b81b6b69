"""The ledger of SGLang or TGI with what the log printed in the place of what is computed."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from llmedic.analysis.ledger import startup
from llmedic.analysis.ledger.flagview import Flags
from llmedic.analysis.ledger.ranges import exact, gib, less, times
from llmedic.analysis.ledger.startup import Startup
from llmedic.model.deployment import Deployment
from llmedic.model.ledger import CacheFit, Ledger, Range, Term

OF_SHARE = ("weights", "state")
"""Terms that SGLang takes out of the static share."""


def ledger(whole: Ledger, found: Startup, deployment: Deployment, token_bytes: float = 0.0) -> Ledger:
    """The ledger with the printed weights and pool. token_bytes: of one token on one device, 0 where not known."""
    sizes = startup.terms(found.printed, graphs_inside=False)
    terms = tuple(
        replace(term, size=sizes[term.id], basis="printed", how="")
        if term.id in OF_SHARE and term.id in sizes
        else term
        for term in whole.terms
    )
    whole = replace(whole, terms=terms)
    tokens = next((one.value for one in found.printed if one.id == "kv_tokens"), 0.0)
    pool = sizes.get("kv_cache") or (exact(tokens * token_bytes) if tokens and token_bytes else None)
    if pool is None:
        return _share(whole, found, deployment)
    whole = replace(whole, pool=Term(id="kv_cache", size=pool, basis="printed"))
    return replace(whole, cache=_cache(whole, pool, tokens, deployment)) if tokens >= 1 and pool.low > 0 else whole


def _share(whole: Ledger, found: Startup, deployment: Deployment) -> Ledger:
    """SGLang's pool by what was free before the weights and what they took, which it prints before it sizes the pool.

    pool = free before the weights x mem-fraction-static - weights (profile_max_num_token, sglang model_runner.py)
    """
    free, share = found.size("free"), Flags(deployment).number("mem_fraction_static")
    if whole.engine != "sglang" or free is None or not share or found.size("weights") is None:
        return whole
    how = f"{gib(startup.rounded(free))} free before the weights x {share:g}"
    requested = Term(id="requested", size=times(startup.rounded(free), share), basis="computed", how=how)
    size = requested.size
    for term in whole.terms:
        size = less(size, term.size)
    how = " - ".join((f"{gib(startup.rounded(free))} x {share:g}", *(gib(term.size) for term in whole.terms)))
    return replace(whole, requested=requested, pool=Term(id="kv_cache", size=size, basis="computed", how=how))


def _cache(whole: Ledger, pool: Range, tokens: float, deployment: Deployment) -> CacheFit:
    """What the printed pool holds, by the printed number of tokens."""
    old = whole.cache
    block = old.block_tokens if old is not None else 1
    given = Flags(deployment)
    longest = given.count("max_model_len") or given.count("max_total_tokens_per_request") or int(tokens)
    length = old.max_model_len if old is not None and whole.engine != "tgi" else longest
    return CacheFit(
        bytes_per_block=round(pool.likely / tokens * block),
        block_tokens=block,
        groups=old.groups if old is not None else 1,
        bytes_per_token=pool.likely / tokens,
        blocks=exact(tokens // block),
        printed_tokens=exact(tokens),
        blocks_per_request=ceil(length / block),
        max_model_len=length,
        concurrency=exact(tokens / length),
        longest_request=exact(min(tokens, length)),
    )
