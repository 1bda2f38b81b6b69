"""What the ledger's renderers say in the same words: names of terms, states, headings and the sentence that answers."""

from __future__ import annotations

from collections.abc import Iterator

from llmedic.knowledge import phrases
from llmedic.knowledge.texts import Lang
from llmedic.model.ledger import CacheFit, ContextCost, Ledger, LedgerReport, Planned, Range, Setting, Solution, Term
from llmedic.report.ledger import numbers
from llmedic.report.ledger.chart import wholes

LABELS: dict[str, tuple[str, str]] = {
    "title": ("LLMedic ledger", "LLMedic 显存账本"),
    # whether it starts
    "starts.yes": ("it starts", "可以启动"),
    "starts.no": ("it does not start", "无法启动"),
    "starts.perhaps": ("it may not start", "可能无法启动"),
    "starts.unknown": ("cannot tell whether it starts", "无法判断能否启动"),
    # terms
    "term.total": ("device memory", "整卡显存"),
    "term.requested": ("requested", "引擎申请"),
    "term.weights": ("weights", "权重"),
    "term.draft_weights": ("draft weights", "草稿模型权重"),
    "term.activation": ("activation peak", "激活峰值"),
    "term.non_torch": ("outside torch", "非 torch 占用"),
    "term.driver": ("driver and libraries", "驱动与库"),
    "term.cuda_graphs": ("CUDA graphs", "CUDA graph"),
    "term.lora": ("LoRA slots", "LoRA 槽位"),
    "term.encoder_cache": ("encoder cache", "编码器缓存"),
    "term.media_decoder": ("media decoder", "媒体解码"),
    "term.compute_buffers": ("compute buffers", "计算缓冲区"),
    "term.kv_cache": ("KV cache", "KV cache"),
    "term.pool": ("KV cache", "KV cache"),
    "term.state": ("recurrent state", "循环状态"),
    "term.free_outside": ("left to others", "留给其它用途"),
    "term.request_slots": ("request slots", "请求槽位"),
    "term.host_weights": ("host: weights", "主机：权重"),
    "term.host_kv_cache": ("host: KV cache", "主机：KV cache"),
    "term.host_compute_buffers": ("host: buffers", "主机：缓冲区"),
    "term.free": ("free at start", "启动时空闲"),
    "term.consumed": ("consumed", "已占用"),
    "term.torch_peak": ("torch peak", "torch 峰值"),
    "term.activation_and_graphs": ("activation and graphs", "激活与 CUDA graph"),
    "term.cuda_graphs_estimate": ("graphs, estimated", "CUDA graph 预估"),
    "term.one_request": ("one request needs", "单个请求需要"),
    "term.kv_tokens": ("tokens", "token 数"),
    "term.blocks": ("blocks", "块数"),
    "term.concurrency": ("requests at once", "并发请求"),
    # where a number comes from
    "basis.given": ("given", "给定"),
    "basis.printed": ("printed", "日志打印"),
    "basis.computed": ("computed", "计算"),
    "basis.calibrated": ("calibrated", "实测校准"),
    "basis.assumed": ("assumed", "假定"),
    "origin.given": ("given", "给定"),
    "origin.args": ("given", "给定"),
    "origin.log": ("from the log", "来自日志"),
    "origin.default": ("default", "默认"),
    # severities and changes
    "severity.info": ("note", "提示"),
    "severity.warning": ("WARNING", "警告"),
    "severity.critical": ("CRITICAL", "严重"),
    "change": ("would fit", "可行的设置"),
    # headings
    "map": ("Memory of one device, GiB", "单卡显存，GiB"),
    "map.of": ("Memory of the tightest of {devices} devices, GiB", "{devices} 张卡中最紧的一张，GiB"),
    "holds": ("What the KV cache holds", "KV cache 容量"),
    "arithmetic": ("How each was reached", "各项如何得出"),
    "printed": ("Printed by the engine, beside what is computed", "引擎打印值与计算值对照"),
    "solutions": ("What would be enough", "怎样才够"),
    "planned": ("The planned context length", "计划的上下文长度"),
    "settings": ("Settings used", "所用参数"),
    "notes": ("Assumed", "假定"),
    "gaps": ("Not known", "未知"),
    "how": ("how", "补全它的命令"),
    "formula": ("formula", "公式"),
    # columns and rows
    "term": ("term", "项目"),
    "size": ("size", "大小"),
    "interval": ("interval", "区间"),
    "share": ("share", "占比"),
    "basis": ("basis", "依据"),
    "how-reached": ("arithmetic", "算式"),
    "engine": ("printed", "打印值"),
    "computed": ("computed", "计算值"),
    "residual": ("residual", "残差"),
    "goal": ("setting", "参数"),
    "set": ("set", "设为"),
    "result": ("then", "结果"),
    "concurrency": ("at once", "并发"),
    "why": ("why", "原因"),
    "blocks": ("blocks", "块"),
    "tokens": ("tokens", "token"),
    "tokens-printed": ("tokens, as printed", "token 数（引擎日志口径）"),
    "longest": ("longest request", "最长请求"),
    "per-token": ("one more token", "每多一个 token"),
    "when": ("", ""),
    "now": ("now", "现在"),
    "then": ("planned", "计划"),
    "request-tokens": ("tokens each", "每请求 token"),
    "request-blocks": ("blocks each", "每请求块数"),
    "quick-rule": ("rule (of 32)", "经验公式（32/块）"),
    "wanted-share": ("pool for {count}", "{count} 并发占池比例"),
    "goal.together": ("together", "组合方案"),
    "times": ("room for {count} requests of the longest length", "可同时容纳 {count} 个最长请求"),
    "none": ("none", "无"),
    "unknown": ("unknown", "未知"),
    # sentences
    "pool": ("KV cache {size}", "KV cache {size}"),
    "pool.missing": (
        "{size} are missing before the first block of KV cache",
        "还没分到第一个 KV 块，就已缺 {size}",
    ),
    "pool.unknown": ("The size of the KV cache is not known.", "KV cache 大小未知。"),
    "answer": (
        "{pool}: {concurrency} requests of {length} tokens at once",
        "{pool}：同时容纳 {concurrency} 个 {length} token 的请求",
    ),
    "blocks.of": ("{count}, {tokens} tokens and {size} each", "{count}，每块 {tokens} token、{size}"),
    "blocks.cells": ("{count}, one token and {size} each", "{count}，每块 1 token、{size}"),
    "blocks.groups": ("; {count} layer groups share them", "；由 {count} 个层组共用"),
    "concurrency.of": (
        "{count} requests of {length} tokens ({blocks} blocks each)",
        "{count} 个 {length} token 的请求（每个 {blocks} 块）",
    ),
    "longest.of": ("{count} tokens", "{count} token"),
    "longest.none": ("none: not one block is left", "无：一个块都不剩"),
    "fits": ("{count} at once fit now and after the change", "同时 {count} 个，现在和改后都能容纳"),
    "fits.perhaps": ("{count} at once fit now; after the change, perhaps", "同时 {count} 个，现在能容纳；改后不一定"),
    "fits.no-more": ("{count} at once fit now and no longer after the change", "同时 {count} 个，现在能容纳，改后不能"),
    "fits.never": ("{count} at once do not fit now either", "目前就放不下 {count} 个并发"),
    "aside": ("{words} ({aside})", "{words}（{aside}）"),
    "comma": (", ", "，"),
    "semicolon": ("; ", "；"),
    "colon": (": ", "："),
}  # fmt: skip
"""Key -> (English, Chinese)."""


