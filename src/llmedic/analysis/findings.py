"""Every rule and every recognised log line, applied to the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from llmedic.analysis.evaluate import evaluate
from llmedic.analysis.view import View
from llmedic.knowledge.rules import Compiled
from llmedic.knowledge.schema import LogPattern
from llmedic.model.finding import Fact, Finding, Outcome

PatternOf = Callable[[str], LogPattern | None]


def of(view: View, rules: Mapping[str, Compiled], pattern: PatternOf) -> list[Finding]:
    """What each rule and each log line with a cause of its own makes of the evidence."""
    return [*(_finding(compiled, view) for compiled in rules.values()), *_from_log(view, pattern)]


def _finding(compiled: Compiled, view: View) -> Finding:
    rule, outcome = compiled.rule, evaluate(compiled.condition, view)
    said: Outcome = "cannot_tell" if outcome.holds is None else "clear"
    if outcome.holds:
        said = "cause" if rule.confidence >= 0.5 else "against"
    return Finding(
        rule=rule.id,
        cause=rule.cause,
        witness=rule.witness,
        outcome=said,
        confidence=rule.confidence if outcome.holds else 0.0,
        facts=_distinct(outcome.facts),
        missing=tuple(dict.fromkeys(outcome.missing)) if outcome.holds is None else (),
    )


def _from_log(view: View, pattern_of: PatternOf) -> Iterator[Finding]:
    for name, events in view.events.items():
        pattern = pattern_of(name)
        if pattern is None or not pattern.cause:
            continue
        firsts = [event for event in events if not event.is_echo]
        if firsts:
            fact = Fact(name=name, value=firsts[0].text, source=firsts[0].source)
            yield Finding(
                rule=name, cause=pattern.cause, witness="log", outcome="cause",
                confidence=pattern.confidence, facts=(fact,),
            )  # fmt: skip


def _distinct(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
    return tuple(dict.fromkeys(facts))
