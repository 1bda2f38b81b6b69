"""The rules, by layer, with their conditions parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from llmedic.errors import KnowledgeError
from llmedic.knowledge import causes, conditions, load, schema

FILES = ("load", "capacity", "hardware", "params", "deployment", "gateway", "healthy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A rule and its parsed condition."""

    rule: schema.Rule
    condition: conditions.Condition


@cache
def rules() -> Mapping[str, Compiled]:
    """Every rule by its id.

    Raises:
        KnowledgeError: a rule is misspelt, named twice, or speaks of a cause that is not in the list.
    """
    found: dict[str, Compiled] = {}
    known = {*causes.ids(), causes.HEALTHY}
    for file in FILES:
        for rule in load.records(f"rules/{file}.yaml", schema.Rule):
            where = f"rules/{file}.yaml: {rule.id}"
            if rule.id in found:
                raise KnowledgeError(f"{where}: this id exists already")
            if rule.cause not in known:
                raise KnowledgeError(f"{where}: no cause has the id {rule.cause}")
            found[rule.id] = Compiled(rule=rule, condition=conditions.parse(rule.when, where))
    return found
