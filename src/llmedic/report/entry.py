"""One entry of the knowledge, for people and for programs: what `llmedic explain ID` shows."""

from __future__ import annotations

from dataclasses import dataclass

from llmedic.knowledge import causes, pitfalls, schema, symptoms, vocabulary
from llmedic.knowledge.texts import Lang, label, variable

WIDTH = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading (a key of `knowledge.texts`) and its words; `is_code` words are commands, never broken."""

    key: str
    words: tuple[str, ...]
    is_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A cause, pitfall, observation, symptom or condition in one language."""

    id: str
    kind: str
    title: str
    sections: tuple[Section, ...]


def known() -> tuple[str, ...]:
    """Every id that `find` answers."""
    return (*causes.ids(), *pitfalls.ids(), *symptoms.entries(), *vocabulary.names())


def find(entry_id: str, lang: Lang) -> Entry | None:
    """The entry with this id; None when there is none."""
    if entry_id in causes.ids():
        return _cause(causes.cause(entry_id), lang)
    if entry_id in pitfalls.ids():
        return _pitfall(pitfalls.pitfalls()[entry_id], lang)
    word = vocabulary.word(entry_id)
    if word is not None:
        unit = Section(key="explain.unit", words=(word.unit,))
        meaning = _one("meaning", word.meaning, lang)
        return Entry(id=entry_id, kind="observation", title=entry_id, sections=(meaning, unit))
    symptom = symptoms.entry(entry_id)
    if symptom is not None:
        question = _one("question", symptom.question, lang)
        return Entry(id=entry_id, kind=symptom.kind, title=symptom.text.say(lang), sections=(question,))
    return None


def listing(lang: Lang) -> dict[str, dict[str, str]]:
    """Every id with its title, by kind."""
    entries = symptoms.entries().values()
    return {
        "cause": {item.id: item.title.say(lang) for item in causes.causes().values()},
        "pitfall": {item.id: item.title.say(lang) for item in pitfalls.pitfalls().values()},
        "symptom": {item.id: item.text.say(lang) for item in entries if item.kind == "symptom"},
        "condition": {item.id: item.text.say(lang) for item in entries if item.kind == "condition"},
        "observation": {item.name: item.meaning.say(lang) for item in vocabulary.words().values()},
    }


def document(entry: Entry) -> dict[str, object]:
    """The entry as plain values: id, kind, title and the sections by their short key."""
    found: dict[str, object] = {"id": entry.id, "kind": entry.kind, "title": entry.title}
    for section in entry.sections:
        key = section.key.partition(".")[2] or section.key
        found[key] = section.words[0] if len(section.words) == 1 and not _is_list(section) else list(section.words)
    return found


def render(entry: Entry, lang: Lang) -> str:
    """The entry as text of at most 80 columns, commands apart."""
    lines = [entry.title, f"  {entry.id} ({label(f'explain.{entry.kind}', lang)})"]
    for section in entry.sections:
        if not section.words:
            continue
        lines += ["", label(section.key, lang)]
        for words in section.words:
            lines += [f"  {words}"] if section.is_code else _wrapped(words)
    return "\n".join(lines) + "\n"


def render_list(entries: dict[str, dict[str, str]], lang: Lang) -> str:
    """All ids in columns, by kind."""
    blocks = []
    for kind, titles in entries.items():
        width = max(map(len, titles))
        rows = [f"  {name:{width}}  {title}" for name, title in titles.items()]
        blocks.append("\n".join([f"{label(f'explain.{kind}', lang)} ({len(titles)})", *rows]))
    return "\n\n".join(blocks) + "\n"


def _cause(cause: schema.CauseText, lang: Lang) -> Entry:
    upstream = tuple(other.id for other in causes.causes().values() if cause.id in other.explains)
    where = f"{label(f'layer.{cause.layer}', lang)}, {label(f'severity.{cause.severity}', lang)}"
    expected = f"{label('expected', lang)}{label('colon', lang)}{cause.change.expected.say(lang)}"
    sections = (
        Section(key="explain.where", words=(where,)),
        _one("what", cause.what, lang),
        _one("decided_by", cause.decided_by, lang),
        _one("remedy", cause.remedy, lang),
        Section(key="explain.change", words=(variable(cause.change.variable, lang), expected)),
        Section(key="explain.verify", words=(cause.change.verify,), is_code=True),
        Section(key="explain.explains", words=cause.explains),
        Section(key="explain.explained-by", words=upstream),
    )
    return Entry(id=cause.id, kind="cause", title=cause.title.say(lang), sections=sections)


def _pitfall(pitfall: pitfalls.Pitfall, lang: Lang) -> Entry:
    sections = (
        _one("symptom-text", pitfall.symptom, lang),
        _one("green", pitfall.green, lang),
        _one("evidence", pitfall.evidence, lang),
        _one("remedy", pitfall.remedy, lang),
        Section(key="explain.causes", words=pitfall.causes),
    )
    return Entry(id=pitfall.id, kind="pitfall", title=pitfall.title.say(lang), sections=sections)


def _one(key: str, text: schema.Text, lang: Lang) -> Section:
    return Section(key=f"explain.{key}", words=(text.say(lang),))


def _is_list(section: Section) -> bool:
    return section.key in ("explain.explains", "explain.explained-by", "explain.causes", "explain.change")


def _wrapped(words: str) -> list[str]:
    """Lines of the width, East Asian letters counted as two columns."""
    from rich.console import Console
    from rich.text import Text

    console = Console(width=WIDTH, force_terminal=False)
    return [f"  {line.plain.rstrip()}" for line in Text(words).wrap(console, WIDTH - 2)]
