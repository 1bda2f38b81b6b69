"""Whole verdicts: the incidents that the tool was made for, and the traps that a judge must not fall into."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules import build

from llmedic.analysis import judge
from llmedic.analysis.view import View
from llmedic.knowledge import causes, logs, profiles, rules, symptoms, vocabulary
from llmedic.model.evidence import Evidence, Gap
from llmedic.model.observation import Change, Observation, Period, Quantiles, Series
from llmedic.model.verdict import SURE, Verdict

KNOWLEDGE = judge.Knowledge(
    rules=rules.rules(),
    pattern=logs.pattern,
    profiles=profiles.profiles(),
    cause=causes.cause,
    downstream=causes.downstream,
)

SURGE: build.Case = {
    "engine": {"name": "vLLM", "version": "0.11.0"},
    "observations": {
        "ttft_s": {"p50": 0.6, "p99": 3.8},
        "request_rate_per_s": 40,
        "long_context_share_ratio": 0.38,
        "prefix_cache_hit_ratio": 0.62,
        "kv_evictions_per_min": 142,
        "preemptions_per_min": 9,
        "kv_cache_usage_ratio": 0.98,
        "requests_running": 60,
        "requests_waiting": 22,
        "output_tokens_count": 40000,
    },
    "previous": {
        "ttft_s": {"p50": 0.4, "p99": 1.2},
        "request_rate_per_s": 39,
        "long_context_share_ratio": 0.05,
        "prefix_cache_hit_ratio": 0.91,
        "kv_evictions_per_min": 20,
        "preemptions_per_min": 0,
        "kv_cache_usage_ratio": 0.6,
    },
}
CALM: build.Case = {
    "observations": {
        "requests_running": 12,
        "requests_waiting": 0,
        "kv_cache_usage_ratio": 0.41,
        "preemptions_per_min": 0,
        "aborted_ratio": 0.0,
        "error_finish_ratio": 0.0,
        "output_tokens_count": 9000,
        "finished_count": 40,
        "ttft_s": {"p50": 0.3, "p90": 0.5, "p99": 0.6},
        "itl_s": {"p50": 0.02, "p90": 0.03, "p99": 0.04},
        "api_health_status": 200,
    },
}
START_FAILED = (
    "ValueError: Free memory on device cuda:0 (30.00/80.00 GiB) on startup is less than desired GPU memory "
    "utilization (0.9, 72.0 GiB)."
)


def judged(case: build.Case, **changes: object) -> Verdict:
    merged = build.merged(case, changes)
    assert isinstance(merged, dict)
    return judge.judge(build.view(merged), KNOWLEDGE)


def sure(verdict: Verdict) -> list[str]:
    return [cause.id for cause in verdict.causes if cause.confidence >= SURE and cause.id != "cannot-tell"]


def test_a_surge_of_long_contexts_that_thrashes_the_cache_is_named_and_its_consequences_are_beneath() -> None:
    verdict = judged(SURGE)

    assert verdict.health == "degraded"
    top = verdict.causes[0]
    assert (top.id, top.layer) == ("long-context-surge-cache-thrash", "load")
    assert top.confidence >= 0.8
    assert "kv-pool-exhausted-preemption" in top.symptoms
    assert not {"kv-pool-exhausted-preemption", "overload-deep-queue"} & {cause.id for cause in verdict.causes}
    status = {layer.layer: layer.status for layer in verdict.layers}
    assert (status["load"], status["capacity"]) == ("cause", "symptom")
    assert verdict.binding is not None
    assert verdict.binding.limit == "kv-pool"
    assert {fact.name for fact in top.evidence} >= {"long_context_share_ratio", "kv_evictions_per_min"}
    assert top.change is not None


def test_its_numbers_alone_are_enough_without_the_preemptions() -> None:
    quiet = dict.fromkeys(("preemptions_per_min", "requests_waiting", "kv_cache_usage_ratio"))

    assert judged(SURGE, observations=quiet).causes[0].id == "long-context-surge-cache-thrash"


def test_a_calm_window_is_healthy_and_stands_alone() -> None:
    verdict = judged(CALM)

    assert (verdict.health, [cause.id for cause in verdict.causes]) == ("healthy", ["healthy"])
    assert verdict.causes[0].confidence >= 0.9
    assert verdict.causes[0].severity == "info"
    assert verdict.binding is not None
    assert verdict.binding.limit == "none"


def test_preemptions_of_an_incident_long_over_raise_no_alarm() -> None:
    old = {
        "preemptions_total": 48_000,
        "preemptions_per_min": 3.0,
        "ttft_s": {"p99": 40.0},
        "kv_cache_usage_ratio": 1.0,
    }

    verdict = judged(CALM, lifetime=old)

    assert verdict.health == "healthy"


def test_a_stored_baseline_of_a_bad_day_raises_no_alarm() -> None:
    assert judged(CALM, baseline={"ttft_s": {"p99": 9.0}, "preemptions_per_min": 30}).health == "healthy"


def test_nothing_seen_is_unknown_and_names_nothing() -> None:
    verdict = judge.judge(View(Evidence()), KNOWLEDGE)

    assert (verdict.health, verdict.causes, verdict.binding) == ("unknown", (), None)
    assert {layer.status for layer in verdict.layers} == {"not-evaluated"}
    assert "kv-pool-exhausted-preemption" in verdict.cannot_tell
    assert "healthy" not in verdict.cannot_tell


@pytest.mark.parametrize("period", ["baseline", "previous"])
def test_latency_far_above_its_usual_is_not_healthy_though_all_else_is_green(period: str) -> None:
    verdict = judged(CALM, **{period: {"ttft_s": {"p50": 0.1, "p90": 0.17, "p99": 0.2}}})

    assert verdict.health == "degraded"
    assert "healthy" not in sure(verdict)


def test_latency_a_little_above_its_usual_is_healthy() -> None:
    assert judged(CALM, baseline={"ttft_s": {"p99": 0.4}}).health == "healthy"


def test_a_dead_engine_behind_a_green_health_check_is_down() -> None:
    verdict = judged(CALM, observations={"output_tokens_count": 0, "finished_count": 0, "requests_waiting": 6})

    assert verdict.health == "down"
    assert verdict.causes[0].id == "engine-core-stalled"
    assert verdict.restart_warning
    assert [one.about for one in verdict.disagreements] == ["health"]
    assert verdict.binding is not None
    assert verdict.binding.limit == "engine-core"


def test_a_start_that_failed_is_down_and_names_who_holds_the_card() -> None:
    verdict = judged({"log": START_FAILED, "symptoms": {"seen": ["start-fails"], "when": ["at-start"]}})

    assert verdict.health == "down"
    assert verdict.causes[0].id == "gpu-held-by-other-process"
    assert verdict.causes[0].change is not None


def test_symptoms_that_fit_many_causes_are_a_hedge() -> None:
    verdict = judged({"symptoms": {"seen": ["tokens-slow"]}})

    assert sure(verdict) == []
    assert verdict.health == "unknown"


def test_gaps_are_told_once() -> None:
    gap = Gap(what="logs", why="not given", how="--log FILE")
    found = replace(build.evidence(CALM), gaps=(gap, gap))

    assert judge.judge(View(found), KNOWLEDGE).gaps.count(gap) == 1


def test_the_engine_and_its_replicas_are_named() -> None:
    replicas = {name: {"requests_running": 4, "requests_waiting": 0} for name in ("a:8000", "b:8000#0", "b:8000#1")}

    assert judged(SURGE).engine == "vllm 0.11.0"
    assert judged(SURGE, instances=replicas).engine == "vllm 0.11.0, 2 replicas"
    assert judged({"observations": {"ttft_s": 1}}).engine == "engine unknown"


def test_both_languages_say_the_same() -> None:
    english = judge.judge(build.view(SURGE), KNOWLEDGE, "en")
    chinese = judge.judge(build.view(SURGE), KNOWLEDGE, "zh")

    assert [(one.id, one.confidence, one.symptoms) for one in english.causes] == [
        (one.id, one.confidence, one.symptoms) for one in chinese.causes
    ]
    assert english.causes[0].title != chinese.causes[0].title
    assert judge.judge(build.view(CALM), KNOWLEDGE, "zh").causes[0].title == "运行正常"


def test_the_order_of_the_evidence_decides_nothing() -> None:
    found = build.evidence(SURGE)
    backwards = replace(found, observations=tuple(reversed(found.observations)))

    assert [one.id for one in judge.judge(View(found), KNOWLEDGE).causes] == [
        one.id for one in judge.judge(View(backwards), KNOWLEDGE).causes
    ]


numbers = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 5.0, 100.0, float("nan"), float("inf")]), st.floats())
quantiles = st.builds(Quantiles, p50=st.none() | numbers, p99=st.none() | numbers, mean=st.none() | numbers)
points = st.lists(st.tuples(st.floats(0, 1e6), numbers), min_size=1, max_size=4)
values = st.one_of(
    numbers,
    quantiles,
    st.builds(Change, before=numbers | quantiles, after=numbers | quantiles),
    points.map(lambda found: Series(points=tuple(found))),
)
periods: st.SearchStrategy[Period] = st.sampled_from(["window", "window", "previous", "lifetime", "baseline"])
observations = st.builds(
    lambda name, value, period, instance: Observation(
        name=name, value=value, unit=vocabulary.unit(name), source="metrics", period=period, instance=instance
    ),
    st.sampled_from(vocabulary.names()),
    values,
    periods,
    st.sampled_from(["", "", "", "a:8000", "b:8000"]),
)


@given(
    st.lists(observations, max_size=25),
    st.frozensets(st.sampled_from(symptoms.ids("symptom")), max_size=3),
    st.frozensets(st.sampled_from(symptoms.ids("condition")), max_size=3),
)
def test_any_evidence_gives_a_verdict(seen: list[Observation], ticked: frozenset[str], when: frozenset[str]) -> None:
    base = Evidence(observations=tuple(seen))
    verdict = judge.judge(View(replace(base, symptoms=replace(base.symptoms, seen=ticked, when=when))), KNOWLEDGE)

    assert all(0 <= cause.confidence <= 1 for cause in verdict.causes)
    assert len({cause.id for cause in verdict.causes}) == len(verdict.causes)
    assert (verdict.health == "healthy") == ([cause.id for cause in verdict.causes] == ["healthy"])


def test_a_silent_replica_is_not_healthy_however_calm_the_others_are() -> None:
    calm = judged({"observations": {"requests_running": 4, "requests_waiting": 0, "silent_replicas_count": 1}})

    assert calm.health == "degraded"
    assert "healthy" not in [cause.id for cause in calm.causes]
