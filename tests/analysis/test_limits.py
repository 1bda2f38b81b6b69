"""Which limit binds: the scheduler's candidates in order, each said with its numbers."""

from __future__ import annotations

import pytest
from tests.rules import build

from llmedic.analysis import limits

BUSY: build.Case = {"observations": {"requests_running": 20, "requests_waiting": 4, "output_tokens_count": 900}}

CASES: list[tuple[str, build.Case]] = [
    ("engine-core", {"observations": {"output_tokens_count": 0}}),
    ("kv-pool", {"observations": {"kv_cache_usage_ratio": 0.95}}),
    ("kv-pool", {"observations": {"preemptions_per_min": 0.6, "requests_waiting": 0}}),
    ("sequence-cap", {"flags": {"max_num_seqs": 20}}),
    ("sequence-cap", {"observations": {"requests_running": [[0, 20], [30, 20], [60, 20]]}}),
    ("token-budget", {"flags": {"max_num_batched_tokens": 2048}, "observations": {"batch_tokens_mean": 1850}}),
    ("prefill-compute", {"observations": {"prefill_tokens_per_s": 9000, "output_tokens_per_s": 900}}),
    ("prefill-compute", {"observations": {"prefill_tokens_per_s": 9000, "output_tokens_per_s": 0}}),
    ("decode", {"observations": {"requests_running": 64, "tpot_s": 0.05}}),
    ("decode", {"observations": {"requests_running": 64, "itl_s": 0.05}}),
    ("front-end", {"observations": {"frontend_cpu_cores": 0.95, "ttft_unexplained_ratio": 0.6}}),
    ("none", {"observations": {"requests_waiting": 0}}),
]


def limit(changes: build.Case) -> limits.Found:
    case = build.merged(BUSY, changes)
    assert isinstance(case, dict)
    return limits.of(build.view(case))


@pytest.mark.parametrize(("name", "changes"), CASES)
def test_a_limit_binds_and_says_its_numbers(name: str, changes: build.Case) -> None:
    found = limit(changes)

    assert found is not None
    assert found.limit == name
    assert found.facts
    assert found.facts[0].value in found.summary


@pytest.mark.parametrize(
    "changes",
    [
        {"observations": {"kv_cache_usage_ratio": 0.94, "preemptions_per_min": 0.5}},
        {"flags": {"max_num_seqs": 21}},
        {"flags": {"max_num_seqs": 256}, "observations": {"requests_running": [[0, 20], [30, 20], [60, 20]]}},
        {"flags": {"max_num_batched_tokens": 2048}, "observations": {"batch_tokens_mean": 1800}},
        {"observations": {"prefill_tokens_per_s": 8900, "output_tokens_per_s": 900}},
        {"observations": {"requests_running": 63, "tpot_s": 0.05}},
        {"observations": {"frontend_cpu_cores": 0.85, "ttft_unexplained_ratio": 0.9}},
        {"observations": {"batch_tokens_mean": 9000}},
    ],
)
def test_requests_wait_and_nothing_seen_explains_it(changes: build.Case) -> None:
    assert limit(changes) is None


def test_without_a_batch_nothing_is_said() -> None:
    assert limit({"observations": {"requests_running": None}}) is None


def test_a_full_pool_without_a_queue_binds_nothing() -> None:
    found = limit({"observations": {"kv_cache_usage_ratio": 0.99, "requests_waiting": 0}})

    assert found is not None
    assert found.limit == "none"


def test_a_stall_is_said_before_a_full_pool() -> None:
    found = limit({"observations": {"kv_cache_usage_ratio": 0.99, "output_tokens_count": 0}})

    assert found is not None
    assert found.limit == "engine-core"


def test_every_limit_has_a_name_in_both_languages_and_a_case() -> None:
    assert {name for name, _ in CASES} == set(limits.NAMES)
    assert all(english and chinese for english, chinese in limits.NAMES.values())
    chinese = limits.of(build.view({**BUSY, "flags": {"max_num_seqs": 20}}), "zh")
    assert chinese is not None
    assert chinese.summary.startswith(limits.NAMES["sequence-cap"][1])