def say(key: str, lang: Lang, **parts: object) -> str:
    """The words for a key, its places filled in."""
    text = LABELS[key][lang == "zh"]
    return text.format(**parts).replace("） ", "）") if parts else text  # a wide bracket brings its own space


def sentence(text: str, lang: Lang) -> str:
    """A sentence of the analysis, or a number with its interval, in the reader's language."""
    return phrases.chinese(text) if lang == "zh" else text


def term_name(term_id: str, lang: Lang) -> str:
    """The name of a term; a term of a later release keeps its id, in words."""
    key = f"term.{term_id}"
    return say(key, lang) if key in LABELS else term_id.replace("_", " ")


def basis(term: Term, lang: Lang) -> str:
    """Where the number comes from, in a word."""
    return say(f"basis.{term.basis}", lang)


def subject(report: LedgerReport, lang: Lang) -> str:
    """Model, cards, engine and release, as far as they are known."""
    ledger = report.ledger
    card = report.accelerator or (numbers.size(ledger.total.size) if ledger.total else "")
    cards = f"{ledger.devices} x {card}" if card else ""
    engine = " ".join(filter(None, (ledger.engine, ledger.version)))
    return say("comma", lang).join(filter(None, (report.model_name, cards, engine)))


def formula(ledger: Ledger, lang: Lang) -> str:
    """The formula of the release's era, and the era's name."""
    text = sentence(ledger.formula, lang)
    return say("aside", lang, words=text, aside=ledger.era) if text and ledger.era else text or ledger.era


def answer(ledger: Ledger, lang: Lang) -> str:
    """The one line to read first: what the KV cache gets, and how many requests it holds."""
    if ledger.pool is None:
        return say("pool.unknown", lang)
    size = ledger.pool.size
    if size.likely < 0:
        lacking = Range(low=-size.high, likely=-size.likely, high=-size.low)
        return say("pool.missing", lang, size=sentence(numbers.size(lacking), lang))
    pool = say("pool", lang, size=sentence(numbers.size(size), lang))
    cache = ledger.cache
    if cache is None or not cache.max_model_len:
        return pool
    often = sentence(numbers.often(cache.concurrency), lang)
    return say("answer", lang, pool=pool, concurrency=often, length=f"{cache.max_model_len:,}")


