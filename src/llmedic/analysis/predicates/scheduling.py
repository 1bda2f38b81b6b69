"""What the scheduler is doing: stalled, pinned, uneven, recovered."""

from __future__ import annotations

from llmedic.analysis import bounds, trends
from llmedic.analysis.outcome import Outcome, unknown
from llmedic.analysis.predicates.shown import extremes, levels, shown
from llmedic.analysis.view import View, fact_of, statistic
from llmedic.model import units
from llmedic.model.finding import Fact
from llmedic.model.observation import Series

UNEVEN_WAITING = 3.0
"""Ranks are uneven when the busiest queues at least three times the calmest, and at least ...
"""
UNEVEN_WAITING_MIN = 4
"""... four requests more: a request or two is chance."""
MISSING_MIN, MISSING_SHARE = 3, 0.25
"""At least three requests, and a quarter of those that started, must be missing: one may be between two samples."""
SIGNS = (
    ("requests_waiting", "max", bounds.WAITING),
    ("kv_cache_usage_ratio", "max", bounds.NEARLY_FULL_POOL),
    ("preemptions_per_min", "typical", bounds.PREEMPTIONS_PER_MIN),
    ("ttft_s", "p99", bounds.TTFT_S),
    ("itl_s", "p99", bounds.ITL_S),
    ("http_error_ratio", "typical", bounds.FAILED_RATIO),
)
"""What hurts when no person has said so: the observation, its statistic, and from which value on."""
PUSHED_BACK_MIN = 2
"""Requests that moved from the batch to the queue: one may be between two samples."""
UNEVEN_KV = 0.30
"""Ranks are uneven when their KV usage differs by 30 points (the pool of one is full while another's is free)."""
UNEVEN_RUNNING, UNEVEN_RUNNING_MIN = 1.5, 4
"""Ranks are uneven when the busiest runs half as many again, and four more: answers of unequal length explain less."""
STEADY = 0.9
"""Share of the highest count below which a held count never falls: a finished request is replaced a step later."""
PINNED_SHARE = 2 / 3
"""Share of the samples at the highest count itself: a count that merely drifts meets its maximum once or twice."""
ROUND_NUMBERS = frozenset({32, 50, 64, 100, 128, 200, 250, 256, 300, 400, 500, 512, 1000, 1024})
"""What people and libraries write as a cap: powers of two and round decimals (aiohttp and httpx: 100 connections)."""


def engine_makes_no_progress(view: View) -> Outcome:
    """Requests are in the engine for the whole window, and neither a token nor a finished request comes out."""
    tokens, finished = view.observation("output_tokens_count"), view.observation("finished_count")
    held = [found for name in ("requests_running", "requests_waiting") if (found := view.observation(name))]
    if tokens is None or not held:
        return unknown("output_tokens_count", "requests_running")
    inside = sum(statistic(found.value, "min") or 0.0 for found in held)
    facts = [shown(found, "min") for found in held]
    facts.append(shown(tokens, "typical", "no token in the window"))
    moved = (statistic(tokens.value, "typical") or 0.0) + (
        (statistic(finished.value, "typical") or 0.0) if finished else 0.0
    )
    return Outcome(holds=inside >= 1 and moved == 0, facts=tuple(facts))


def requests_disappear(view: View) -> Outcome:
    """Requests got their first token and are neither finished nor still running: somebody hung up.

    vLLM counts no finish for a request that is aborted while it generates (seen on 0.32), so aborts show only as
    what is missing from first tokens = finished + still running.
    """
    started, finished = view.number("first_tokens_count"), view.number("finished_count")
    running = view.observation("requests_running")
    if started is None or finished is None or running is None:
        return unknown("first_tokens_count", "finished_count", "requests_running")
    first, last = statistic(running.value, "first") or 0.0, statistic(running.value, "last") or 0.0
    waiting = view.observation("requests_waiting")
    gone = started + first - finished - last
    if waiting is not None:  # preempted requests went back to the queue, they are not gone
        gone -= max(0.0, (statistic(waiting.value, "last") or 0.0) - (statistic(waiting.value, "first") or 0.0))
    fact = Fact(
        name="requests gone",
        value=f"{gone:g}",
        source=running.source,
        compared_to=f"{started:g} got a first token, {finished:g} finished, {last:g} still running",
    )
    return Outcome(holds=gone >= MISSING_MIN and gone >= MISSING_SHARE * started, facts=(fact,))


