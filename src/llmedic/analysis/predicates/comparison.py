"""Rows that somebody measured, and values over time, compared with each other."""

from __future__ import annotations

from itertools import pairwise

from llmedic.analysis import bounds
from llmedic.analysis.outcome import Outcome, unknown
from llmedic.analysis.predicates.shown import measured, shown
from llmedic.analysis.view import View, fact_of, pair, statistic
from llmedic.model import units
from llmedic.model.finding import Fact
from llmedic.model.observation import Change, Series

BETTER_WHEN = {
    "decode_tokens_per_s": "high", "output_tokens_per_s": "high", "prefill_tokens_per_s": "high",
    "completed_requests_per_s": "high", "accuracy_ratio": "high", "ttft_s": "low", "itl_s": "low", "tpot_s": "low",
    "e2e_s": "low", "wall_s": "low", "perplexity": "low",
}  # fmt: skip
"""Which way is better, for values that people compare across releases."""
TWICE = 2.0
"""Twice as long, as deep: clear of noise and of one histogram bucket, whose edges are mostly less far apart."""
MORE_LOAD = 1.5
"""Two rows differ in load when one has half as many again: less moves little."""
A_THIRD_LESS = 0.67
"""What is left after a loss of a third: the attention of a healthy kernel costs less at twice the depth."""
OFFERED_ABOVE = 1.2
"""Offered over completed: a fifth too much is more than the requests in flight when a run ends."""
SAME_RATE = 1.1
"""Throughputs within 10 % are the same: two runs of one benchmark differ by several percent."""
BUSY_GPU = 0.85
"""A GPU that has a kernel running in so much of the time is kept busy."""
COLD_START = 10.0
"""First over later first tokens: compiling takes seconds where a first token takes a fraction of one."""
NO_HITS, MANY_HITS = 0.1, 0.5
"""A replica without reuse still hits a shared template now and then; its sibling reuses at least every other token."""
SLACK = 0.01
"""Memory that grows may give back 1 % between two samples: allocators do."""
GROWTH, GROWTH_S = 1.05, 600.0
"""5 % in ten minutes or more: a warm-up is over sooner, and less is noise."""
LIKE_TEST = 0.75, 1.33
"""Live over tested: within a third either way a benchmark is like production."""
FELT_S = 0.1
"""A latency must also have grown by a tenth of a second: twice a few milliseconds is nothing to a user."""
WORSE_RATE, WORSE_TIME = 0.8, 1.25
"""A fifth less throughput, or the same ratio in time: two runs of one release differ by less."""


def speed_falls_with_depth(view: View) -> Outcome:
    """Between two measured rows the context grows and one stream's decode speed falls by more than a third."""
    rows = measured(view, "prompt_tokens_mean", "decode_tokens_per_s")
    if len(rows) < 2:
        return unknown("decode_tokens_per_s at two context lengths")
    rows.sort()
    (short, fast), (long, slow) = rows[0], rows[-1]
    fact = Fact(name="decode speed", value=f"{fast:g} tokens/s at {short:,.0f} tokens", source="bench",
                compared_to=f"{slow:g} tokens/s at {long:,.0f} tokens")  # fmt: skip
    return Outcome(holds=long >= TWICE * short and slow < A_THIRD_LESS * fast, facts=(fact,))


def throughput_flat_with_load(view: View) -> Outcome:
    """Completions stay the same while more is offered: the service rate is reached."""
    rows = measured(view, "request_rate_per_s", "completed_requests_per_s")
    offered, done = view.number("request_rate_per_s"), view.number("completed_requests_per_s")
    if offered is not None and done is not None:
        rows.append((offered, done))
    if not rows:
        return unknown("request_rate_per_s", "completed_requests_per_s")
    rows.sort()
    rate, served = rows[-1]
    fact = Fact(name="completed_requests_per_s", value=f"{served:g}", source="bench", compared_to=f"{rate:g} offered")
    return Outcome(holds=rate > OFFERED_ABOVE * served, facts=(fact,))


def throughput_is_flat_over_concurrency(view: View) -> Outcome:
    """Rows with more clients deliver no more tokens, and the first token takes at least twice as long."""
    rates = sorted(measured(view, "client_concurrency", "output_tokens_per_s"))
    waits = sorted(measured(view, "client_concurrency", "ttft_s"))
    if len(rates) < 2 or len(waits) < 2:
        return unknown("output_tokens_per_s and ttft_s at two concurrencies")
    (few, before), (many, after) = rates[-2], rates[-1]
    fact = Fact(
        name="output_tokens_per_s", value=f"{after:g} at {many:g}", source="bench", compared_to=f"{before:g} at {few:g}"
    )
    slower = waits[-1][1] >= TWICE * waits[0][1]
    return Outcome(holds=many >= MORE_LOAD * few and after <= SAME_RATE * before and slower, facts=(fact,))