def holds(cache: CacheFit, lang: Lang) -> Iterator[tuple[str, str]]:
    """What the KV cache holds: names and values."""
    each = numbers.plain_bytes(cache.bytes_per_block)
    key = "blocks.of" if cache.block_tokens > 1 else "blocks.cells"
    blocks = say(
        key, lang, count=sentence(numbers.count(cache.blocks), lang), tokens=f"{cache.block_tokens:,}", size=each
    )
    if cache.groups > 1:
        blocks += say("blocks.groups", lang, count=cache.groups)
    yield say("blocks", lang), blocks
    yield say("tokens-printed", lang), sentence(numbers.count(cache.printed_tokens), lang)
    if cache.max_model_len:
        often = say(
            "concurrency.of",
            lang,
            count=sentence(numbers.often(cache.concurrency), lang),
            length=f"{cache.max_model_len:,}",
            blocks=f"{cache.blocks_per_request:,}",
        )
        yield say("concurrency", lang), often
    longest = cache.longest_request
    none = longest.high <= 0
    yield (
        say("longest", lang),
        say("longest.none" if none else "longest.of", lang, count=sentence(numbers.count(longest), lang)),
    )
    yield say("per-token", lang), numbers.plain_bytes(cache.bytes_per_token)


def arithmetic(ledger: Ledger, lang: Lang) -> Iterator[tuple[str, str]]:
    """The formula, and how each term came about that is more than a plain computation."""
    if ledger.formula or ledger.era:
        yield say("formula", lang), formula(ledger, lang)
    for term in (*wholes(ledger), *ledger.terms, ledger.pool, *ledger.outside):
        if term and (term.how or term.basis != "computed"):
            how, word = sentence(term.how, lang), basis(term, lang)
            yield term_name(term.id, lang), say("aside", lang, words=how, aside=word) if how else word


def printed(report: LedgerReport, lang: Lang) -> Iterator[tuple[str, str, str, str]]:
    """Name, printed, computed and residual of every number that the log has."""
    for item in report.printed:
        exact = Range(low=item.value, likely=item.value, high=item.value)
        computed = residual = say("unknown", lang)
        if item.computed is not None and item.residual is not None:
            computed = sentence(numbers.quantity(item.computed, item.unit), lang)
            residual = numbers.difference(item.residual, item.unit)
        yield term_name(item.id, lang), numbers.quantity(exact, item.unit), computed, residual


def solution(one: Solution, lang: Lang) -> tuple[str, str, str]:
    """Goal as it is asked for, what to type, and what the KV cache then gets and holds."""
    pool = say("pool", lang, size=sentence(numbers.size(one.pool), lang)) if one.pool else ""
    often = say("times", lang, count=sentence(numbers.often(one.concurrency), lang)) if one.concurrency else ""
    key = f"goal.{one.goal}"
    goal = say(key, lang) if key in LABELS else one.goal
    return goal, one.change or say("none", lang), say("comma", lang).join(filter(None, (pool, often)))


def planned(plan: Planned, lang: Lang) -> tuple[list[str], list[tuple[str, ...]]]:
    """Heads and the two rows of a planned change of context length."""
    heads = [say(key, lang) for key in ("when", "request-tokens", "request-blocks", "quick-rule", "concurrency")]
    if plan.concurrency:
        heads.append(say("wanted-share", lang, count=f"{plan.concurrency:,}"))
    rows = []
    for key, cost in (("now", plan.now), ("then", plan.then)):
        row = [say(key, lang), f"{cost.tokens:,}", f"{cost.blocks:,}", f"{cost.quick_blocks:,}", _requests(cost, lang)]
        if plan.concurrency:
            row.append(_pool_share(cost, plan.concurrency))
        rows.append(tuple(row))
    return heads, rows


def fits(plan: Planned, lang: Lang) -> str:
    """Whether the wanted concurrency still fits; "" when none was named."""
    if not plan.concurrency:
        return ""
    wanted = plan.concurrency
    if plan.now.requests.likely < wanted:
        key = "fits.never"
    elif plan.then.requests.low >= wanted:
        key = "fits"
    else:
        key = "fits.perhaps" if plan.then.requests.high >= wanted else "fits.no-more"
    return say(key, lang, count=f"{wanted:,}")


def settings(used: tuple[Setting, ...], lang: Lang) -> Iterator[tuple[str, str]]:
    """Who said so, and what: one line per origin, the given ones first."""
    for origin in dict.fromkeys(item.origin for item in sorted(used, key=lambda item: item.origin == "default")):
        said = [f"{item.flag} {item.value}".strip() for item in used if item.origin == origin]
        key = f"origin.{origin}"
        yield (say(key, lang) if key in LABELS else origin), say("comma", lang).join(said)


def _requests(cost: ContextCost, lang: Lang) -> str:
    return sentence(numbers.count(cost.requests) if cost.requests.low >= 10 else numbers.times(cost.requests), lang)


def _pool_share(cost: ContextCost, wanted: int) -> str:
    share = cost.share(wanted)
    return "> 100 %" if share is None else numbers.percent(share)
