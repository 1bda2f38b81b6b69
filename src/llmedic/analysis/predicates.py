"""Conditions that need more than a threshold: named, typed, each with the reason for its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from llmedic.analysis import trends
from llmedic.analysis.outcome import FALSE, Outcome, false, true, unknown
from llmedic.analysis.view import View, fact_of, statistic
from llmedic.model import units
from llmedic.model.finding import Fact
from llmedic.model.observation import Observation, Series

UNEVEN_WAITING = 3.0
"""Ranks are uneven when the busiest queues at least three times the calmest, and at least ...
"""
UNEVEN_WAITING_MIN = 4
"""... four requests more: a request or two is chance."""
UNEVEN_KV = 0.30
"""Ranks are uneven when their KV usage differs by 30 points (the pool of one is full while another's is free)."""
POOL_DEMAND = 1.0
"""Demand above the pool: concurrency x context needs more tokens than there are."""


def engine_makes_no_progress(view: View) -> Outcome:
    """Requests are in the engine for the whole window, and neither a token nor a finished request comes out."""
    tokens, finished = view.observation("output_tokens_count"), view.observation("finished_count")
    held = [found for name in ("requests_running", "requests_waiting") if (found := view.observation(name))]
    if tokens is None or not held:
        return unknown("output_tokens_count", "requests_running")
    inside = sum(statistic(found.value, "min") or 0.0 for found in held)
    facts = [_shown(found, "min") for found in held]
    facts.append(_shown(tokens, "typical", "no token in the window"))
    moved = (statistic(tokens.value, "typical") or 0.0) + (
        (statistic(finished.value, "typical") or 0.0) if finished else 0.0
    )
    return Outcome(holds=inside >= 1 and moved == 0, facts=tuple(facts))


def ranks_are_uneven(view: View) -> Outcome:
    """Some replicas or data-parallel engines queue or fill their KV pool while others have room."""
    waiting, usage = view.instances("requests_waiting"), view.instances("kv_cache_usage_ratio")
    running = view.instances("requests_running")
    if max(len(waiting), len(usage), len(running)) < 2:
        return unknown("a second replica or data-parallel engine")
    facts = [*_extremes(waiting), *_extremes(usage), *_extremes(running)]
    queue, kv, load = _levels(waiting), _levels(usage), _levels(running)
    uneven_queue = bool(queue) and queue[-1] - queue[0] >= UNEVEN_WAITING_MIN and queue[-1] >= UNEVEN_WAITING * queue[0]
    uneven_kv = bool(kv) and kv[-1] - kv[0] >= UNEVEN_KV
    uneven_load = bool(load) and load[-1] - load[0] >= UNEVEN_WAITING_MIN and load[-1] >= 1.5 * max(load[0], 1.0)
    some_queue = bool(queue) and queue[-1] >= 1
    return Outcome(holds=uneven_queue or ((uneven_kv or uneven_load) and some_queue), facts=tuple(facts))


def running_is_pinned(view: View) -> Outcome:
    """The running count does not move although requests wait: a cap holds it."""
    running, waiting = view.observation("requests_running"), view.observation("requests_waiting")
    if running is None or waiting is None:
        return unknown("requests_running", "requests_waiting")
    if not isinstance(running.value, Series) or len(running.value.points) < 3:
        return unknown("requests_running over time")
    values = [number for _, number in running.value.points]
    queued = statistic(waiting.value, "min") or 0.0
    pinned = min(values) >= 0.9 * max(values) and values.count(max(values)) * 3 >= len(values) * 2
    facts = _shown(running, "max", f"at least {min(values):g} all the time"), _shown(waiting, "min")
    return Outcome(holds=pinned and max(values) > 0 and queued >= 1, facts=facts)


def running_at_a_round_number(view: View) -> Outcome:
    """Never more than a round number of requests inside (64, 100, 128, 200 ...): the cap of a connection pool."""
    running = view.observation("requests_running")
    if running is None:
        return unknown("requests_running")
    highest = statistic(running.value, "max") or 0.0
    lowest = statistic(running.value, "min") or highest
    cap = view.flag("max_num_seqs")
    at_cap = isinstance(cap, int | float) and highest >= cap
    rounded = highest in (32, 50, 64, 100, 128, 200, 250, 256, 300, 400, 500, 512, 1000, 1024)
    return Outcome(holds=rounded and lowest >= 0.9 * highest and not at_cap, facts=(_shown(running, "max"),))


def pool_demand_exceeds_pool(view: View) -> Outcome:
    """Concurrency x (prompt + answer) needs more KV tokens than the pool has."""
    pool = view.number("kv_cache_tokens")
    prompt, answer = view.number("prompt_tokens_mean"), view.number("output_tokens_mean")
    together = view.number("client_concurrency") or view.number("requests_running", "max")
    if pool is None or prompt is None or answer is None or together is None:
        return unknown("kv_cache_tokens", "prompt_tokens_mean", "output_tokens_mean", "client_concurrency")
    cap = view.flag("max_num_seqs")
    if isinstance(cap, int | float):
        together = min(together, float(cap))
    demand = together * (prompt + answer)
    fact = Fact(
        name="KV demand",
        value=f"{together:g} requests x {units.show(prompt + answer, 'tokens')} = {units.show(demand, 'tokens')}",
        source="ledger",
        compared_to=f"pool of {units.show(pool, 'tokens')}",
    )
    return Outcome(holds=demand > POOL_DEMAND * pool, facts=(fact,))


def one_request_exceeds_pool(view: View) -> Outcome:
    """Prompt plus answer of one request is more than the pool can give."""
    pool = view.number("servable_tokens") or view.number("kv_cache_tokens")
    prompt = view.number("prompt_tokens_max", "max") or view.number("prompt_tokens_mean")
    answer = view.number("output_tokens_max", "max") or view.number("output_tokens_mean") or 0.0
    if pool is None or prompt is None:
        return unknown("kv_cache_tokens", "prompt_tokens_max")
    fact = Fact(name="one request", value=units.show(prompt + answer, "tokens"), source="ledger",
                compared_to=f"pool of {units.show(pool, 'tokens')}")  # fmt: skip
    return Outcome(holds=prompt + answer > pool, facts=(fact,))


def tensor_parallel_does_not_divide(view: View) -> Outcome:
    """Heads, or the quantisation groups of the intermediate size, cannot be split evenly over the TP degree."""
    degree = view.flag("tensor_parallel_size")
    heads, wide = view.fact("model.num_attention_heads"), view.fact("model.intermediate_size")
    group = view.fact("model.quantization_config.group_size")
    if not isinstance(degree, int | float) or degree < 2:
        return unknown("flag.tensor_parallel_size") if degree is None else FALSE
    checks: list[tuple[str, float]] = []
    if isinstance(heads, int | float):
        checks.append(("attention heads per shard", heads / degree))
    if isinstance(wide, int | float) and isinstance(group, int | float) and group > 0:
        checks.append(("quantisation groups per shard", wide / group / degree))
    if not checks:
        return unknown("model.num_attention_heads", "model.intermediate_size")
    facts = tuple(Fact(name=name, value=f"{number:g}", source="ledger", compared_to="a whole number")
                  for name, number in checks if number != int(number))  # fmt: skip
    return true(*facts) if facts else FALSE


def served_length_beyond_positions(view: View) -> Outcome:
    """The announced maximum length is larger than the model's real range of positions."""
    positions, factor = view.fact("model.max_position_embeddings"), view.fact("model.rope_scaling.factor")
    original = view.fact("model.rope_scaling.original_max_position_embeddings")
    served = view.flag("max_model_len")
    if not isinstance(positions, int | float) or not isinstance(served, int | float):
        return unknown("model.max_position_embeddings", "flag.max_model_len")
    scaled = isinstance(original, int | float) and isinstance(factor, int | float)
    reach = max(positions, original * factor) if scaled else positions
    fact = Fact(name="max_model_len", value=units.show(served, "tokens"), source="ledger",
                compared_to=f"{units.show(reach, 'tokens')} of positions")  # fmt: skip
    return Outcome(holds=served > reach, facts=(fact,))


def more_threads_than_quota(view: View) -> Outcome:
    """Threads (or the host's cores they are sized from) outnumber the CPU quota."""
    quota = view.number("cpu_quota_cores")
    threads = view.number("threads_count") or view.fact("hardware.host_cpus")
    if quota is None or not isinstance(threads, int | float):
        return unknown("cpu_quota_cores", "threads_count")
    fact = Fact(name="threads or host cores", value=f"{threads:g}", source="ledger", compared_to=f"{quota:g} cores of quota")
    return Outcome(holds=threads > 1.5 * quota, facts=(fact,))


def speed_falls_with_depth(view: View) -> Outcome:
    """Between two measured rows the context grows and one stream's decode speed falls by more than a third."""
    rows = _rows(view, "prompt_tokens_mean", "decode_tokens_per_s")
    if len(rows) < 2:
        return unknown("decode_tokens_per_s at two context lengths")
    rows.sort()
    (short, fast), (long, slow) = rows[0], rows[-1]
    fact = Fact(name="decode speed", value=f"{fast:g} tokens/s at {short:,.0f} tokens", source="bench",
                compared_to=f"{slow:g} tokens/s at {long:,.0f} tokens")  # fmt: skip
    return Outcome(holds=long >= 2 * short and slow < 0.67 * fast, facts=(fact,))


def throughput_flat_with_load(view: View) -> Outcome:
    """Completions stay the same while more is offered: the service rate is reached."""
    rows = _rows(view, "request_rate_per_s", "completed_requests_per_s")
    offered, done = view.number("request_rate_per_s"), view.number("completed_requests_per_s")
    if offered is not None and done is not None:
        rows.append((offered, done))
    if not rows:
        return unknown("request_rate_per_s", "completed_requests_per_s")
    rows.sort()
    rate, served = rows[-1]
    fact = Fact(name="completed_requests_per_s", value=f"{served:g}", source="bench", compared_to=f"{rate:g} offered")
    return Outcome(holds=rate > 1.2 * served, facts=(fact,))


def throughput_falls_with_workers(view: View) -> Outcome:
    """The row with the most workers or threads is slower than an earlier one."""
    done = [row for _, row in _rows(view, "completed_requests_per_s", "completed_requests_per_s")]
    if len(done) < 3:
        return unknown("completed_requests_per_s in three rows")
    return Outcome(holds=done[-1] < 0.6 * max(done))


def first_request_is_slow(view: View) -> Outcome:
    """The first measured row takes at least ten times as long to its first token as the next."""
    times = [row for _, row in _rows(view, "ttft_s", "ttft_s")]
    if len(times) < 2:
        return unknown("ttft_s of the first and of later requests")
    fact = Fact(name="ttft_s", value=units.show(times[0], "s"), source="bench",
                compared_to=f"{units.show(times[-1], 's')} later")  # fmt: skip
    return Outcome(holds=times[0] >= 10 * times[-1], facts=(fact,))


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
    return Outcome(holds=min(ratios) <= 0.1 and max(ratios) >= 0.5, facts=(fact,))


def cached_tokens_vanish(view: View) -> Outcome:
    """Between comparable turns the cached tokens drop to zero and the first token takes much longer."""
    rows = _rows(view, "cached_tokens_count", "ttft_s")
    if len(rows) < 2:
        return unknown("cached_tokens_count of two turns")
    rows.sort()
    (fewest, slow), (most, fast) = rows[0], rows[-1]
    fact = Fact(name="cached_tokens_count", value=f"{fewest:g}", source="bench", compared_to=f"{most:g} in the usual turn")
    return Outcome(holds=fewest == 0 and most > 0 and slow > 2 * fast, facts=(fact,))


def memory_grows_steadily(view: View) -> Outcome:
    """Resident or device memory rises over the whole series, outside the KV pool's fixed reservation."""
    for name in ("process_rss_gib", "gpu_mem_used_gib"):
        found = view.observation(name)
        if found and isinstance(found.value, Series) and len(found.value.points) >= 2:
            values = [number for _, number in found.value.points]
            span_s = found.value.points[-1][0] - found.value.points[0][0]
            steady = all(b >= a - 0.01 * abs(a) for a, b in zip(values, values[1:], strict=False))
            grows = values[-1] >= 1.05 * values[0] and span_s >= 600
            return Outcome(holds=steady and grows, facts=(_shown(found, "last", f"{values[0]:g} GiB at first"),))
    return unknown("process_rss_gib over hours")


def burst_is_over(view: View) -> Outcome:
    """The queue rose and went away again by itself."""
    waiting = view.observation("requests_waiting")
    if waiting is None or not isinstance(waiting.value, Series):
        return unknown("requests_waiting over time")
    found = trends.of(waiting.value.points)
    calm = (statistic(waiting.value, "last") or 0.0) == 0.0
    return Outcome(holds="recovered" in found and calm, facts=(_shown(waiting, "max", "0 at the end"),))


def _rows(view: View, first: str, second: str) -> list[tuple[float, float]]:
    """The pairs of two values in every measured row that has both."""
    found = []
    for row in view.evidence.bench:
        if first in row.values and second in row.values:
            pair = statistic(row.values[first], "typical"), statistic(row.values[second], "typical")
            if pair[0] is not None and pair[1] is not None:
                found.append((pair[0], pair[1]))
    return found


def _shown(observation: Observation, stat: str, compared_to: str = "") -> Fact:
    number = statistic(observation.value, stat)
    if number is None:
        return fact_of(observation, stat, float("nan"), compared_to)
    return fact_of(observation, stat, number, compared_to)


def _levels(found: Mapping[str, Observation]) -> list[float]:
    return sorted(statistic(one.value, "mean") or 0.0 for one in found.values()) if len(found) >= 2 else []


def _extremes(found: Mapping[str, Observation]) -> list[Fact]:
    if len(found) < 2:
        return []
    ranked = sorted(found.items(), key=lambda item: statistic(item[1].value, "mean") or 0.0)
    facts = []
    for instance, one in (ranked[0], ranked[-1]):
        fact = _shown(one, "mean")
        facts.append(replace(fact, name=f"{fact.name} [{instance}]"))
    return facts


PREDICATES: Mapping[str, Callable[[View], Outcome]] = {
    predicate.__name__: predicate
    for predicate in (
        burst_is_over,
        cached_tokens_vanish,
        engine_makes_no_progress,
        first_request_is_slow,
        memory_grows_steadily,
        more_threads_than_quota,
        one_replica_has_no_hits,
        one_request_exceeds_pool,
        pool_demand_exceeds_pool,
        ranks_are_uneven,
        running_at_a_round_number,
        running_is_pinned,
        served_length_beyond_positions,
        speed_falls_with_depth,
        tensor_parallel_does_not_divide,
        throughput_falls_with_workers,
        throughput_flat_with_load,
    )
}
