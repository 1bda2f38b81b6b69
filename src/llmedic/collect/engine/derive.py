"""Turns what one engine counted into observations: rates, shares and quantiles of the window and since start.

A value that cannot be formed (no second page, nothing finished, a metric the release does not have) is left out:
whoever needs it finds it missing, never zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from llmedic.collect.engine import histogram
from llmedic.collect.engine.histogram import Histogram
from llmedic.collect.engine.instance import Instance, Points
from llmedic.knowledge import metrics, vocabulary
from llmedic.model.observation import Observation, Period, Series, Value

SOURCE = "metrics"


def observations(instance: Instance, engine: str) -> tuple[Observation, ...]:
    """Everything that one engine, server or service shows."""
    about = {metric.id: metric for metric in metrics.names(engine).metrics}
    window = [*_counted(instance), *_rates(instance), *_shares(instance.gained, instance.window)]
    window += _latencies(instance.window)
    made = {name for name, _ in window}
    gauges = {key: points for key, points in instance.gauges.items() if key not in made}
    window += [*_gauges(gauges, about), *_instants(instance)]
    return (
        *(_seen(instance, name, value, "window") for name, value in window if _is_finite(value)),
        *(
            _seen(instance, name, value, "lifetime")
            for name, value in _since_start(instance, about)
            if _is_finite(value)
        ),
    )


def _is_finite(value: Value) -> bool:
    """Sums of absurd counters overflow: then nothing is known."""
    return not isinstance(value, float) or math.isfinite(value)


def _seen(instance: Instance, name: str, value: Value, period: Period) -> Observation:
    return Observation(
        name=name,
        value=value,
        unit=vocabulary.unit(name),
        source=SOURCE,
        period=period,
        window_s=instance.window_s if period == "window" else None,
        at=instance.at or None,
        instance=instance.name,
    )


def _counted(instance: Instance) -> Iterator[tuple[str, Value]]:
    gained = instance.gained
    for name, key in (
        ("finished_count", "finished"),
        ("output_tokens_count", "output_tokens"),
        ("corrupted_requests_count", "corrupted_requests"),
        ("admission_rejections_count", "rejections"),
    ):
        if key in gained:
            yield name, gained[key]
    if gained and "ttft_s" in instance.window:
        yield "first_tokens_count", instance.window["ttft_s"].count
    if instance.resets is not None:
        yield "counter_resets_count", float(instance.resets)


def _rates(instance: Instance) -> Iterator[tuple[str, Value]]:
    rates = instance.rates
    if "finished" in rates:
        wasted = rates.get("finished_abort", 0.0) + rates.get("finished_error", 0.0)
        yield "completed_requests_per_s", max(0.0, rates["finished"] - wasted)
    arrivals = _arrivals_per_s(instance)
    if arrivals is not None:
        yield "request_rate_per_s", arrivals
    for name, key, factor in (
        ("output_tokens_per_s", "output_tokens", 1.0),
        ("prompt_tokens_per_s", "prompt_tokens", 1.0),
        ("prefix_cache_queries_per_s", "prefix_queries", 1.0),
        ("preemptions_per_min", "preemptions", 60.0),
        ("process_cpu_cores", "process_cpu_s", 1.0),
    ):
        # A gauge of the same name is the engine's own, fresher figure (SGLang counts tokens at finish only).
        if key in rates and name not in instance.gauges:
            yield name, rates[key] * factor
    computed = _computed(rates)
    if computed is not None:
        yield "prefill_tokens_per_s", computed
    if "evicted_tokens" in rates:
        yield "kv_evictions_per_min", rates["evicted_tokens"] * 60 / max(1.0, instance.fixed.get("page_size", 1.0))


def _arrivals_per_s(instance: Instance) -> float | None:
    """Arrivals; where the engine does not count them: what finished and what is in there more than before."""
    if "arrived" in instance.rates:
        return instance.rates["arrived"]
    running = instance.gauges.get("requests_running", ())
    waiting = instance.gauges.get("requests_waiting", ())
    if "finished" not in instance.rates or len(running) < 2 or not instance.window_s:
        return None
    more = running[-1][1] - running[0][1]
    if len(waiting) >= 2:
        more += waiting[-1][1] - waiting[0][1]
    return max(0.0, instance.rates["finished"] + (0.0 if instance.resets else more / instance.window_s))


def _computed(counts: Mapping[str, float]) -> float | None:
    """Prompt tokens that were computed rather than found in a cache."""
    if "computed_prompt_tokens" in counts:
        return counts["computed_prompt_tokens"]
    cached = counts.get("cached_prompt_tokens", counts.get("prefix_hits"))
    if "prompt_tokens" in counts and cached is not None:
        return max(0.0, counts["prompt_tokens"] - cached)
    return counts.get("prompt_tokens")


def _shares(counts: Mapping[str, float], spread: Mapping[str, Histogram]) -> Iterator[tuple[str, Value]]:
    """Ratios of counts, over the window or since start."""
    for name, part, whole in (
        ("aborted_ratio", "finished_abort", "finished"),
        ("error_finish_ratio", "finished_error", "finished"),
        ("length_finish_ratio", "finished_length", "finished"),
        ("spec_acceptance_ratio", "accepted_tokens", "draft_tokens"),
        ("http_error_ratio", "http_errors", "http_requests"),
    ):
        if part in counts and counts.get(whole, 0.0) > 0:
            yield name, min(1.0, counts[part] / counts[whole])
    hits, queries = _prefix(counts)
    if queries:
        yield "prefix_cache_hit_ratio", min(1.0, hits / queries)
    if counts.get("slot_decode_s", 0.0) > 0 and "output_tokens" in counts:
        yield "decode_tokens_per_s", counts["output_tokens"] / counts["slot_decode_s"]
    yield from _times(counts, spread)


def _prefix(counts: Mapping[str, float]) -> tuple[float, float]:
    """Cached and asked-for prompt tokens, from whichever counters the engine has."""
    if "prefix_queries" in counts and "prefix_hits" in counts:
        return counts["prefix_hits"], counts["prefix_queries"]
    if "cached_prompt_tokens" in counts and "computed_prompt_tokens" in counts:
        cached = counts["cached_prompt_tokens"]
        return cached, cached + counts["computed_prompt_tokens"]
    return counts.get("prefix_hits", 0.0), counts.get("prompt_tokens", 0.0) if "prefix_hits" in counts else 0.0


def _times(counts: Mapping[str, float], spread: Mapping[str, Histogram]) -> Iterator[tuple[str, Value]]:
    means = {key: one.mean for key, one in spread.items()}
    ttft, queue, prefill, itl = (means.get(key) for key in ("ttft_s", "queue_s", "prefill_s", "itl_s"))
    if ttft and queue is not None:
        yield "queue_share_ratio", min(1.0, queue / ttft)
        if prefill is not None:
            yield "ttft_unexplained_ratio", max(0.0, 1 - (queue + prefill) / ttft)
    if itl:
        yield "decode_tokens_per_s", 1 / itl
    first_tokens = spread["ttft_s"].count if "ttft_s" in spread else 0.0
    if first_tokens and "prompt_tokens" in counts:
        yield "prompt_tokens_per_first_token", counts["prompt_tokens"] / first_tokens


def _latencies(spread: Mapping[str, Histogram]) -> Iterator[tuple[str, Value]]:
    for key, one in spread.items():
        quantiles = histogram.quantiles(one)
        if quantiles is not None:
            yield key, quantiles


def _gauges(gauges: Mapping[str, Points], about: Mapping[str, metrics.Metric]) -> Iterator[tuple[str, Value]]:
    for key, points in gauges.items():
        if key not in metrics.QUANTITIES and not about[key].lifetime:
            yield key, Series(points=points)


def _instants(instance: Instance) -> Iterator[tuple[str, Value]]:
    for key, value in instance.fixed.items():
        if vocabulary.word(key) is not None:
            yield key, value
    start = instance.gauges.get("process_start_s", ())
    if start and instance.at > start[-1][1]:
        yield "uptime_s", instance.at - start[-1][1]
    if instance.scrapes:
        yield "scrape_s", Series(points=instance.scrapes)


def _since_start(instance: Instance, about: Mapping[str, metrics.Metric]) -> Iterator[tuple[str, Value]]:
    counts = instance.since_start
    for name, key in (
        ("finished_count", "finished"),
        ("output_tokens_count", "output_tokens"),
        ("corrupted_requests_count", "corrupted_requests"),
        ("admission_rejections_count", "rejections"),
        ("preemptions_total", "preemptions"),
        ("prefix_cache_queries_count", "prefix_queries"),
        ("prefix_cache_hits_count", "prefix_hits"),
    ):
        if key in counts:
            yield name, counts[key]
    if "ttft_s" in instance.ever:
        yield "first_tokens_count", instance.ever["ttft_s"].count
    yield from _shares(counts, instance.ever)
    yield from _latencies(instance.ever)
    for key, points in instance.gauges.items():
        if about[key].lifetime and points[-1][1] >= 0:
            yield key, points[-1][1]
