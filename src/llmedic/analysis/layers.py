"""One status per layer, from the one or two indicators that decide it. Not evaluated is not OK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmedic.analysis import bounds
from llmedic.analysis.evaluate import evaluate
from llmedic.analysis.view import View
from llmedic.knowledge import phrases, texts
from llmedic.knowledge.conditions import Bounds, Changed, Quantity
from llmedic.knowledge.schema import CauseText
from llmedic.knowledge.texts import Lang
from llmedic.model.finding import Fact
from llmedic.model.verdict import LAYERS, Layer, LayerStatus

INDICATORS: Mapping[str, tuple[str, ...]] = {
    "load": ("request_rate_per_s", "prompt_tokens_mean", "output_tokens_mean"),
    "capacity": ("requests_running", "requests_waiting", "kv_cache_usage_ratio", "preemptions_per_min"),
    "hardware": ("gpu_temp_c", "gpu_sm_clock_mhz", "gpu_power_w", "gpu_mem_bandwidth_ratio", "xid_errors",
                 "host_cpu_util_ratio", "cpu_wait_ratio"),
    "gateway": ("aborted_ratio", "error_finish_ratio", "http_error_ratio"),
}  # fmt: skip
STRAINED: Mapping[str, float] = {
    "requests_waiting": bounds.WAITING,
    "kv_cache_usage_ratio": bounds.FULL_POOL,
    "preemptions_per_min": bounds.PREEMPTIONS_PER_MIN,
    "gpu_temp_c": bounds.GPU_TEMP_C,
    "gpu_mem_bandwidth_ratio": bounds.GPU_BANDWIDTH_RATIO,
    "host_cpu_util_ratio": bounds.HOST_CPU_RATIO,
    "cpu_wait_ratio": bounds.CPU_WAIT_RATIO,
    "aborted_ratio": bounds.ABORTED_RATIO,
    "error_finish_ratio": bounds.FAILED_RATIO,
    "http_error_ratio": bounds.FAILED_RATIO,
}
"""From these values on a layer shows a symptom, whether a cause could be named or not."""
UNSEEN: Mapping[str, tuple[str, str]] = {
    "load": (
        "no earlier window to compare with: --baseline or --compare-to",
        "没有可对比的时间窗：用 --baseline 或 --compare-to",
    ),
    "capacity": (
        "no queue or KV figures: give the engine's URL or --metrics",
        "看不到队列和 KV 数据：给出引擎地址或 --metrics",
    ),
    "hardware": (
        "no GPU or host figures: --pid on the engine's host shows the CPU side",
        "看不到 GPU 或主机数据：在引擎主机上用 --pid 可看到 CPU 一侧",
    ),
    "params": ("flags are not known: --args, --pid or --log", "启动参数未知：用 --args、--pid 或 --log"),
    "deployment": ("no start-up log: --log", "没有启动日志：用 --log"),
    "gateway": ("no finish reasons or HTTP errors seen", "看不到结束原因或 HTTP 错误"),
}


def of(view: View, named: Sequence[CauseText], beneath: Sequence[CauseText], lang: Lang) -> tuple[Layer, ...]:
    """The layers from top to bottom. `named` are the causes said, `beneath` those that they explain."""
    return tuple(_layer(layer, view, named, beneath, lang) for layer in LAYERS)


def _layer(layer: str, view: View, named: Sequence[CauseText], beneath: Sequence[CauseText], lang: Lang) -> Layer:
    for status, causes in (("cause", named), ("symptom", beneath)):
        titles = [cause.title.say(lang) for cause in causes if cause.layer == layer]
        if titles:
            return Layer(
                layer=layer,
                status="cause" if status == "cause" else "symptom",
                summary=texts.label("semicolon", lang).join(titles),
            )
    seen = _seen(layer, view, lang)
    status_: LayerStatus = "symptom" if _strained(layer, view) else "ok" if seen else "not-evaluated"
    return Layer(
        layer=layer, status=status_, summary=texts.label("comma", lang).join(seen) or UNSEEN[layer][lang == "zh"]
    )


def _strained(layer: str, view: View) -> bool:
    if layer == "deployment":
        return bool(_errors(view))
    readings = (
        (bound, view.number(name, "max")) for name, bound in STRAINED.items() if name in INDICATORS.get(layer, ())
    )
    return any(number is not None and number >= bound for bound, number in readings)


def _seen(layer: str, view: View, lang: Lang) -> list[str]:
    if layer == "load":
        return _compared(view, lang)
    if layer == "params":
        return [texts.label("flags-known", lang).format(count=len(view.flags))] if view.flags_stated else []
    if layer == "deployment":
        return _log(view, lang) if view.has_log and view.events else []
    found = []
    for name in INDICATORS[layer]:
        statistic = "max" if layer in ("capacity", "hardware") else "typical"
        reading = view.read(Quantity(where="observation", name=name, statistic=statistic))
        if reading:
            found.append(_said(reading.fact, lang))
    return found


def _log(view: View, lang: Lang) -> list[str]:
    found = [texts.label("lines-read", lang).format(count=f"{view.evidence.log_lines:,}")]
    errors = _errors(view)
    return [*found, texts.label("errors-seen", lang).format(names=", ".join(errors[:3]))] if errors else found


def _errors(view: View) -> list[str]:
    """The kinds of errors in the log, those that only repeat another one left out."""
    return [
        name
        for name, events in view.events.items()
        if any(event.level in ("error", "fatal") and not event.is_echo for event in events)
    ]


def _compared(view: View, lang: Lang) -> list[str]:
    """Load is only judged against an earlier time."""
    found = []
    for name in INDICATORS["load"]:
        quantity = Quantity(where="observation", name=name)
        outcome = evaluate(Changed(quantity=quantity, bounds=Bounds(above=0)), view)
        if outcome.holds is not None and outcome.facts:
            found.append(_said(outcome.facts[0], lang))
    return found


def _said(fact: Fact, lang: Lang) -> str:
    value, earlier = fact.value, fact.compared_to
    if lang == "zh":
        value, earlier = phrases.chinese(value), phrases.chinese(earlier)
    return f"{texts.indicator(fact.name, lang)} {value}" + (f" ({earlier})" if earlier else "")
