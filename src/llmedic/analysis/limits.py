"""Which limit binds, from stock metrics, said with numbers.

Requests wait because something is full. The candidates are asked in the order in which the scheduler meets them: no
progress at all, KV pool, sequence cap, token budget and prefill compute, decode batch, front end, client.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llmedic.analysis import bounds
from llmedic.analysis.predicates import scheduling
from llmedic.analysis.view import Reading, View
from llmedic.knowledge import phrases, texts
from llmedic.knowledge.conditions import Quantity
from llmedic.knowledge.texts import Lang
from llmedic.model.finding import Fact
from llmedic.model.verdict import BindingLimit

AT_CAP = 0.97
"""Share of the cap: between a request's end and the next one's admission a sample finds one of 32 places empty."""
AT_BUDGET = 0.9
"""Share of the token budget: steps in which no prompt waits lower the mean a little."""
PREFILL_HEAVY = 10.0
"""Prompt tokens computed per generated token from which prefill takes most of a step."""
UNEXPLAINED = 0.5
"""Share of TTFT that is neither queue nor prefill: the front end (or requests not finished yet)."""
SILENT_OUTPUT = 0.1
"""Tokens per second that stand for none, so that prefill without any output can be compared."""
MANY_SEQUENCES = 64.0
"""Below that a decode step mostly reads weights, and the batch hardly matters."""

Found = BindingLimit | None

NAMES = {
    "engine-core": ("requests are inside and no token comes out", "请求在引擎内，却没有任何 token 产出"),
    "kv-pool": ("KV pool", "KV 池"),
    "sequence-cap": ("sequence cap", "并发序列上限"),
    "token-budget": ("token budget per step", "每步 token 预算"),
    "prefill-compute": ("prefill compute", "预填充算力"),
    "decode": ("decode batch", "解码批"),
    "front-end": ("front end", "前端进程"),
    "none": ("nothing binds, no request waits", "没有瓶颈，没有请求在等待"),
}


def summary(limit: BindingLimit, lang: Lang) -> str:
    """The limit and its numbers in one line."""
    name = NAMES[limit.limit][lang == "zh"]
    numbers = texts.label("comma", lang).join(_number(fact, lang) for fact in limit.facts)
    return f"{name}{texts.label('colon', lang)}{numbers}" if numbers else name


def _number(fact: Fact, lang: Lang) -> str:
    value, bound = fact.value, fact.compared_to
    if lang == "zh":
        value, bound = phrases.chinese(value), phrases.chinese(bound)
    return f"{texts.indicator(fact.name, lang)} {value}" + (f" ({bound})" if bound else "")


def of(view: View, lang: Lang = "en") -> Found:
    """The limit that binds now; None when the queue and the batch were not seen."""
    found = _first(view)
    return replace(found, summary=summary(found, lang)) if found else None


def _first(view: View) -> Found:
    if view.observation("requests_running") is None:
        return None
    checks: tuple[Callable[[View], Found], ...] = (
        _stalled, _kv_pool, _sequence_cap, _token_budget, _prefill, _decode, _front_end, _nothing,
    )  # fmt: skip
    return next((found for check in checks if (found := check(view)) is not None), None)


def _read(view: View, name: str, statistic: str = "typical") -> Reading | None:
    return view.read(Quantity(where="observation", name=name, statistic=statistic))


def _waiting(view: View) -> float:
    return view.number("requests_waiting", "max") or 0.0


def _stalled(view: View) -> Found:
    outcome = scheduling.engine_makes_no_progress(view)
    if not outcome.holds:
        return None
    return BindingLimit(limit="engine-core", facts=outcome.facts)


def _kv_pool(view: View) -> Found:
    usage, preempted = _read(view, "kv_cache_usage_ratio", "max"), _read(view, "preemptions_per_min")
    full = usage is not None and usage.number >= bounds.FULL_POOL and _waiting(view) >= 1
    preempting = preempted is not None and preempted.number > bounds.PREEMPTIONS_PER_MIN
    if not full and not preempting:
        return None
    facts = tuple(reading.fact for reading in (usage, preempted) if reading)
    return BindingLimit(limit="kv-pool", facts=facts)


def _sequence_cap(view: View) -> Found:
    running, cap = _read(view, "requests_running", "max"), view.setting("max_num_seqs")
    if running is None or _waiting(view) < 1:
        return None
    at_cap = cap is not None and running.number >= AT_CAP * cap
    if not at_cap and (cap is not None or not scheduling.running_is_pinned(view).holds):
        return None
    limit = f"max_num_seqs {cap:g}" if cap is not None else "a constant count (max_num_seqs is not in the metrics)"
    fact = Fact(name="requests_running max", value=running.fact.value, source=running.fact.source, compared_to=limit)
    return BindingLimit(limit="sequence-cap", facts=(fact,))


def _token_budget(view: View) -> Found:
    tokens, budget = _read(view, "batch_tokens_mean"), view.setting("max_num_batched_tokens")
    if tokens is None or budget is None or _waiting(view) < 1:
        return None
    if tokens.number < AT_BUDGET * budget:
        return None
    return BindingLimit(limit="token-budget", facts=(tokens.fact,))


def _prefill(view: View) -> Found:
    prefill, output = _read(view, "prefill_tokens_per_s"), _read(view, "output_tokens_per_s")
    if prefill is None or output is None or _waiting(view) < 1:
        return None
    if prefill.number < PREFILL_HEAVY * max(output.number, SILENT_OUTPUT):
        return None
    facts = prefill.fact, output.fact
    return BindingLimit(limit="prefill-compute", facts=facts)


def _decode(view: View) -> Found:
    running, tpot = _read(view, "requests_running"), _read(view, "tpot_s") or _read(view, "itl_s")
    if running is None or tpot is None or running.number < MANY_SEQUENCES:
        return None
    facts = running.fact, tpot.fact
    return BindingLimit(limit="decode", facts=facts)


def _front_end(view: View) -> Found:
    busy, gap = _read(view, "frontend_cpu_cores"), _read(view, "ttft_unexplained_ratio")
    readings = (busy, bounds.FULL_CORE), (gap, UNEXPLAINED)
    facts = tuple(reading.fact for reading, bound in readings if reading is not None and reading.number >= bound)
    if busy is None or busy.number < bounds.FULL_CORE:
        return None
    return BindingLimit(limit="front-end", facts=facts)


def _nothing(view: View) -> Found:
    running, usage = _read(view, "requests_running", "max"), _read(view, "kv_cache_usage_ratio", "max")
    if _waiting(view) >= 1:
        return None
    facts = tuple(reading.fact for reading in (running, usage) if reading)
    return BindingLimit(limit="none", facts=facts)
