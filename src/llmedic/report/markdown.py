"""The verdict for a ticket or a chat: the same parts in the same order as the terminal's, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from llmedic.knowledge import causes, phrases
from llmedic.knowledge.texts import Lang, label
from llmedic.model.evidence import Gap
from llmedic.model.finding import Fact
from llmedic.model.verdict import Cause, Change, Disagreement, Verdict
from llmedic.report import words
from llmedic.report.markup import code, table, text


def render(verdict: Verdict, *, lang: Lang = "en") -> str:
    """The report as GitHub-flavoured Markdown with a final newline."""
    blocks = (block for block in _blocks(verdict, lang) if block)
    return "\n\n".join(blocks) + "\n"


def _blocks(verdict: Verdict, lang: Lang) -> Iterator[str]:
    health = label(f"health.{verdict.health}", lang)
    yield f"# LLMedic: {health}" + (f" ({text(verdict.engine)})" if verdict.engine else "")
    if verdict.restart_warning:
        yield f"> **{label('restart', lang)}**"
    if verdict.causes:
        yield from _cause(verdict.causes[0], lang)
    else:
        yield f"**{label('healthy' if verdict.health == 'healthy' else 'undecided', lang)}**"
    if verdict.binding:
        yield _heading("binding", lang)
        yield text(verdict.binding.summary)
    if verdict.layers:
        yield _heading("layers", lang)
        yield table(
            [label(key, lang) for key in ("layer", "status", "summary")],
            [
                (label(f"layer.{item.layer}", lang), label(f"status.{item.status}", lang), text(item.summary))
                for item in verdict.layers
            ],
        )
    yield from _others(verdict.causes[1:], lang)
    yield from _doubts(verdict, lang)


def _cause(cause: Cause, lang: Lang) -> Iterator[str]:
    if cause.id in causes.SPECIAL:
        yield f"## {text(cause.title)}"
    else:
        sure = label("sure", lang).format(percent=round(cause.confidence * 100))
        yield f"## {label(f'severity.{cause.severity}', lang)}{label('colon', lang)}{text(cause.title)}"
        yield f"`{cause.id}`, {label(f'layer.{cause.layer}', lang)}, {sure}"
    yield text(cause.summary)
    if cause.evidence:
        yield _heading("evidence", lang)
        heads = [label(key, lang) for key in ("observation", "value", "compared", "source")]
        yield table(heads, [_row(fact, lang) for fact in cause.evidence])
    if cause.change:
        yield _heading("change", lang)
        if cause.id in causes.ids():
            yield text(causes.cause(cause.id).remedy.say(lang))
        yield _change(cause.change, lang)
    if cause.symptoms:
        yield _heading("beneath", lang)
        yield "\n".join(f"- {_named(symptom, lang)}" for symptom in cause.symptoms)


def _change(change: Change, lang: Lang) -> str:
    colon = label("colon", lang)
    rows = [("add", code(change.add)), ("drop", code(change.drop))]
    typed = [f"- {label(key, lang)}{colon}{code}" for key, code in rows if getattr(change, key)]
    return "\n".join(
        (
            f"**{text(words.change(change, lang))}**",
            "",
            *typed,
            f"- {label('expected', lang)}{colon}{text(change.expected)}",
            f"- {label('verify', lang)}{colon}{code(change.verify)}",
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
        lines.append(f"- **{severity}** {text(cause.title)} ({sure}; `{cause.id}`)")
        lines.extend(f"  - {_fact(fact, lang)}" for fact in cause.evidence[:2])
    yield "\n".join(lines)


def _doubts(verdict: Verdict, lang: Lang) -> Iterator[str]:
    if verdict.disagreements:
        yield _heading("disagreements", lang)
        yield "\n".join(_disagreement(item, lang) for item in verdict.disagreements)
    if verdict.gaps:
        yield _heading("gaps", lang)
        yield "\n".join(_gap(gap, lang) for gap in verdict.gaps)
    if verdict.cannot_tell:
        yield _heading("cannot-tell", lang)
        yield ", ".join(f"`{cause}`" for cause in verdict.cannot_tell)


def _gap(unseen: Gap, lang: Lang) -> str:
    gap, colon = words.gap(unseen, lang), label("colon", lang)
    how = f" ({label('how', lang)}{colon}{code(gap.how)})" if gap.how else ""
    return f"- **{text(gap.what)}**{colon}{text(gap.why)}{how}"


def _disagreement(item: Disagreement, lang: Lang) -> str:
    about = f"**{text(_said(item.about, lang))}**{label('colon', lang)}{text(item.meaning)}"
    return f"- {about}\n  - {_fact(item.first, lang)}\n  - {_fact(item.second, lang)}"


def _said(text: str, lang: Lang) -> str:
    return phrases.chinese(text) if lang == "zh" else text


def _heading(key: str, lang: Lang) -> str:
    return f"### {label(key, lang)}"


def _row(fact: Fact, lang: Lang) -> tuple[str, ...]:
    said = words.in_words(fact, lang)
    return (code(said.name), text(words.value(said)), text(said.compared_to), text(words.origin(said)))


def _fact(fact: Fact, lang: Lang) -> str:
    name, value, against, origin = _row(fact, lang)
    return f"{name} = {value}" + (f" ({against})" if against else "") + (f", {origin}" if origin else "")


def _named(below: str, lang: Lang) -> str:
    title, name = words.named(below, lang)
    return f"{text(title)} (`{name}`)" if name else text(title)
