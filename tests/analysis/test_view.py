"""Looking evidence up: whom to believe, which period is meant, and what a default is worth."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules import build

from llmedic.analysis.view import SOURCES, View, pair, statistic
from llmedic.knowledge.conditions import STATISTICS, quantity
from llmedic.model.deployment import Deployment, Flag, ModelFacts
from llmedic.model.evidence import Evidence, LogEvent
from llmedic.model.observation import Change, Observation, Period, Quantiles, Series, Value

numbers = st.floats()
quantiles = st.builds(Quantiles, p50=st.none() | numbers, p99=st.none() | numbers, mean=st.none() | numbers)
singles = st.one_of(numbers, quantiles)
points = st.lists(st.tuples(st.floats(0, 1e9), numbers), min_size=1, max_size=8)
values: st.SearchStrategy[Value] = st.one_of(
    singles,
    st.builds(Change, before=singles, after=singles),
    points.map(lambda found: Series(points=tuple(found))),
)


def seen(number: float, source: str = "metrics", period: Period = "window", instance: str = "") -> Observation:
    return Observation(
        name="requests_running", value=number, unit="count", source=source, period=period, instance=instance
    )


def test_live_counters_are_believed_before_log_lines() -> None:
    for worse, better in zip(SOURCES[1:], SOURCES, strict=False):
        view = View(Evidence(observations=(seen(1, worse), seen(2, better))))

        assert view.number("requests_running") == 2
        assert len(view.all_of("requests_running")) == 2


def test_a_source_that_nobody_knows_comes_last() -> None:
    assert View(Evidence(observations=(seen(1, "hearsay"), seen(2, "log")))).number("requests_running") == 2


def test_periods_are_kept_apart() -> None:
    view = View(Evidence(observations=(seen(1, period="lifetime"), seen(2, period="baseline"))))

    assert view.number("requests_running") is None
    assert view.number("requests_running", period="lifetime") == 1
    assert view.read(quantity("baseline.requests_running.max", "test")) is not None
    assert view.read(quantity("previous.requests_running", "test")) is None


def test_a_replica_is_not_the_service() -> None:
    view = View(Evidence(observations=(seen(1, instance="a:8000"), seen(2, instance="b:8000#1"))))

    assert view.number("requests_running") is None
    assert set(view.instances("requests_running")) == {"a:8000", "b:8000#1"}


@pytest.mark.parametrize("origin", ["args", "process", "log", "case", "server-info"])
def test_a_default_counts_only_where_the_settings_are_stated(origin: str) -> None:
    stated = Evidence(deployment=Deployment(flags=(Flag(name="port", value=80, origin=origin),)))
    view = View(stated, {"max_num_seqs": 256}.get)

    assert (view.flag("max_num_seqs"), view.origin("max_num_seqs"), view.knows_flag("max_num_seqs")) == (
        256,
        "default",
        True,
    )


def test_what_the_metrics_tell_of_a_setting_says_nothing_of_the_others() -> None:
    told = Evidence(deployment=Deployment(flags=(Flag(name="block_size", value=16, origin="metrics"),)))
    view = View(told, {"max_num_seqs": 256}.get)

    assert (view.flag("block_size"), view.knows_flag("block_size")) == (16, True)
    assert (view.flag("max_num_seqs"), view.knows_flag("max_num_seqs")) == (None, False)


def test_the_first_word_on_a_flag_counts() -> None:
    flags = Flag(name="max_num_seqs", value=4, origin="process"), Flag(name="max_num_seqs", value=8, origin="log")

    assert View(Evidence(deployment=Deployment(flags=flags))).flag("max_num_seqs") == 4


def test_a_field_of_a_log_line_and_a_key_of_the_model_are_numbers_too() -> None:
    event = LogEvent(id="oom", level="fatal", text="", fields={"word": "x", "size_gib": 1.5})
    model = ModelFacts(name="m", config={"rope_scaling": {"factor": 4}, "flag": True, "huge": 10**400})
    view = View(Evidence(events=(event,), deployment=Deployment(model=model)))

    def number(name: str) -> float | None:
        found = view.read(quantity(name, "test"))
        return found.number if found else None

    assert number("log.oom.size_gib") == 1.5
    assert number("log.oom.word") is None
    assert number("log.other.size_gib") is None
    assert number("model.rope_scaling.factor") == 4
    assert number("model.rope_scaling.missing") is None
    assert number("model.flag") is None
    assert number("model.huge") is None
    assert number("hardware.memory_gib") is None
    assert view.fact("model.name") == "m"
    assert view.fact("engine") is None


SERIES = Series(points=((0, 4.0), (1, 8.0), (2, 6.0)))


@pytest.mark.parametrize(
    ("value", "name", "expected"),
    [
        (3.0, "p99", 3.0), (3.0, "typical", 3.0), (3.0, "spread", None),
        (SERIES, "typical", 6.0), (SERIES, "min", 4.0), (SERIES, "max", 8.0), (SERIES, "first", 4.0),
        (SERIES, "last", 6.0), (SERIES, "spread", 4.0), (SERIES, "p50", 6.0), (SERIES, "p99", 8.0),
        (Quantiles(p50=1.0, p99=9.0), "typical", 1.0), (Quantiles(p50=1.0, mean=2.0), "typical", 2.0),
        (Quantiles(p50=1.0, p99=9.0), "max", 9.0), (Quantiles(p50=1.0, p99=9.0), "min", None),
        (Quantiles(p50=1.0), "p99", None), (Quantiles(p50=1.0), "first", None),
        (Change(before=1.0, after=Quantiles(p99=5.0)), "p99", 5.0),
        (inf, "typical", None), (nan, "max", None), (Quantiles(p99=inf), "p99", None),
        (Series(points=((0, nan), (1, 2.0))), "typical", 2.0), (Series(points=((0, nan),)), "max", None),
    ],
)  # fmt: skip
def test_a_statistic(value: Value, name: str, expected: float | None) -> None:
    assert statistic(value, name) == expected


@given(values, st.sampled_from(STATISTICS))
def test_a_statistic_is_a_finite_number_or_none(value: Value, name: str) -> None:
    found = statistic(value, name)

    assert found is None or abs(found) < inf or isinstance(value, Series)


def test_a_path_of_kubernetes_matches_whole_keys() -> None:
    view = build.view(
        {"kubernetes": [{"kind": "Pod", "spec": {"readinessProbe": None, "prereason": "x", "reason": 1}}]}
    )

    assert [leaf.path for leaf in view.kubernetes("reason")] == ["spec.reason"]
    assert [leaf.path for leaf in view.kubernetes("spec.readinessProbe")] == ["spec.readinessProbe"]


def test_no_log_is_not_an_empty_log() -> None:
    assert not View(Evidence()).has_log
    assert View(replace(Evidence(), log_lines=1)).has_log


@pytest.mark.parametrize(
    ("before", "after", "name", "expected"),
    [
        (1.0, 2.0, "typical", (1.0, 2.0)),
        (Quantiles(p50=1.0, p99=3.0), Quantiles(p99=9.0), "typical", (3.0, 9.0)),
        (Quantiles(p50=1.0), Quantiles(p99=9.0), "typical", None),
        (Quantiles(p50=1.0, mean=2.0), Quantiles(p50=3.0, mean=4.0), "typical", (2.0, 4.0)),
        (Quantiles(p99=1.0), Quantiles(p99=9.0), "p99", (1.0, 9.0)),
        (Quantiles(p99=1.0), Quantiles(p99=inf), "p99", None),
        (Quantiles(mean=1.0), 4.0, "typical", (1.0, 4.0)),
        (SERIES, 12.0, "max", (8.0, 12.0)),
    ],
)
def test_a_median_is_never_held_against_a_p99(
    before: Value, after: Value, name: str, expected: tuple[float, float] | None
) -> None:
    assert pair(before, after, name) == expected


def test_a_value_moved_from_its_own_before_else_the_previous_window_else_the_baseline() -> None:
    def origin(observations: object, **periods: object) -> str | None:
        move = build.view({"observations": observations, **periods}).change("ttft_s", "p99")
        return move.origin if move else None

    now: dict[str, object] = {"ttft_s": {"p99": 3.8}}
    both = {"previous": {"ttft_s": {"p99": 1.2}}, "baseline": {"ttft_s": {"p99": 1.0}}}

    assert origin({"ttft_s": {"before": {"p99": 1.2}, "after": {"p99": 3.8}}}, **both) == "before"
    assert origin(now, **both) == "previous"
    assert origin(now, previous={"ttft_s": {"p50": 1.2}}, baseline={"ttft_s": {"p99": 1.0}}) == "baseline"
    assert origin(now, lifetime={"ttft_s": {"p99": 1.0}}) is None
    assert origin({}, **both) is None
