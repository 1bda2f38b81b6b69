"""Symptoms as likelihoods: what a cause usually brings speaks for it, what it never brings speaks against it."""

from __future__ import annotations

from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.analysis import profiles
from llmedic.knowledge import profiles as known
from llmedic.knowledge import symptoms
from llmedic.knowledge.profiles import Profile
from llmedic.model.evidence import Symptoms

PROFILE = Profile(id="x", seen={"mostly": ("hangs",), "sometimes": ("gpu-idle",)}, when={"often": ("multi-gpu",)})


def seen(*names: str) -> Symptoms:
    return Symptoms(seen=frozenset(names))


def test_nothing_ticked_says_nothing() -> None:
    assert profiles.log_likelihood_ratio(PROFILE, Symptoms()) == 0.0


def test_what_it_mostly_brings_speaks_for_it_more_than_what_it_sometimes_brings() -> None:
    mostly, sometimes, never = (
        profiles.log_likelihood_ratio(PROFILE, seen(name)) for name in ("hangs", "gpu-idle", "start-fails")
    )

    assert mostly > 0 > never
    assert mostly > sometimes > never


def test_a_condition_that_is_not_listed_says_less_than_such_a_symptom() -> None:
    symptom = profiles.log_likelihood_ratio(PROFILE, seen("hangs", "output-garbled"))
    condition = profiles.log_likelihood_ratio(
        PROFILE, Symptoms(seen=frozenset({"hangs"}), when=frozenset({"with-lora"}))
    )

    assert symptom < condition < profiles.log_likelihood_ratio(PROFILE, seen("hangs"))


def test_priors_are_in_three_grades() -> None:
    common, usual, rare = (profiles.prior(Profile(id="x", prior=prior)) for prior in ("common", "usual", "rare"))

    assert 0 < rare < usual < common < 0.1


@pytest.mark.parametrize("kind", ["seen", "when", "not_when"])
def test_a_chance_is_a_chance(kind: str) -> None:
    for profile in known.profiles().values():
        for entry in symptoms.entries():
            assert 0 < profiles.chance(profile, kind, entry) < 1


def test_every_ticked_id_of_a_profile_exists() -> None:
    for profile in known.profiles().values():
        for name in (name for names in profile.seen.values() for name in names):
            assert name in symptoms.ids("symptom"), (profile.id, name)
        for grades in (profile.when, profile.not_when):
            assert {name for names in grades.values() for name in names} <= set(symptoms.ids("condition")), profile.id


def test_the_background_speaks_of_ids_that_exist() -> None:
    assert set(profiles.BACKGROUND_SEEN) <= set(symptoms.ids("symptom"))
    assert set(profiles.BACKGROUND_WHEN) <= set(symptoms.ids("condition"))


@given(
    st.sampled_from(list(known.profiles().values())),
    st.frozensets(st.sampled_from(symptoms.ids("symptom"))),
    st.frozensets(st.sampled_from(symptoms.ids("condition"))),
    st.frozensets(st.sampled_from(symptoms.ids("condition"))),
)
def test_any_ticks_have_a_finite_ratio(
    profile: Profile, ticked: frozenset[str], when: frozenset[str], not_when: frozenset[str]
) -> None:
    assert isfinite(profiles.log_likelihood_ratio(profile, Symptoms(seen=ticked, when=when, not_when=not_when)))
