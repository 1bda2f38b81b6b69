"""Three-valued evaluation of conditions: holds, does not hold, or cannot be told from this evidence.

`all` is false as soon as one part is; `any` is true as soon as one part is; whatever is missing stays unknown, so that
what was not evaluated is never called OK.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from llmedic.analysis import predicates, trends
from llmedic.analysis.outcome import FALSE, TRUE, Outcome, false, true, unknown
from llmedic.analysis.view import Reading, View, fact_of
from llmedic.knowledge import conditions as c
from llmedic.knowledge import releases
from llmedic.model import units
from llmedic.model.finding import Fact
from llmedic.model.observation import Change, Series


def evaluate(condition: c.Condition, view: View) -> Outcome:
    """What the evidence says of the condition."""
    match condition:
        case c.All(parts=parts):
            return _all(evaluate(part, view) for part in parts)
        case c.AnyOf(parts=parts):
            return _any([evaluate(part, view) for part in parts])
        case c.Not(part=part):
            return _negated(evaluate(part, view))
        case c.Unless(part=part):
            return FALSE if evaluate(part, view).holds else TRUE
        case c.Predicate(name=name):
            return predicates.PREDICATES[name](view)
        case c.Threshold() | c.Ratio() | c.Changed() | c.Trending() | c.Absent() | c.Present():
            return _observed(condition, view)
        case _:
            return _stated(condition, view)


def _observed(condition: c.Threshold | c.Ratio | c.Changed | c.Trending | c.Absent | c.Present, view: View) -> Outcome:
    """Conditions over observations."""
    match condition:
        case c.Threshold(quantity=quantity, bounds=bounds):
            return _bounded(view.read(quantity), bounds, str(quantity))
        case c.Ratio():
            return _ratio(condition, view)
        case c.Changed():
            return _changed(condition, view)
        case c.Trending():
            return _trending(condition, view)
        case c.Absent(name=name):
            return TRUE if view.observation(name) is None else FALSE
        case c.Present(quantity=quantity):
            reading = view.read(quantity)
            return true(reading.fact) if reading else unknown(str(quantity))


def _stated(condition: c.Logged | c.Setting | c.FactIs | c.Ticked | c.EngineIs | c.InKubernetes, view: View) -> Outcome:
    """Conditions over what was logged, set, known or ticked."""
    match condition:
        case c.Logged():
            return _logged(condition, view)
        case c.Setting():
            return _setting(condition, view)
        case c.FactIs(path=path, contains=words):
            return _fact(path, words, view)
        case c.Ticked():
            return _ticked(condition, view)
        case c.EngineIs():
            return _engine(condition, view)
        case c.InKubernetes():
            return _kubernetes(condition, view)


def _all(parts: Iterable[Outcome]) -> Outcome:
    facts: list[Fact] = []
    missing: list[str] = []
    known = True
    for part in parts:
        if part.holds is False:
            return false(*part.facts)
        if part.holds is None:
            known = False
            missing.extend(part.missing)
        facts.extend(part.facts)
    return Outcome(holds=True if known else None, facts=tuple(facts), missing=tuple(missing))


def _any(parts: list[Outcome]) -> Outcome:
    holding = [part for part in parts if part.holds]
    if holding:
        return true(*(fact for part in holding for fact in part.facts))
    open_ = [part for part in parts if part.holds is None]
    return unknown(*(name for part in open_ for name in part.missing)) if open_ else FALSE


def _negated(part: Outcome) -> Outcome:
    return part if part.holds is None else replace(part, holds=not part.holds)


def _bounded(reading: Reading | None, bounds: c.Bounds, name: str) -> Outcome:
    if reading is None:
        return unknown(name)
    fact = replace(reading.fact, compared_to=str(bounds))
    return Outcome(holds=bounds.hold(reading.number), facts=(fact,))


def _ratio(condition: c.Ratio, view: View) -> Outcome:
    top, bottom = view.read(condition.numerator), view.read(condition.denominator)
    missing = [str(q) for q, r in ((condition.numerator, top), (condition.denominator, bottom)) if r is None]
    if top is None or bottom is None:
        return unknown(*missing)
    if _one_number(condition, view):
        return unknown(f"{condition.numerator} beside {condition.denominator}")
    if bottom.number == 0:
        return FALSE
    facts = replace(top.fact, compared_to=f"{bottom.fact.value} ({bottom.fact.name})"), bottom.fact
    return Outcome(holds=condition.bounds.hold(top.number / bottom.number), facts=facts)


def _one_number(condition: c.Ratio, view: View) -> bool:
    """Whether both sides are statistics of a value of which a single number is known: its spread was not seen."""
    top, bottom = condition.numerator, condition.denominator
    if top.where != "observation" or (top.name, top.period) != (bottom.name, bottom.period):
        return False
    found = view.observation(top.name, top.period)
    value = found.value.after if found is not None and isinstance(found.value, Change) else found and found.value
    return isinstance(value, float)


def _changed(condition: c.Changed, view: View) -> Outcome:
    name, stat = condition.quantity.name, condition.quantity.statistic
    if view.observation(name) is None:
        return unknown(name)
    move = view.change(name, stat, condition.against)
    if move is None:
        return unknown(f"{name} before")
    before, after, unit = move.before, move.after, move.observation.unit
    factor = after / before if before else (inf if after else 1.0)
    fact = fact_of(move.observation, stat, after, compared_to=f"{units.show(before, unit)} {move.origin}")
    return Outcome(holds=condition.bounds.hold(factor), facts=(fact,))


def _trending(condition: c.Trending, view: View) -> Outcome:
    observation = view.observation(condition.name)
    if observation is None or not isinstance(observation.value, Series) or len(observation.value.points) < 2:
        return unknown(f"{condition.name} over time")
    found = trends.of(observation.value.points)
    last = observation.value.points[-1][1]
    fact = fact_of(observation, "last", last, compared_to=", ".join(sorted(found)))
    return Outcome(holds=bool(found & set(condition.trends)), facts=(fact,))


def _logged(condition: c.Logged, view: View) -> Outcome:
    for name in condition.ids:
        for event in view.events.get(name, ()):
            if condition.phases and str(event.fields.get("phase", "")) not in condition.phases:
                continue
            return true(Fact(name=name, value=event.text, source=event.source))
    return FALSE if view.has_log else unknown("log")


def _setting(condition: c.Setting, view: View) -> Outcome:
    name = condition.name
    if not view.knows_flag(name):
        return unknown(f"flag.{name}")
    found = view.flag(name)
    shown = "not set" if found is None else str(found)
    fact = Fact(name=f"flag.{name}", value=shown, source=view.origin(name))
    checks = []
    if condition.is_set is not None:
        checks.append((name in view.flags and found is not None and found is not False) == condition.is_set)
    if condition.values:
        checks.append(any(_same(found, value) for value in condition.values))
    if condition.contains:
        checks.append(any(word.lower() in shown.lower() for word in condition.contains))
    if condition.bounds is not None:
        if isinstance(found, bool) or not isinstance(found, int | float):
            return FALSE
        checks.append(condition.bounds.hold(float(found)))
    return Outcome(holds=all(checks), facts=(fact,))


def _fact(path: str, words: tuple[str, ...], view: View) -> Outcome:
    found = view.fact(path)
    if found is None:
        return unknown(path)
    holds = any(word.lower() in str(found).lower() for word in words)
    return Outcome(holds=holds, facts=(Fact(name=path, value=str(found), source="facts"),))


def _ticked(condition: c.Ticked, view: View) -> Outcome:
    symptoms = view.evidence.symptoms
    if not symptoms:
        return unknown("symptoms")
    ticked = getattr(symptoms, condition.kind) & set(condition.ids)
    facts = (Fact(name=condition.kind.replace("_", " "), value=name, source="symptoms") for name in sorted(ticked))
    return true(*facts) if ticked else FALSE


def _engine(condition: c.EngineIs, view: View) -> Outcome:
    engine, version = view.evidence.deployment.engine, view.evidence.deployment.version
    if not engine:
        return unknown("engine")
    if engine not in condition.engines:
        return FALSE
    if not (condition.since or condition.before):
        return TRUE
    if not releases.numbers(version):  # a build from "main" is neither old nor new
        return unknown("engine version")
    fact = Fact(name="version", value=f"{engine} {version}", source="facts")
    return Outcome(holds=releases.lives(version, condition.since, condition.before), facts=(fact,))


def _kubernetes(condition: c.InKubernetes, view: View) -> Outcome:
    leaves = view.kubernetes(condition.path)
    if not leaves:
        return unknown(f"kubernetes {condition.path}")
    for leaf in leaves:
        fact = Fact(name=f"{leaf.kind} {leaf.path}", value="absent" if leaf.value is None else str(leaf.value),
                    source="kubernetes")  # fmt: skip
        if condition.absent and leaf.value is None:
            return true(fact)
        if condition.values and any(_same(leaf.value, value) for value in condition.values):
            return true(fact)
        if condition.contains and any(word.lower() in str(leaf.value).lower() for word in condition.contains):
            return true(fact)
        if condition.bounds and isinstance(leaf.value, float | int) and condition.bounds.hold(float(leaf.value)):
            return true(fact)
    return FALSE


def _same(found: object, wanted: object) -> bool:
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, int | float) and isinstance(wanted, int | float):
        return float(found) == float(wanted)
    return str(found).lower() == str(wanted).lower() if found is not None else wanted is None
