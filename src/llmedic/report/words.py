"""What the renderers say in the same words: values, facts, changes and the names of what lies beneath a cause.

A tool of the renderers, no renderer itself.
"""

from __future__ import annotations

from dataclasses import replace

from llmedic.knowledge import causes, phrases, symptoms
from llmedic.knowledge.texts import Lang, label, variable
from llmedic.model.evidence import Gap
from llmedic.model.finding import Fact
from llmedic.model.verdict import Change

_UNITLESS = ("count", "code", "-", "0..1")
_COMPUTED = ("ledger", "bench")
"""Sources whose values are our own words; a log's value is a line that somebody else wrote."""


def value(fact: Fact) -> str:
    """The value with its unit, unless the value already carries it."""
    if not fact.unit or fact.unit in _UNITLESS or fact.value.endswith(fact.unit.removeprefix("1")):
        return fact.value
    return f"{fact.value} {fact.unit}"


def origin(fact: Fact) -> str:
    """Who said so, and of which time."""
    return ", ".join(filter(None, (fact.source, fact.window)))


def line(fact: Fact) -> str:
    """The fact on one line."""
    against = f" ({fact.compared_to})" if fact.compared_to else ""
    said = origin(fact)
    return f"{fact.name} = {value(fact)}{against}" + (f", {said}" if said else "")


def in_words(fact: Fact, lang: Lang) -> Fact:
    """The fact in the reader's language; names of observations and settings are the same in all."""
    if lang == "en":
        return fact
    ours = fact.unit or fact.source in _COMPUTED or fact.name.startswith("flag.")
    return replace(
        fact,
        name=phrases.chinese(fact.name),
        value=phrases.chinese(value(fact)) if ours else fact.value,
        unit="" if ours else fact.unit,
        window=phrases.chinese(fact.window),
        source=phrases.chinese(fact.source),
        compared_to=phrases.chinese(fact.compared_to),
    )


def gap(unseen: Gap, lang: Lang) -> Gap:
    """The gap in the reader's language."""
    if lang == "en":
        return unseen
    what, why, how = (phrases.chinese(text) for text in (unseen.what, unseen.why, unseen.how))
    return replace(unseen, what=what, why=why, how=how)


def change(one: Change, lang: Lang) -> str:
    """The variable, and what it is set to where a value can be justified."""
    key = "from-to" if one.from_ and one.to else "to" if one.to else "from" if one.from_ else ""
    key = key if one.exists else "absent"
    name = variable(one.variable, lang)
    return label(key, lang).format(variable=name, from_=one.from_, to=one.to) if key else name


def named(below: str, lang: Lang) -> tuple[str, str]:
    """The title of a cause or the text of a symptom, and its id; "" as id for anything else."""
    if below in causes.ids():
        return causes.cause(below).title.say(lang), below
    entry = symptoms.entry(below)
    return (entry.text.say(lang), below) if entry else (below, "")