def running_goes_back_to_waiting(view: View) -> Outcome:
    """Running requests return to the queue without finishing: preemption, before its counter says so.

    vLLM counts a preemption when the victim next delivers a token; while it waits the counter stands still.
    """
    running, waiting = view.observation("requests_running"), view.observation("requests_waiting")
    finished = view.number("finished_count")
    if running is None or waiting is None or finished is None:
        return unknown("requests_running", "requests_waiting", "finished_count")
    fewer = (statistic(running.value, "first") or 0.0) - (statistic(running.value, "last") or 0.0)
    more = (statistic(waiting.value, "last") or 0.0) - (statistic(waiting.value, "first") or 0.0)
    started = view.number("first_tokens_count") or 0.0
    facts = shown(running, "last"), shown(waiting, "last")
    moved = fewer >= PUSHED_BACK_MIN and more >= PUSHED_BACK_MIN
    return Outcome(holds=moved and finished < fewer and started < more, facts=facts)


def something_hurts(view: View) -> Outcome:
    """A person sees something, or a latency, the queue or the pool shows it: other traffic alone is no incident."""
    if view.evidence.symptoms.seen - {"none"}:
        return Outcome(holds=True)
    signs = []
    for name, stat, bound in SIGNS:
        observation = view.observation(name)
        number = statistic(observation.value, stat) if observation else None
        if observation is not None and number is not None:
            signs.append((number >= bound, shown(observation, stat)))
    for name in ("ttft_s", "e2e_s", "itl_s", "tpot_s"):
        move = view.change(name)
        if move is not None and move.before:
            earlier = f"{units.show(move.before, 's')} {move.origin}"
            fact = fact_of(move.observation, "typical", move.after, earlier)
            signs.append((move.after >= bounds.SLOWER * move.before, fact))
    if not signs:
        return unknown("requests_waiting", "ttft_s")
    return Outcome(holds=any(bad for bad, _ in signs), facts=tuple(fact for bad, fact in signs if bad))


def ranks_are_uneven(view: View) -> Outcome:
    """Some replicas or data-parallel engines queue or fill their KV pool while others have room."""
    waiting, usage = view.instances("requests_waiting"), view.instances("kv_cache_usage_ratio")
    running = view.instances("requests_running")
    if max(len(waiting), len(usage), len(running)) < 2:
        return unknown("a second replica or data-parallel engine")
    facts = [*extremes(waiting), *extremes(usage), *extremes(running)]
    queue, kv, load = levels(waiting), levels(usage), levels(running)
    uneven_queue = bool(queue) and queue[-1] - queue[0] >= UNEVEN_WAITING_MIN and queue[-1] >= UNEVEN_WAITING * queue[0]
    uneven_kv = bool(kv) and kv[-1] - kv[0] >= UNEVEN_KV
    more_load = bool(load) and load[-1] - load[0] >= UNEVEN_RUNNING_MIN
    uneven_load = more_load and load[-1] >= UNEVEN_RUNNING * max(load[0], 1.0)
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
    pinned = min(values) >= STEADY * max(values) and values.count(max(values)) >= PINNED_SHARE * len(values)
    facts = shown(running, "max", f"at least {min(values):g} all the time"), shown(waiting, "min")
    return Outcome(holds=pinned and max(values) > 0 and queued >= 1, facts=facts)


def running_at_a_round_number(view: View) -> Outcome:
    """Never more than a round number of requests inside (64, 100, 128, 200 ...): the cap of a connection pool."""
    running = view.observation("requests_running")
    if running is None:
        return unknown("requests_running")
    highest = statistic(running.value, "max") or 0.0
    lowest = statistic(running.value, "min") or highest
    cap = view.setting("max_num_seqs")
    at_cap = cap is not None and highest >= cap
    rounded = highest in ROUND_NUMBERS
    return Outcome(holds=rounded and lowest >= STEADY * highest and not at_cap, facts=(shown(running, "max"),))


def burst_is_over(view: View) -> Outcome:
    """The queue rose and went away again by itself."""
    waiting = view.observation("requests_waiting")
    if waiting is None or not isinstance(waiting.value, Series):
        return unknown("requests_waiting over time")
    found = trends.of(waiting.value.points)
    calm = (statistic(waiting.value, "last") or 0.0) == 0.0
    return Outcome(holds="recovered" in found and calm, facts=(shown(waiting, "max", "0 at the end"),))
