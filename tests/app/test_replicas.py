"""A sick replica is found beside healthy ones."""

from __future__ import annotations

from tests.rules import build

from llmedic.app import judging

CALM = {"requests_running": 1, "requests_waiting": 0, "kv_cache_usage_ratio": 0.02, "preemptions_per_min": 0}
FULL = {"requests_running": 9, "requests_waiting": 0, "kv_cache_usage_ratio": 0.97, "preemptions_per_min": 20}
SERVICE = {"requests_running": 5, "requests_waiting": 0, "kv_cache_usage_ratio": 0.5, "preemptions_per_min": 0.4}


def test_the_sick_one_is_named_with_its_cause() -> None:
    evidence = build.evidence({"observations": SERVICE, "instances": {"a:8000": CALM, "b:8000": FULL}})

    verdict = judging.judge(evidence, "en")

    assert verdict.causes[0].id == "kv-pool-exhausted-preemption"
    assert verdict.causes[0].evidence[0].value == "b:8000"
    assert verdict.health == "degraded"


def test_healthy_replicas_stay_healthy() -> None:
    evidence = build.evidence({"observations": CALM, "instances": {"a:8000": CALM, "b:8000": CALM}})

    assert judging.judge(evidence, "en").health == "healthy"


def test_one_server_is_no_fleet() -> None:
    evidence = build.evidence({"observations": CALM, "instances": {"a:8000#0": CALM, "a:8000#1": FULL}})

    assert judging.judge(evidence, "en").health == "healthy"
