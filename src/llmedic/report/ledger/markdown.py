"""The ledger for a ticket or a chat: the same parts in the same order as the terminal's, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from llmedic.knowledge.texts import Lang
from llmedic.model.evidence import Gap
from llmedic.model.ledger import Ledger, LedgerReport, Planned, Problem
from llmedic.report import words as general
from llmedic.report.ledger import chart, numbers, words
from llmedic.report.ledger.words import say
from llmedic.report.markup import code, table, text


def render(report: LedgerReport, *, lang: Lang = "en") -> str:
    """The ledger as GitHub-flavoured Markdown with a final newline."""
    return "\n\n".join(block for block in _blocks(report, lang) if block) + "\n"


def _blocks(report: LedgerReport, lang: Lang) -> Iterator[str]:
    ledger = report.ledger
    yield f"# {say('title', lang)}{say('colon', lang)}{say(f'starts.{ledger.starts}', lang)}"
    yield text(words.subject(report, lang))
    yield f"**{text(words.answer(ledger, lang))}**"
    yield from (_problem(problem, lang) for problem in ledger.problems)
    yield from _map(ledger, lang)
    if ledger.cache:
        yield _heading("holds", lang)
        yield "\n".join(_item(name, value, lang) for name, value in words.holds(ledger.cache, lang))
    yield from _printed(report, lang)
    if report.planned:
        yield from _planned(report.planned, lang)
    yield from _solutions(report, lang)
    pairs = list(words.arithmetic(ledger, lang))
    if pairs:
        yield _heading("arithmetic", lang)
        yield "\n".join(_item(name, value, lang) for name, value in pairs)
    yield from _remarks(report, lang)


def _problem(problem: Problem, lang: Lang) -> str:
    colon = say("colon", lang)
    said = f"> **{say(f'severity.{problem.severity}', lang)}**{colon}{text(words.sentence(problem.text, lang))}"
    cause = f" ({code(f'llmedic explain {problem.cause}')})" if problem.cause else ""
    change = f"\n> {say('change', lang)}{colon}{code(problem.change)}" if problem.change else ""
    return said + cause + change


def _map(ledger: Ledger, lang: Lang) -> Iterator[str]:
    lines = chart.rows(ledger)
    if not lines:
        return
    yield f"### {say('map' if ledger.devices <= 1 else 'map.of', lang, devices=ledger.devices)}"
    rows = []
    for row in lines:
        likely, interval = numbers.gib(row.term.size)
        share = numbers.percent(row.share) if row.share is not None else ""
        name = text(words.term_name(row.term.id, lang))
        rows.append(
            (f"**{name}**" if row.kind == "pool" else name, likely, interval, share, words.basis(row.term, lang))
        )
    yield table([say(key, lang) for key in ("term", "size", "interval", "share", "basis")], rows)


def _printed(report: LedgerReport, lang: Lang) -> Iterator[str]:
    rows = list(words.printed(report, lang))
    if rows:
        yield _heading("printed", lang)
        heads = [say(key, lang) for key in ("term", "engine", "computed", "residual")]
        yield table(heads, [tuple(map(text, row)) for row in rows])


def _planned(plan: Planned, lang: Lang) -> Iterator[str]:
    yield _heading("planned", lang)
    heads, rows = words.planned(plan, lang)
    yield table([head or " " for head in heads], rows)
    verdict = words.fits(plan, lang)
    yield f"**{verdict}**" if verdict else ""


def _solutions(report: LedgerReport, lang: Lang) -> Iterator[str]:
    if not report.solutions:
        return
    yield _heading("solutions", lang)
    heads = [say(key, lang) for key in ("goal", "set", "result", "why")]
    rows = []
    for one in report.solutions:
        goal, change, result = words.solution(one, lang)
        typed = code(change) if one.change else change
        rows.append((code(goal), typed.replace("|", "\\|"), result, text(words.sentence(one.text, lang))))
    yield table(heads, rows)


def _remarks(report: LedgerReport, lang: Lang) -> Iterator[str]:
    ledger = report.ledger
    if report.settings:
        yield _heading("settings", lang)
        yield "\n".join(_item(name, value, lang) for name, value in words.settings(report.settings, lang))
    if ledger.notes:
        yield _heading("notes", lang)
        yield "\n".join(f"- {text(words.sentence(note, lang))}" for note in ledger.notes)
    if ledger.gaps:
        yield _heading("gaps", lang)
        yield "\n".join(_gap(general.gap(one, lang), lang) for one in ledger.gaps)


def _gap(gap: Gap, lang: Lang) -> str:
    said = f"- **{text(gap.what)}**{say('colon', lang)}{text(gap.why)}"
    how = f"{say('how', lang)}{say('colon', lang)}{code(gap.how)}"
    return say("aside", lang, words=said, aside=how) if gap.how else said


def _heading(key: str, lang: Lang) -> str:
    return f"### {say(key, lang)}"


def _item(name: str, value: str, lang: Lang) -> str:
    return f"- **{text(name)}**{say('colon', lang)}{text(value)}"
