"""Three-valued logic: what holds, what does not, and what cannot be told are never mixed up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules import build

from llmedic.analysis.evaluate import evaluate
from llmedic.knowledge import conditions as c

VIEW = build.view({"observations": {"requests_running": 2, "requests_waiting": 0}})
TRUE = c.parse({"value": "requests_running", "above": 1}, "test")
FALSE = c.parse({"value": "requests_waiting", "above": 1}, "test")
UNKNOWN = c.parse({"value": "kv_cache_usage_ratio", "above": 0.9}, "test")


def holds(raw: dict[str, object], **case: object) -> bool | None:
    return evaluate(c.parse(raw, "test"), build.view(case)).holds


trees = st.recursive(
    st.sampled_from([TRUE, FALSE, UNKNOWN]),
    lambda inner: st.one_of(
        st.builds(lambda part: c.Not(part=part), inner),
        st.builds(lambda part: c.Unless(part=part), inner),
        st.builds(lambda parts: c.All(parts=tuple(parts)), st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: c.AnyOf(parts=tuple(parts)), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=12,
)


def value(condition: c.Condition) -> bool | None:
    return evaluate(condition, VIEW).holds


@given(trees)
def test_not_not_is_the_same(tree: c.Condition) -> None:
    assert value(c.Not(part=c.Not(part=tree))) is value(tree)


@given(st.lists(trees, min_size=1, max_size=4))
def test_all_is_false_when_one_is_else_unknown_when_one_is(parts: list[c.Condition]) -> None:
    found = [value(part) for part in parts]
    expected = False if False in found else None if None in found else True

    assert value(c.All(parts=tuple(parts))) is expected


@given(st.lists(trees, min_size=1, max_size=4))
def test_any_is_true_when_one_is_else_unknown_when_one_is(parts: list[c.Condition]) -> None:
    found = [value(part) for part in parts]
    expected = True if True in found else None if None in found else False

    assert value(c.AnyOf(parts=tuple(parts))) is expected


@given(st.lists(trees, min_size=1, max_size=3))
def test_not_all_is_any_not(parts: list[c.Condition]) -> None:
    assert value(c.Not(part=c.All(parts=tuple(parts)))) is value(c.AnyOf(parts=tuple(c.Not(part=p) for p in parts)))


@given(trees)
def test_unless_is_never_unknown_and_false_only_where_its_part_holds(tree: c.Condition) -> None:
    assert value(c.Unless(part=tree)) is (value(tree) is not True)


@given(trees)
def test_unknown_says_what_is_missing_and_nothing_else_does_at_the_top(tree: c.Condition) -> None:
    found = evaluate(tree, VIEW)

    assert bool(found.missing) == (found.holds is None)
    assert set(found.missing) <= {"kv_cache_usage_ratio"}


@pytest.mark.parametrize(
    ("bound", "number", "expected"),
    [
        ({"above": 5}, 5, False), ({"above": 5}, 5.01, True), ({"at_least": 5}, 5, True),
        ({"at_least": 5}, 4.99, False),
        ({"below": 5}, 5, False), ({"below": 5}, 4.99, True), ({"at_most": 5}, 5, True), ({"at_most": 5}, 5.01, False),
        ({"equals": 5}, 5, True), ({"equals": 5}, 5.01, False), ({"above": 1, "below": 3}, 2, True),
        ({"above": 1, "below": 3}, 3, False),
    ],
)  # fmt: skip
def test_a_bound_holds_where_it_says(bound: dict[str, object], number: float, expected: bool) -> None:
    assert holds({"value": "requests_waiting", **bound}, observations={"requests_waiting": number}) is expected


def test_a_fact_shows_its_value_source_and_bound() -> None:
    found = evaluate(c.parse({"value": "kv_cache_usage_ratio", "at_least": 0.95}, "test"),
                     build.view({"observations": {"kv_cache_usage_ratio": 0.97}}))  # fmt: skip

    (fact,) = found.facts
    assert (fact.name, fact.value, fact.source, fact.compared_to) == ("kv_cache_usage_ratio", "97 %", "case", "≥ 0.95")


def test_a_ratio_needs_both_and_nothing_is_divided_by_zero() -> None:
    raw: dict[str, object] = {"ratio": ["requests_running", "requests_waiting"], "at_least": 2}

    assert holds(raw, observations={"requests_running": 4, "requests_waiting": 2}) is True
    assert holds(raw, observations={"requests_running": 3, "requests_waiting": 2}) is False
    assert holds(raw, observations={"requests_running": 4, "requests_waiting": 0}) is False
    assert holds(raw, observations={"requests_running": 4}) is None
    assert holds(raw) is None


def test_a_single_number_has_no_spread() -> None:
    raw: dict[str, object] = {"ratio": ["ttft_s.p99", "ttft_s.p50"], "at_least": 4}

    assert holds(raw, observations={"ttft_s": 3.0}) is None
    assert holds(raw, observations={"ttft_s": {"p50": 1.0, "p99": 4.0}}) is True
    assert holds(raw, observations={"ttft_s": {"p50": 1.0}}) is None


def test_a_change_needs_a_before() -> None:
    raw: dict[str, object] = {"changed": "ttft_s.p99", "at_least": 2}

    assert holds(raw, observations={"ttft_s": {"p99": 3.8}}) is None
    assert holds(raw, observations={"ttft_s": {"p99": 3.8}}, previous={"ttft_s": {"p99": 1.2}}) is True
    assert holds(raw, observations={"ttft_s": {"p99": 3.8}}, baseline={"ttft_s": {"p99": 2.0}}) is False
    assert holds(raw, observations={"ttft_s": {"p99": 3.8}}, previous={"ttft_s": {"p50": 1.2}}) is None
    assert holds(raw, observations={"ttft_s": {"before": {"p99": 1.2}, "after": {"p99": 3.8}}}) is True


def test_the_lifetime_is_compared_with_only_when_asked_for() -> None:
    case: dict[str, object] = {"observations": {"ttft_s": 3.8}, "lifetime": {"ttft_s": 1.0}}

    assert holds({"changed": "ttft_s", "at_least": 2}, **case) is None
    assert holds({"changed": "ttft_s", "at_least": 2, "against": "lifetime"}, **case) is True


def test_something_after_nothing_is_without_limit_more_and_nothing_after_nothing_is_the_same() -> None:
    raw: dict[str, object] = {"changed": "kv_evictions_per_min", "at_least": 1000}

    assert holds(raw, observations={"kv_evictions_per_min": {"before": 0, "after": 1}}) is True
    assert holds(raw, observations={"kv_evictions_per_min": {"before": 0, "after": 0}}) is False


def test_a_line_that_is_not_there_says_something_only_if_a_log_was_read() -> None:
    raw: dict[str, object] = {"log": ["vllm-free-memory-low", "vllm-free-memory-low-at-held"]}
    line = (
        "ValueError: Free memory on device cuda:0 (30.0/80.0 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 72.0 GiB)."
    )

    assert holds(raw) is None
    assert holds(raw, log="INFO nothing of interest") is False
    assert holds(raw, log=line) is True
    assert holds({**raw, "phase": "no-such-phase"}, log=line) is False


@pytest.mark.parametrize(
    ("raw", "flags", "expected"),
    [
        ({"is": "half"}, {"dtype": "HALF"}, True),
        ({"is": "half"}, {"port": 1}, False),
        ({"is": "half"}, None, None),
        ({"in": ["half", "float16"]}, {"dtype": "float16"}, True),
        ({"set": True}, {"dtype": "half"}, True),
        ({"set": True}, {"port": 1}, False),
        ({"set": False}, {"port": 1}, True),
        ({"set": True}, {"dtype": False}, False),
        ({"contains": ["loat"]}, {"dtype": "float16"}, True),
        ({"above": 1}, {"dtype": "half"}, False),
        ({"above": 1}, {"dtype": True}, False),
        ({"above": 1}, {"dtype": 2}, True),
        ({"is": True}, {"dtype": 1}, False),
        ({"is": True}, {"dtype": True}, True),
    ],
)
def test_a_setting(raw: dict[str, object], flags: dict[str, object] | None, expected: bool | None) -> None:
    case: dict[str, object] = {} if flags is None else {"flags": flags}

    assert holds({"flag": "dtype", **raw}, **case) is expected


def test_ticks_are_unknown_only_when_nobody_ticked_anything() -> None:
    raw: dict[str, object] = {"seen": ["hangs", "tokens-slow"]}

    assert holds(raw) is None
    assert holds(raw, symptoms={"when": ["under-load"]}) is False
    assert holds(raw, symptoms={"seen": ["hangs"]}) is True


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.8", True),
        ("0.8.5.post1", True),
        ("0.11.2rc1", True),
        ("0.12", False),
        ("0.7.9", False),
        ("", None),
        ("main", None),
    ],
)
def test_a_release_is_between_two(version: str, expected: bool | None) -> None:
    raw: dict[str, object] = {"engine": ["vllm"], "since": "0.8", "before": "0.12"}

    assert holds(raw, engine={"name": "vLLM", "version": version}) is expected


def test_an_engine() -> None:
    assert holds({"engine": ["sglang"]}, engine={"name": "vLLM"}) is False
    assert holds({"engine": ["sglang"]}, engine={"name": "SGLang"}) is True
    assert holds({"engine": ["sglang"]}) is None


def test_a_leaf_of_kubernetes() -> None:
    objects = [{"kind": "Pod", "spec": {"grace": 30, "probe": None, "env": [{"name": "A"}]}}]

    assert holds({"kubernetes": "grace", "at_most": 30}, kubernetes=objects) is True
    assert holds({"kubernetes": "grace", "at_most": 29}, kubernetes=objects) is False
    assert holds({"kubernetes": "probe", "absent": True}, kubernetes=objects) is True
    assert holds({"kubernetes": "grace", "absent": True}, kubernetes=objects) is False
    assert holds({"kubernetes": "env", "contains": ["a"]}, kubernetes=objects) is True
    assert holds({"kubernetes": "nothing", "absent": True}, kubernetes=objects) is None


def test_absent_is_never_unknown() -> None:
    assert holds({"absent": "ttft_s"}) is True
    assert holds({"absent": "ttft_s"}, observations={"ttft_s": 1}) is False


def test_a_textual_fact() -> None:
    raw: dict[str, object] = {"fact": "hardware.accelerator", "contains": ["a100"]}

    assert holds(raw, hardware={"accelerator": "NVIDIA A100-SXM4-80GB"}) is True
    assert holds(raw, hardware={"accelerator": "NVIDIA L4"}) is False
    assert holds(raw) is None


def test_a_trend_needs_two_points() -> None:
    raw: dict[str, object] = {"trend": "requests_waiting", "is": "rising"}

    assert holds(raw, observations={"requests_waiting": 9}) is None
    assert holds(raw, observations={"requests_waiting": [[0, 9]]}) is None
    assert holds(raw, observations={"requests_waiting": [[0, 1], [30, 9]]}) is True
    assert holds(raw, observations={"requests_waiting": [[0, 9], [30, 9]]}) is False


def test_present_holds_for_any_value_and_shows_it() -> None:
    condition = c.parse({"present": "requests_running.max"}, "here")

    seen = evaluate(condition, build.view({"observations": {"requests_running": 0}}))
    unseen = evaluate(condition, build.view({"observations": {"requests_waiting": 0}}))

    assert seen.holds is True
    assert [(fact.name, fact.value, fact.compared_to) for fact in seen.facts] == [("requests_running max", "0", "")]
    assert unseen.holds is None
    assert unseen.missing == ("requests_running.max",)
