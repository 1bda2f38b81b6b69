"""What nobody gave is said, with the option that gives it."""

from __future__ import annotations

from tests.rules import build

from llmedic.analysis import unseen


def whats(case: build.Case) -> list[str]:
    return [gap.what for gap in unseen.of(build.view(case))]


def test_nothing_given_is_five_gaps_with_a_way_to_fill_each() -> None:
    gaps = unseen.of(build.view({"symptoms": {"seen": ["ttft-high"]}}))

    assert [gap.what for gap in gaps] == ["log", "settings", "queue and KV pool", "hardware", "earlier traffic"]
    assert all(gap.why and gap.how for gap in gaps)


def test_what_was_given_is_no_gap() -> None:
    case: build.Case = {
        "log": "INFO ready",
        "launch": {"args": ["--max-num-seqs", "4"]},
        "engine": {"name": "vllm"},
        "observations": {"requests_waiting": 0, "host_cpu_util_ratio": 0.4, "ttft_s": {"before": 1, "after": 2}},
    }

    assert whats(case) == []


def test_a_baseline_is_something_to_compare_with() -> None:
    case: build.Case = {"observations": {"ttft_s": 1.0}, "baseline": {"ttft_s": 0.5}}

    assert "earlier traffic" not in whats(case)