def gpu_busier_in_one_row(view: View) -> Outcome:
    """The same work fills the GPU in one measured row and leaves it a third idler in another."""
    found = sorted(pair[0] for pair in measured(view, "gpu_util_ratio", "gpu_util_ratio"))
    if len(found) < 2:
        return unknown("gpu_util_ratio in two rows")
    fact = Fact(
        name="gpu_util_ratio", value=f"{found[0]:g}", source="bench", compared_to=f"{found[-1]:g} in the other row"
    )
    return Outcome(holds=found[-1] >= BUSY_GPU and found[0] <= A_THIRD_LESS * found[-1], facts=(fact,))


def first_request_is_slow(view: View) -> Outcome:
    """The first measured row takes at least ten times as long to its first token as the next."""
    times = [row for _, row in measured(view, "ttft_s", "ttft_s")]
    if len(times) < 2:
        return unknown("ttft_s of the first and of later requests")
    fact = Fact(name="ttft_s", value=units.show(times[0], "s"), source="bench",
                compared_to=f"{units.show(times[-1], 's')} later")  # fmt: skip
    return Outcome(holds=times[0] >= COLD_START * times[-1], facts=(fact,))


def one_replica_has_no_hits(view: View) -> Outcome:
    """One replica reuses nothing while a sibling reuses most of its prompts."""
    ratios = [statistic(found.value, "typical") or 0.0 for found in view.instances("prefix_cache_hit_ratio").values()]
    for row in view.evidence.bench:
        queries, hits = row.values.get("prefix_cache_queries_count"), row.values.get("prefix_cache_hits_count")
        if queries is not None and hits is not None and (asked := statistic(queries, "typical")):
            ratios.append((statistic(hits, "typical") or 0.0) / asked)
        elif "prefix_cache_hit_ratio" in row.values:
            ratios.append(statistic(row.values["prefix_cache_hit_ratio"], "typical") or 0.0)
    if len(ratios) < 2:
        return unknown("prefix_cache_hit_ratio of two replicas")
    fact = Fact(name="prefix_cache_hit_ratio", value=units.show(min(ratios), "0..1"), source="bench",
                compared_to=f"{units.show(max(ratios), '0..1')} on the sibling")  # fmt: skip
    return Outcome(holds=min(ratios) <= NO_HITS and max(ratios) >= MANY_HITS, facts=(fact,))


def cached_tokens_vanish(view: View) -> Outcome:
    """Between comparable turns the cached tokens drop to zero and the first token takes much longer."""
    rows = measured(view, "cached_tokens_count", "ttft_s")
    if len(rows) < 2:
        return unknown("cached_tokens_count of two turns")
    rows.sort()
    (fewest, slow), (most, fast) = rows[0], rows[-1]
    fact = Fact(
        name="cached_tokens_count", value=f"{fewest:g}", source="bench", compared_to=f"{most:g} in the usual turn"
    )
    return Outcome(holds=fewest == 0 and most > 0 and slow > TWICE * fast, facts=(fact,))


def memory_grows_steadily(view: View) -> Outcome:
    """Resident or device memory rises over the whole series, outside the KV pool's fixed reservation."""
    for name in ("process_rss_gib", "gpu_mem_used_gib"):
        found = view.observation(name)
        if found and isinstance(found.value, Series) and len(found.value.points) >= 2:
            values = [number for _, number in found.value.points]
            span_s = found.value.points[-1][0] - found.value.points[0][0]
            steady = all(b >= a - SLACK * abs(a) for a, b in pairwise(values))
            grows = values[-1] >= GROWTH * values[0] and span_s >= GROWTH_S
            return Outcome(holds=steady and grows, facts=(shown(found, "last", f"{values[0]:g} GiB at first"),))
    return unknown("process_rss_gib over hours")


