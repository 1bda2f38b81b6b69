"""What people tick when a cause is at work: the likelihoods behind structured symptoms."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from llmedic.knowledge import load, schema

Ticked = dict[Literal["mostly", "often", "sometimes"], tuple[str, ...]]


class Profile(schema.Record, frozen=True):
    """One cause: how common it is, and which symptoms and conditions people tick with it, in three grades."""

    id: str
    prior: Literal["common", "usual", "rare"] = "usual"
    seen: Ticked = {}
    when: Ticked = {}
    not_when: Ticked = {}


@cache
def profiles() -> Mapping[str, Profile]:
    """Every cause's profile by its id."""
    return {profile.id: profile for profile in load.records("profiles.yaml", Profile)}
