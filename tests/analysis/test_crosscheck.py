"""Witnesses that contradict each other are shown; those that agree, or say nothing, are not."""

from __future__ import annotations

import pytest
from tests.rules import build

from llmedic.analysis import crosscheck
from llmedic.analysis.view import View
from llmedic.model.deployment import Deployment, Flag, FlagValue
from llmedic.model.evidence import Evidence
from llmedic.model.observation import Observation
from llmedic.model.verdict import Disagreement

STALLED: build.Case = {
    "observations": {"api_health_status": 200, "requests_running": 3, "output_tokens_count": 0, "finished_count": 0}
}


def said(source: str, tokens: float) -> Observation:
    return Observation(name="kv_cache_tokens", value=tokens, unit="tokens", source=source)


def flags(*values: FlagValue) -> tuple[Disagreement, ...]:
    origins = ("args", "process", "log")
    found = tuple(Flag(name="dtype", value=value, origin=origins[i]) for i, value in enumerate(values))
    return crosscheck.of(View(Evidence(deployment=Deployment(flags=found))))


def test_two_sizes_of_one_pool() -> None:
    (found,) = crosscheck.of(View(Evidence(observations=(said("metrics", 100_000), said("log", 120_000)))))

    assert (found.about, found.first.source, found.second.source) == ("kv_cache_tokens", "metrics", "log")
    assert (found.first.value, found.second.value) == ("100,000 tokens", "120,000 tokens")


def test_rounding_is_no_contradiction() -> None:
    assert crosscheck.of(View(Evidence(observations=(said("metrics", 100_000), said("log", 101_900))))) == ()


@pytest.mark.parametrize("values", [("half", "bfloat16"), (True, False), (None, "half"), (0.9, 0.92), (4, "auto4")])
def test_what_was_typed_is_not_what_runs(values: tuple[FlagValue, ...]) -> None:
    (found,) = flags(*values)

    assert (found.about, found.first.source, found.second.source) == ("dtype", "args", "process")


@pytest.mark.parametrize("values", [("half", "HALF"), (0.9, 0.9000001), (4, 4.0), (True, True), (None, None)])
def test_the_same_in_other_words_is_no_contradiction(values: tuple[FlagValue, ...]) -> None:
    assert flags(*values) == ()


@pytest.mark.parametrize("value", ["bfloat16", True, 4])
def test_what_was_left_to_the_engine_is_no_contradiction(value: FlagValue) -> None:
    assert flags("auto", value) == ()
    assert flags(value, "auto") == ()


def test_the_third_witness_is_heard_too() -> None:
    (found,) = flags("half", "half", "bfloat16")

    assert found.second.source == "log"


@pytest.mark.parametrize(("blocks", "contradicts"), [(6250, False), (6150, False), (3125, True), (12500, True)])
def test_blocks_times_their_size_is_the_pool(blocks: float, contradicts: bool) -> None:
    case: build.Case = {
        "observations": {"kv_blocks_count": blocks, "kv_cache_tokens": 100_000},
        "flags": {"block_size": 16},
    }
    found = crosscheck.of(build.view(case))

    assert bool(found) == contradicts
    assert all(one.first.source == "ledger" for one in found)


@pytest.mark.parametrize(
    "case",
    [
        {"observations": {"kv_blocks_count": 6250}, "flags": {"block_size": 16}},
        {"observations": {"kv_blocks_count": 6250, "kv_cache_tokens": 5}},
        {"observations": {"kv_blocks_count": 0, "kv_cache_tokens": 5}, "flags": {"block_size": 16}},
        {"observations": {"kv_blocks_count": 6250, "kv_cache_tokens": 0}, "flags": {"block_size": 16}},
        {"observations": {"kv_blocks_count": 6250, "kv_cache_tokens": 5}, "flags": {"block_size": "auto"}},
    ],
)
def test_without_all_three_numbers_nothing_is_computed(case: build.Case) -> None:
    assert crosscheck.of(build.view(case)) == ()


def test_a_green_health_check_over_a_dead_engine() -> None:
    (found,) = crosscheck.of(build.view(STALLED))

    assert (found.about, found.first.value) == ("health", "200")
    assert found.second.compared_to == "no token in the window"


@pytest.mark.parametrize(
    "changes", [{"api_health_status": 503}, {"output_tokens_count": 9}, {"api_health_status": None}]
)
def test_health_that_fits_is_no_contradiction(changes: build.Case) -> None:
    case = build.merged(STALLED, {"observations": changes})
    assert isinstance(case, dict)

    assert crosscheck.of(build.view(case)) == ()


def test_a_meaning_is_told_in_both_languages() -> None:
    (english,), (chinese,) = crosscheck.of(build.view(STALLED)), crosscheck.of(build.view(STALLED), "zh")

    assert english.meaning in crosscheck.MEANINGS["health"]
    assert chinese.meaning in crosscheck.MEANINGS["health"]
    assert english.meaning != chinese.meaning
