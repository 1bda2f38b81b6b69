"""Whether a load fits an engine whose pool counts tokens: SGLang, TGI, llama.cpp, Ollama."""

from __future__ import annotations

from dataclasses import replace
from math import floor

from llmedic.analysis.ledger.vllm.candidate import Load
from llmedic.model.ledger import CacheFit, Ledger, Problem


def answered(ledger: Ledger, load: Load | None) -> Ledger:
    """The ledger with what the load will meet on this server, or the word that it fits."""
    if load is None or ledger.cache is None or ledger.starts == "no":
        return ledger
    return replace(ledger, problems=(*ledger.problems, *_met(ledger.cache, load)))


def _met(cache: CacheFit, load: Load) -> tuple[Problem, ...]:
    if load.context_tokens > cache.max_model_len > 0:
        text = f"requests of {load.context_tokens:,} tokens are longer than the {cache.max_model_len:,} that are served"
        return (Problem(severity="critical", cause="prompt-exceeds-context-limit", text=f"{text}: they are refused"),)
    together = min(load.concurrency, cache.most_at_once or load.concurrency)
    found = [_pool(cache, together, load.context_tokens)]
    if together < load.concurrency:
        waiting = load.concurrency - together
        text = f"{waiting:,} of {load.concurrency:,} requests wait: the server runs {together:,} at once"
        found.append(Problem(severity="warning", text=text))
    return tuple(found)


def _pool(cache: CacheFit, together: int, context_tokens: int) -> Problem:
    """A request takes whole blocks."""
    each = -(-context_tokens // cache.block_tokens) * cache.block_tokens
    needed = together * each
    low, likely, high = (floor(size) for size in _tokens(cache))
    text = f"{together:,} requests of {context_tokens:,} tokens need {needed:,} tokens of KV cache"
    if needed <= low:
        return Problem(severity="info", text=f"{text}, the pool has at least {low:,}: they fit at once")
    cause = "kv-pool-exhausted-preemption"
    if needed <= high:
        text = f"{text}, the pool has {low:,} to {high:,}: it is not certain that they fit at once"
        return Problem(severity="warning", cause=cause, text=text)
    return Problem(severity="warning", cause=cause, text=f"{text}, the pool has {likely:,}: they do not fit at once")


def _tokens(cache: CacheFit) -> tuple[float, float, float]:
    size = cache.printed_tokens
    return size.low, size.likely, size.high
