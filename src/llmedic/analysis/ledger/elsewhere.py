"""Why a start of SGLang, llama.cpp, Ollama or TGI failed, and a change that would have started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil

from llmedic.analysis.ledger import tgi, trial
from llmedic.analysis.ledger.explain import MARGIN_BYTES
from llmedic.analysis.ledger.failure import Failure, reached, same
from llmedic.analysis.ledger.flagview import Flags
from llmedic.analysis.ledger.ranges import GIB, gib
from llmedic.analysis.ledger.vllm.variants import Values
from llmedic.knowledge import flags
from llmedic.model.deployment import Deployment
from llmedic.model.ledger import Ledger, Problem

Draw = Callable[[Deployment], Ledger]
"""The engine's own ledger of a deployment."""
LEAST_SHARE, MOST_SHARE = 0.5, 0.95
LEAST_CONTEXT = 1024
LEAST_PREFILL = 256


def why(failure: Failure, whole: Ledger, deployment: Deployment, draw: Draw) -> Ledger:
    """The ledger with the log's word on its start, the problem that ended it first."""
    trial = draw(deployment)
    agreeing = [one for one in (whole if whole.total else trial).problems if same(one.cause, failure.cause)]
    others = [one for one in whole.problems if one not in agreeing]
    others = [one for one in others if one.starts == "yes" or reached(one.cause, failure)]
    if agreeing:
        text = agreeing[0].text if failure.tried is None else f"{failure.text}; {agreeing[0].text}"
        change = agreeing[0].change
    else:
        text, change = f"{failure.text}; {_arithmetic(whole)}", ""
    as_printed = deployment.engine == "sglang" and any(term.basis == "printed" for term in whole.terms)
    if failure.stage == "cache" and as_printed and whole.pool is not None and whole.pool.size.high <= 0:
        text = f"{failure.text}: {whole.pool.how} = {whole.pool.size.likely / GIB:.2f} GiB"
    change = change if change and _starts(change, deployment, draw) else _change(failure, trial, deployment, draw)
    first = Problem(severity="critical", cause=failure.cause, text=text, change=change, starts="no")
    return replace(whole, problems=(first, *others), starts="no")


def _arithmetic(whole: Ledger) -> str:
    """The ledger's word: what is taken, and of what."""
    cache = (whole.pool,) if whole.pool is not None and whole.pool.size.low > 0 else ()
    taken = " + ".join(gib(term.size) for term in (*whole.terms, *cache))
    if whole.total is None:
        return f"by the ledger {taken} are needed"
    text = f"by the ledger {taken} are needed of the {gib(whole.total.size)} of the device"
    if whole.starts == "yes":
        text += ": it should have fit, so other processes or settings that the log does not tell took memory"
    return text


def _starts(change: str, deployment: Deployment, draw: Draw) -> bool:
    """Whether a change, as typed, starts by the ledger: flags and values in turns."""
    words = change.split()
    values: dict[str, str | float | bool | None] = {}
    for flag, value in zip(words[::2], words[1::2], strict=False):
        values[flags.neutral(deployment.engine, flag.lstrip("-").replace("-", "_"))] = value
    return bool(values) and trial.holds(values, deployment, _verdict(draw))


def _change(failure: Failure, whole: Ledger, deployment: Deployment, draw: Draw) -> str:
    options = {"sglang": _sglang, "tgi": _tgi}.get(deployment.engine, _llamacpp)
    return trial.first(options(failure, whole, deployment), deployment, _verdict(draw))


def _verdict(draw: Draw) -> trial.Verdict:
    return lambda deployment: "no" if tgi.refused(deployment) else draw(deployment).starts


def _sglang(failure: Failure, whole: Ledger, deployment: Deployment) -> Iterator[Values]:
    """A larger static share where the cache got nothing, else a smaller one, by what was lacking."""
    if whole.total is not None and whole.requested is not None:
        outside = sum(term.size.likely for term in whole.outside if term.id == "non_torch")
        before = max(whole.total.size.likely - outside, 1.0)
        share = Flags(deployment).number("mem_fraction_static") or whole.requested.size.likely / before
        step = max(ceil((failure.lacking + MARGIN_BYTES) / before * 100), 1)
        down = range(int(share * 100) - step, round(LEAST_SHARE * 100) - 1, -1)
        up = range(int(share * 100) + step, round(MOST_SHARE * 100) + 1)
        for percent in up if failure.stage in ("cache", "length") else down:
            yield {"mem_fraction_static": percent / 100}
    yield from _wider(whole, deployment)


def _tgi(failure: Failure, whole: Ledger, deployment: Deployment) -> Iterator[Values]:
    """A smaller prefill to warm up with, then more shards."""
    given = Flags(deployment)
    tokens = given.count("max_prefill_tokens") or given.count("max_input_tokens") or 4096
    while failure.stage != "load" and tokens // 2 >= LEAST_PREFILL:
        tokens //= 2
        longest = given.count("max_input_tokens")
        yield {"max_prefill_tokens": tokens} | ({"max_input_tokens": tokens} if longest > tokens else {})
    yield from _wider(whole, deployment)


def _llamacpp(failure: Failure, whole: Ledger, deployment: Deployment) -> Iterator[Values]:
    """A shorter context, then fewer layers on the card."""
    context = whole.cache.max_model_len if whole.cache else 0
    context = Flags(deployment).count("ctx_size") or context
    while failure.stage != "load" and context // 2 >= LEAST_CONTEXT:
        context //= 2
        yield {"ctx_size": context}
    layers = len(whole.geometry.layers) if whole.geometry else 0
    for count in range(layers, -1, -1):
        yield {"n_gpu_layers": count}


def _wider(whole: Ledger, deployment: Deployment) -> Iterator[Values]:
    """More ranks, as far as the model divides and the machine has cards."""
    given = Flags(deployment)
    stages = given.count("pipeline_parallel_size", default=1, low=1)
    if whole.geometry is not None:
        yield from trial.wider(whole.geometry, deployment, given.count("tensor_parallel_size", default=1), stages)
