"""Which cause, and how sure: a confidence means what it says, and evidence moves it the right way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.analysis import ranking
from llmedic.analysis.ranking import Standing
from llmedic.knowledge import causes, profiles
from llmedic.knowledge.profiles import Profile
from llmedic.model.evidence import Symptoms
from llmedic.model.finding import Finding, Outcome, Witness
from llmedic.model.verdict import SURE

KNOWN = profiles.profiles()
IDS = [cause for cause in KNOWN if cause != "healthy"]
WITNESSES: tuple[Witness, ...] = ("metrics", "log", "settings", "symptoms", "ledger")
NOTHING = Symptoms()

confidences = st.floats(min_value=0.02, max_value=0.96)
findings = st.builds(
    lambda cause, confidence, witness, outcome: finding(cause, confidence, witness, outcome),
    st.sampled_from(list(KNOWN)),
    confidences,
    st.sampled_from(WITNESSES),
    st.sampled_from(["cause", "against", "clear", "cannot_tell"]),
)


def finding(
    cause: str, confidence: float, witness: Witness = "metrics", outcome: Outcome = "cause", rule: str = "rule"
) -> Finding:
    return Finding(rule=rule, cause=cause, witness=witness, outcome=outcome, confidence=confidence)


def alone(_: str) -> frozenset[str]:
    return frozenset()


def rank(*found: Finding, symptoms: Symptoms = NOTHING) -> dict[str, Standing]:
    return {one.cause: one for one in ranking.rank(found, symptoms, KNOWN, alone)}


def confidence(cause: str, *found: Finding, symptoms: Symptoms = NOTHING) -> float:
    return rank(*found, symptoms=symptoms)[cause].confidence


@given(st.sampled_from(list(KNOWN)), confidences)
def test_what_one_rule_says_is_the_posterior_when_nothing_else_is_known(cause: str, said: float) -> None:
    assert confidence(cause, finding(cause, said)) == pytest.approx(said)


def test_without_evidence_every_cause_has_its_prior_and_nothing_is_sure() -> None:
    found = rank()

    assert set(found) == set(KNOWN)
    assert sum(one.confidence for one in found.values()) == pytest.approx(1 - ranking.SOMETHING_ELSE)
    assert max(one.confidence for one in found.values()) < 0.1


def test_two_causes_that_compete_both_drop() -> None:
    first, second = finding("qps-surge", 0.85), finding("gpu-power-capped", 0.85)

    found = rank(first, second)

    assert found["qps-surge"].confidence < 0.55
    assert found["gpu-power-capped"].confidence < 0.55
    assert found["qps-surge"].confidence + found["gpu-power-capped"].confidence > 0.85


def test_a_second_witness_raises_and_counts_for_less_than_the_first() -> None:
    once = confidence("qps-surge", finding("qps-surge", 0.7))
    twice = confidence("qps-surge", finding("qps-surge", 0.7), finding("qps-surge", 0.7, "log"))
    independent = ranking.rank([finding("qps-surge", 0.7)], NOTHING, KNOWN, alone)[0].confidence

    assert once == independent
    assert 0.7 < twice <= ranking.CEILING


def test_within_one_witness_only_the_strongest_rule_counts() -> None:
    both = finding("qps-surge", 0.7), finding("qps-surge", 0.85, rule="other")

    assert confidence("qps-surge", *both) == confidence("qps-surge", *reversed(both)) == pytest.approx(0.85)


def test_what_speaks_against_a_cause_lowers_it() -> None:
    first, second = finding("qps-surge", 0.85), finding("gpu-power-capped", 0.85)
    against = finding("gpu-power-capped", 0.1, "ledger", "against")

    assert confidence("gpu-power-capped", first, second, against) < confidence("gpu-power-capped", first, second)
    assert confidence("qps-surge", first, second, against) > confidence("qps-surge", first, second)


@pytest.mark.parametrize("said", [0.3, 0.45, 0.5])
def test_a_weak_line_for_a_cause_speaks_for_it(said: float) -> None:
    assert confidence("runtime-oom-headroom-too-small", finding("runtime-oom-headroom-too-small", said, "log")) > (
        5 * confidence("runtime-oom-headroom-too-small")
    )


@pytest.mark.parametrize("outcome", ["clear", "cannot_tell"])
def test_what_did_not_fire_moves_nothing(outcome: Outcome) -> None:
    assert confidence("qps-surge", finding("qps-surge", 0.9, outcome=outcome)) == confidence("qps-surge")


def test_health_competes_like_a_cause() -> None:
    found = rank(finding("healthy", 0.93), finding("qps-surge", 0.9))

    assert found["healthy"].confidence < 0.7
    assert found["qps-surge"].confidence < 0.5


def test_a_cause_takes_what_it_brings_about_out_of_the_competition() -> None:
    upstream, downstream = finding("qps-surge", 0.85), finding("overload-deep-queue", 0.9)
    found = ranking.rank([upstream, downstream], NOTHING, KNOWN, causes.downstream)

    assert found[0].cause == "qps-surge"
    assert found[0].confidence == pytest.approx(0.85, abs=0.02)
    assert found[0].beneath == ("overload-deep-queue",)
    assert "overload-deep-queue" not in {one.cause for one in found}


def test_a_cause_without_evidence_is_not_shown_beneath() -> None:
    found = ranking.rank([finding("qps-surge", 0.9)], NOTHING, KNOWN, causes.downstream)

    assert found[0].beneath == ()


def test_a_cause_that_does_not_stand_by_itself_hides_nothing() -> None:
    weak, strong = finding("qps-surge", 0.1), finding("overload-deep-queue", 0.9)
    found = ranking.rank([weak, strong], NOTHING, KNOWN, causes.downstream)

    assert (found[0].cause, found[0].beneath) == ("overload-deep-queue", ())


def test_only_the_topmost_cause_of_a_chain_is_shown() -> None:
    chain = (("gateway-timeout-too-short", 0.9), ("client-retry-storm", 0.86), ("overload-deep-queue", 0.8))
    found = ranking.rank([finding(cause, said) for cause, said in chain], NOTHING, KNOWN, causes.downstream)

    assert found[0].cause == "gateway-timeout-too-short"
    assert found[0].beneath == ("client-retry-storm", "overload-deep-queue")


@pytest.mark.parametrize("symptom", ["tokens-slow", "ttft-high", "latency-high", "hangs", "start-fails"])
def test_one_symptom_that_many_causes_have_does_not_decide(symptom: str) -> None:
    found = ranking.rank([], Symptoms(seen=frozenset({symptom})), KNOWN, alone)

    assert found[0].confidence < SURE


def test_symptoms_corroborate_up_to_a_limit() -> None:
    fits = Symptoms(seen=frozenset({"queue-grows", "ttft-high"}), when=frozenset({"under-load"}))
    bare = confidence("qps-surge", finding("qps-surge", 0.6))

    assert bare < confidence("qps-surge", finding("qps-surge", 0.6), symptoms=fits) <= ranking.CEILING


ticks = st.builds(
    Symptoms,
    seen=st.frozensets(st.sampled_from(["ttft-high", "start-fails", "out-of-memory", "cache-misses"]), max_size=3),
    when=st.frozensets(st.sampled_from(["under-load", "at-start", "multi-gpu"]), max_size=2),
)


@given(st.lists(findings, max_size=6), ticks)
def test_a_confidence_is_a_share(found: list[Finding], symptoms: Symptoms) -> None:
    standings = ranking.rank(found, symptoms, KNOWN, causes.downstream)

    assert all(0 < one.confidence <= ranking.CEILING for one in standings)
    assert sum(one.confidence for one in standings) < 1
    assert standings == sorted(standings, key=lambda one: -one.confidence)


@given(st.lists(findings, max_size=5), ticks, st.sampled_from(IDS), st.tuples(confidences, confidences))
def test_more_confidence_in_a_rule_never_lowers_its_cause(
    others: list[Finding], symptoms: Symptoms, cause: str, pair: tuple[float, float]
) -> None:
    rest = [other for other in others if other.cause != cause]
    low, high = sorted(pair)
    less = confidence(cause, *rest, finding(cause, low), symptoms=symptoms)
    more = confidence(cause, *rest, finding(cause, high), symptoms=symptoms)

    assert more >= less - 1e-9


@given(st.lists(findings, max_size=5), ticks, st.sampled_from(IDS), confidences.filter(lambda said: said >= 0.1))
def test_evidence_for_a_cause_never_leaves_it_worse_off(
    others: list[Finding], symptoms: Symptoms, cause: str, said: float
) -> None:
    rest = [other for other in others if other.cause != cause]

    assert confidence(cause, *rest, finding(cause, said), symptoms=symptoms) >= (
        confidence(cause, *rest, symptoms=symptoms) - 1e-9
    )


def test_a_finding_of_an_unknown_cause_moves_nothing() -> None:
    known = {"qps-surge": Profile(id="qps-surge"), "gpu-power-capped": Profile(id="gpu-power-capped")}

    found = ranking.rank([finding("elsewhere", 0.9)], NOTHING, known, alone)

    assert {one.cause for one in found} == set(known)
