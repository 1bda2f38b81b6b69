"""The verdict for a ticket or a chat: the same parts in the same order as the terminal's, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from llmedic.knowledge import causes, symptoms
from llmedic.knowledge.texts import Lang, label, variable
from llmedic.model.evidence import Gap
from llmedic.model.finding import Fact
from llmedic.model.verdict import BindingLimit, Cause, Change, Verdict


def render(verdict: Verdict, *, lang: Lang = "en") -> str:
    """The report as GitHub-flavoured Markdown with a final newline."""
    blocks = (block for block in _blocks(verdict, lang) if block)
    return "\n\n".join(blocks) + "\n"


def _blocks(verdict: Verdict, lang: Lang) -> Iterator[str]:
    health = label(f"health.{verdict.health}", lang)
    yield f"# LLMedic: {health}" + (f" ({_text(verdict.engine)})" if verdict.engine else "")
    if verdict.restart_warning:
        yield f"> **{label('restart', lang)}**"
    if verdict.causes:
        yield from _cause(verdict.causes[0], lang)
    else:
        yield f"**{label('healthy' if verdict.health == 'healthy' else 'undecided', lang)}**"
    if verdict.binding:
        yield _heading("binding", lang)
        yield _binding(verdict.binding, lang)
    if verdict.layers:
        yield _heading("layers", lang)
        yield _table(
            [label(key, lang) for key in ("layer", "status", "summary")],
            [
                (label(f"layer.{item.layer}", lang), label(f"status.{item.status}", lang), _text(item.summary))
                for item in verdict.layers
            ],
        )
    yield from _others(verdict.causes[1:], lang)
    yield from _doubts(verdict, lang)


def _cause(cause: Cause, lang: Lang) -> Iterator[str]:
    if cause.id in causes.SPECIAL:
        yield f"## {_text(cause.title)}"
    else:
        sure = label("sure", lang).format(percent=round(cause.confidence * 100))
        yield f"## {label(f'severity.{cause.severity}', lang)}: {_text(cause.title)}"
        yield f"`{cause.id}`, {label(f'layer.{cause.layer}', lang)}, {sure}"
    yield _text(cause.summary)
    if cause.evidence:
        yield _heading("evidence", lang)
        heads = [label(key, lang) for key in ("observation", "value", "compared", "source")]
        yield _table(heads, [_row(fact) for fact in cause.evidence])
    if cause.change:
        yield _heading("change", lang)
        if cause.id in causes.ids():
            yield _text(getattr(causes.cause(cause.id).remedy, lang))
        yield _change(cause.change, lang)
    if cause.symptoms:
        yield _heading("beneath", lang)
        yield "\n".join(f"- {_named(symptom, lang)}" for symptom in cause.symptoms)


def _binding(binding: BindingLimit, lang: Lang) -> str:
    if lang == "en":
        return _text(binding.summary)
    facts = (f"- {_fact(fact)}" for fact in binding.facts)
    return "\n".join((f"**{label(f'limit.{binding.limit}', lang)}**", "", *facts))


def _change(change: Change, lang: Lang) -> str:
    key = "from-to" if change.from_ and change.to else "to" if change.to else "from" if change.from_ else ""
    name = variable(change.variable, lang)
    what = label(key, lang).format(variable=name, from_=change.from_, to=change.to) if key else name
    return "\n".join(
        (
            f"**{_text(what)}**",
            "",
            f"- {label('expected', lang)}: {_text(change.expected)}",
            f"- {label('verify', lang)}: {_code(change.verify)}",
        )
    )


def _others(others: tuple[Cause, ...], lang: Lang) -> Iterator[str]:
    if not others:
        return
    yield _heading("others", lang)
    lines = []
    for cause in others:
        sure = label("sure", lang).format(percent=round(cause.confidence * 100))
        severity = label(f"severity.{cause.severity}", lang)
        lines.append(f"- **{severity}** {_text(cause.title)} ({sure}; `{cause.id}`)")
        lines.extend(f"  - {_fact(fact)}" for fact in cause.evidence[:2])
    yield "\n".join(lines)


def _doubts(verdict: Verdict, lang: Lang) -> Iterator[str]:
    if verdict.disagreements:
        yield _heading("disagreements", lang)
        yield "\n".join(
            f"- **{_text(item.about)}**: {_text(item.meaning)}\n  - {_fact(item.first)}\n  - {_fact(item.second)}"
            for item in verdict.disagreements
        )
    if verdict.gaps:
        yield _heading("gaps", lang)
        yield "\n".join(_gap(gap, lang) for gap in verdict.gaps)
    if verdict.cannot_tell:
        yield _heading("cannot-tell", lang)
        yield ", ".join(f"`{cause}`" for cause in verdict.cannot_tell)


def _gap(gap: Gap, lang: Lang) -> str:
    how = f" ({label('how', lang)}: {_code(gap.how)})" if gap.how else ""
    return f"- **{_text(gap.what)}**: {_text(gap.why)}{how}"


def _heading(key: str, lang: Lang) -> str:
    return f"### {label(key, lang)}"


def _row(fact: Fact) -> tuple[str, ...]:
    origin = ", ".join(filter(None, (fact.source, fact.window)))
    return (f"`{fact.name}`", _text(_value(fact)), _text(fact.compared_to), _text(origin))


def _fact(fact: Fact) -> str:
    name, value, against, origin = _row(fact)
    return f"{name} = {value}" + (f" ({against})" if against else "") + (f", {origin}" if origin else "")


def _value(fact: Fact) -> str:
    if not fact.unit or fact.unit in ("count", "code", "-", "0..1") or fact.value.endswith(fact.unit):
        return fact.value
    return f"{fact.value} {fact.unit}"


def _named(symptom: str, lang: Lang) -> str:
    if symptom in causes.ids():
        return f"{getattr(causes.cause(symptom).title, lang)} (`{symptom}`)"
    entry = symptoms.entry(symptom)
    return f"{getattr(entry.text, lang)} (`{symptom}`)" if entry else _text(symptom)


def _table(heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    heads = list(heads)
    lines = [" | ".join(heads), " | ".join("---" for _ in heads), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def _text(text: str) -> str:
    """Text from outside, kept on one line and from becoming markup."""
    flat = " ".join(text.split())
    for letter in "\\`*_[]<>|":
        flat = flat.replace(letter, f"\\{letter}")
    return flat


def _code(command: str) -> str:
    """A command in a code span, whatever backticks it has in it."""
    flat = " ".join(command.split())
    longest = max((len(run) for run in re.findall("`+", flat)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{flat}{pad}{fence}"