def token_time_grows_with_batch(view: View) -> Outcome:
    """In measured rows the time per token grows with the batch while nothing waits."""
    for size in ("requests_running", "client_concurrency", "batch_size_mean"):
        for name in ("tpot_s", "itl_s"):
            found = sorted(measured(view, size, name))
            if len(found) >= 2 and found[-1][0] >= MORE_LOAD * found[0][0]:
                (few, fast), (many, slow) = found[0], found[-1]
                later = f"{units.show(slow, 's')} at {many:g} instead of {few:g} sequences"
                fact = Fact(name=name, value=units.show(fast, "s"), source="bench", compared_to=later)
                return Outcome(holds=slow >= bounds.SLOWER * fast, facts=(fact,))
    return unknown("tpot_s at two batch sizes")


def slow_rows_have_a_full_pool(view: View) -> Outcome:
    """Among measured rows, tokens get slow where the KV pool is full and are fast where it is not."""
    for name in ("tpot_s", "itl_s"):
        found = measured(view, "kv_cache_usage_ratio", name)
        full = [slow for usage, slow in found if usage >= bounds.FULL_POOL]
        free = [fast for usage, fast in found if usage < bounds.FULL_POOL]
        if full and free:
            after = f"{units.show(min(full), 's')} with the pool full"
            fact = Fact(name=name, value=units.show(max(free), "s"), source="bench", compared_to=after)
            return Outcome(holds=min(full) >= TWICE * max(free), facts=(fact,))
    return unknown("tpot_s with the pool full and free")


def production_differs_from_test(view: View) -> Outcome:
    """A benchmark row's lengths or hit ratio differ by a third from what production was seen to send."""
    alike: list[Fact] = []
    for row in view.evidence.bench:
        for name in ("prompt_tokens_mean", "output_tokens_mean", "prefix_cache_hit_ratio"):
            live = view.number(name)
            tested = statistic(row.values[name], "typical") if name in row.values else None
            if live is None or tested is None or not tested:
                continue
            fact = Fact(name=name, value=f"{live:g}", source="metrics", compared_to=f"{tested:g} in the benchmark")
            if not LIKE_TEST[0] <= live / tested <= LIKE_TEST[1]:
                return Outcome(holds=True, facts=(fact,))
            alike.append(fact)
    return Outcome(holds=False, facts=tuple(alike)) if alike else unknown("a benchmark's lengths beside production's")


def slower_than_before(view: View) -> Outcome:
    """A latency is at least twice what it was in the previous window or in the baseline."""
    compared = False
    for name, stat in (("ttft_s", "p99"), ("e2e_s", "p99"), ("itl_s", "p99"), ("ttft_s", "mean"), ("e2e_s", "mean")):
        move = view.change(name, stat)
        if move is None or not move.before:
            continue
        compared = True
        if move.after >= TWICE * move.before and move.after - move.before >= FELT_S:
            earlier = f"{units.show(move.before, 's')} {move.origin}"
            return Outcome(holds=True, facts=(fact_of(move.observation, stat, move.after, compared_to=earlier),))
    return Outcome(holds=False) if compared else unknown("a baseline")


def measured_across_an_upgrade(view: View) -> Outcome:
    """The same thing was measured with the old and with the new release, and it got worse by a fifth."""
    compared = False
    for observation in view.evidence.observations:
        if isinstance(observation.value, Change) and observation.name in BETTER_WHEN:
            found = pair(observation.value.before, observation.value.after, "typical")
            compared = compared or bool(found and all(found))
            if found and all(found) and _worse(observation.name, *found):
                return Outcome(holds=True, facts=(shown(observation, "typical", f"{found[0]:g} before"),))
    for name in BETTER_WHEN:
        rows = [
            v for row in view.evidence.bench if name in row.values and (v := statistic(row.values[name], "typical"))
        ]
        compared = compared or len(rows) == 2
        if len(rows) == 2 and (_worse(name, rows[0], rows[1]) or _worse(name, rows[1], rows[0])):
            fact = Fact(name=name, value=f"{rows[0]:g}", source="bench", compared_to=f"{rows[1]:g} in the other row")
            return Outcome(holds=True, facts=(fact,))
    return Outcome(holds=False) if compared else unknown("a value before and after the upgrade")


def _worse(name: str, before: float, after: float) -> bool:
    return after <= WORSE_RATE * before if BETTER_WHEN[name] == "high" else after >= WORSE_TIME * before


def a_symptom_is_ticked(view: View) -> Outcome:
    """A person sees something wrong."""
    ticked = sorted(view.evidence.symptoms.seen - {"none"})
    return Outcome(holds=bool(ticked), facts=tuple(Fact(name="seen", value=one, source="symptoms") for one in ticked))
