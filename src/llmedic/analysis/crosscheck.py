"""Three witnesses: what metrics, logs and arithmetic say of the same thing must agree; where not, it is shown."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from llmedic.analysis.predicates import scheduling
from llmedic.analysis.view import View, fact_of, statistic
from llmedic.knowledge.texts import Lang
from llmedic.model.finding import Fact
from llmedic.model.verdict import Disagreement

STATIC = ("kv_cache_tokens", "kv_blocks_count", "kv_cache_gib")
"""Values that do not move while a process lives; 2 % for rounding in log lines."""
TOLERANCE = 0.02
LEFT_OPEN = frozenset({"auto", "-1"})
"""A setting left to the engine: what it chose is no contradiction."""


MEANINGS = {
    "process": (
        "one of them describes another process or an earlier start",
        "其中之一说的是另一个进程，或更早的一次启动",
    ),
    "flag": (
        "the engine does not run with what was typed, or the log is of another start",
        "引擎没有按输入的参数运行，或日志属于另一次启动",
    ),
    "blocks": (
        "hybrid or sliding-window layers share blocks, or the block size in force is not the one stated",
        "混合或滑动窗口层共用块，或实际块大小与所述不同",
    ),
    "ledger": (
        "another process holds memory of the card, or the model, the card or a flag is not the one stated",
        "显卡上另有进程占用显存，或模型、显卡、参数与所述不同",
    ),
    "health": (
        "the health check asks the API server, not the engine behind it",
        "健康检查问的是 API 进程，不是它背后的引擎",
    ),
}


def of(view: View, lang: Lang = "en") -> tuple[Disagreement, ...]:
    """Every pair of witnesses that contradict each other."""
    found = (*_sizes(view), *_flags(view), *_pool_arithmetic(view), *_ledger(view), *_green_health(view))
    found = tuple(dict.fromkeys(found))
    return tuple(replace(one, meaning=MEANINGS[one.meaning][lang == "zh"]) for one in found)


def _sizes(view: View) -> list[Disagreement]:
    found = []
    for name in STATIC:
        for first, second in combinations(view.all_of(name), 2):
            a, b = statistic(first.value, "typical"), statistic(second.value, "typical")
            if a and b and abs(a - b) > TOLERANCE * max(a, b):
                facts = fact_of(first, "", a), fact_of(second, "", b)
                meaning = "process"
                found.append(Disagreement(about=name, first=facts[0], second=facts[1], meaning=meaning))
    return found


def _flags(view: View) -> list[Disagreement]:
    found = []
    by_name: dict[str, list[Fact]] = {}
    for flag in view.evidence.deployment.flags:
        fact = Fact(name=f"flag.{flag.name}", value=_plain(flag.value), source=flag.origin)
        by_name.setdefault(flag.name, []).append(fact)
    for name, facts in by_name.items():
        stated = [fact for fact in facts if fact.value not in LEFT_OPEN]
        others = [fact for fact in stated[1:] if fact.value != stated[0].value]
        if others:
            found.append(Disagreement(about=name, first=stated[0], second=others[0], meaning="flag"))
    return found


def _plain(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else str(value).lower()


def _pool_arithmetic(view: View) -> list[Disagreement]:
    blocks, size = view.number("kv_blocks_count"), view.setting("block_size")
    pool = view.observation("kv_cache_tokens")
    stated = statistic(pool.value, "typical") if pool else None
    if not blocks or not size or pool is None or not stated:
        return []
    server = view.server
    counted = blocks * size
    if server is not None and server.settings.max_model_len:
        counted = server.plan().printed_tokens(int(blocks), server.settings.max_model_len)
    if abs(counted - stated) <= TOLERANCE * max(counted, stated):
        return []
    first = Fact(name="kv_blocks_count x block_size", value=f"{counted:,.0f} tokens", source="ledger")
    meaning = "blocks"
    return [Disagreement(about="KV pool", first=first, second=fact_of(pool, "", stated), meaning=meaning)]


def _ledger(view: View) -> list[Disagreement]:
    """The pool that the engine reports, and the one that model, card and flags would give."""
    server = view.server
    if server is None or server.known_pool is None or server.card.total_bytes.likely <= 0:
        return []
    reported, computed = server.known_pool, server.memory().pool.size
    slack = TOLERANCE * server.card.total_bytes.likely
    if computed.low - slack <= reported.likely <= computed.high + slack:
        return []
    from llmedic.analysis.ledger.ranges import gib  # the ledger is there already

    first = Fact(name="KV cache as reported", value=gib(reported), source="log")
    second = Fact(name="KV cache by the ledger", value=gib(computed), source="ledger")
    return [Disagreement(about="KV pool", first=first, second=second, meaning="ledger")]


def _green_health(view: View) -> list[Disagreement]:
    health = view.observation("api_health_status")
    if health is None or statistic(health.value, "typical") != 200:
        return []
    outcome = scheduling.engine_makes_no_progress(view)
    if not outcome.holds:
        return []
    meaning = "health"
    first = Fact(name="api_health_status", value="200", source=health.source)
    return [Disagreement(about="health", first=first, second=outcome.facts[-1], meaning=meaning)]
