"""The ledger as one HTML file: a chart and what supports it. No script, nothing loaded from anywhere.

Colours follow the reader's light or dark theme and never say anything alone: every bar has its name and number beside
it, and the chart has a title and a description for readers who do not see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from llmedic.knowledge.texts import Lang
from llmedic.model.ledger import Ledger, LedgerReport, Problem
from llmedic.model.plain import plain
from llmedic.report import words as general
from llmedic.report.ledger import chart, numbers, words
from llmedic.report.ledger.words import say

_WIDTH, _NAMES, _BARS, _ROW, _BAR = 960, 170, 520, 30, 18
"""Of the drawing: its width, the columns of names and bars, the height of a row and of the bar in it."""

_STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --dim: #59636e; --line: #d1d9e0; --page: #ffffff;
  --whole: #9aa4ae; --part: #2f6fc4; --pool: #1a7f37; --missing: #cf222e; --outside: #c3cad1; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --dim: #9198a1; --line: #3d444d; --page: #0d1117;
  --whole: #6e7781; --part: #58a6ff; --pool: #3fb950; --missing: #f85149; --outside: #484f58; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.about { color: var(--dim); margin: 0; } .answer { font-size: 1.15rem; font-weight: 600; }
.critical, .warning, .info { border-left: 4px solid var(--missing); padding: .25rem .75rem; margin: 1rem 0; }
.warning { border-color: #bf8700; } .info { border-color: var(--part); }
svg { width: 100%; height: auto; } svg text { font: 14px system-ui, sans-serif; fill: var(--text); }
svg .size { font-variant-numeric: tabular-nums; }
.whole { fill: var(--whole); } .part { fill: var(--part); } .pool { fill: var(--pool); }
.missing { fill: var(--missing); } .outside { fill: var(--outside); } .unsure { opacity: .45; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; }
th, td { text-align: left; padding: .3rem 1rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--dim); font-weight: 400; } td { font-variant-numeric: tabular-nums; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
"""


def render(report: LedgerReport, *, lang: Lang = "en") -> str:
    """The whole document, with a final newline."""
    title = f"{say('title', lang)}{say('colon', lang)}{say(f'starts.{report.ledger.starts}', lang)}"
    about = words.subject(report, lang)
    head = "\n".join(
        (
            "<!doctype html>",
            f'<html lang="{"zh-CN" if lang == "zh" else "en"}">',
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{_text(' · '.join(filter(None, (title, about))))}</title>",
            f"<style>{_STYLE}</style>",
            f"<h1>{_text(title)}</h1>",
            f'<p class="about">{_text(about)}</p>',
        )
    )
    return "\n".join((head, *_body(report, lang))) + "\n"


def drawing(ledger: Ledger, lang: Lang) -> str:
    """The waterfall as an SVG element; "" when there is nothing to draw."""
    lines = chart.rows(ledger)
    extent = chart.extent(lines)
    if extent <= 0:
        return ""
    title = say("map" if ledger.devices <= 1 else "map.of", lang, devices=ledger.devices)
    said = say("semicolon", lang).join(
        f"{words.term_name(row.term.id, lang)} {words.sentence(numbers.size(row.term.size), lang)}" for row in lines
    )
    rows = (_row(row, number, _BARS / extent, lang) for number, row in enumerate(lines))
    return "\n".join(
        (
            f'<svg viewBox="0 0 {_WIDTH} {_ROW * len(lines)}" role="img" aria-labelledby="map-title map-desc">',
            f'<title id="map-title">{_text(title)}</title>',
            f'<desc id="map-desc">{_text(said)}</desc>',
            *rows,
            "</svg>",
        )
    )


def _row(row: chart.Row, number: int, scale: float, lang: Lang) -> str:
    top = number * _ROW
    middle = top + _ROW // 2 + 5
    name, size = words.term_name(row.term.id, lang), words.sentence(numbers.size(row.term.size), lang)
    share = say("comma", lang) + numbers.percent(row.share) if row.share is not None else ""
    kind = "missing" if row.missing else row.kind
    end = row.stop if row.missing else row.sure
    bars = _bar(kind, row.start, end, top, scale)
    if not row.missing and row.reach > row.sure:
        bars += _bar(f"{kind} unsure", row.sure, row.reach, top, scale)
    hint = name + say("colon", lang) + (words.sentence(row.term.how, lang) or words.basis(row.term, lang))
    return (
        f"<g><title>{_text(hint)}</title>"
        f'<text x="{_NAMES - 10}" y="{middle}" text-anchor="end">{_text(name)}</text>{bars}'
        f'<text class="size" x="{_NAMES + _BARS + 10}" y="{middle}">{_text(size + share)}</text></g>'
    )


def _bar(kind: str, start: float, stop: float, top: int, scale: float) -> str:
    left, width = _NAMES + start * scale, max((stop - start) * scale, 0.0)
    if width == 0:
        return ""
    inset = (_ROW - _BAR) // 2
    return (
        f'<rect class="{kind}" x="{left:.1f}" y="{top + inset}" width="{max(width, 1.0):.1f}" height="{_BAR}" rx="2"/>'
    )


def _body(report: LedgerReport, lang: Lang) -> Iterator[str]:
    ledger = report.ledger
    yield f'<p class="answer">{_text(words.answer(ledger, lang))}</p>'
    yield from (_problem(problem, lang) for problem in ledger.problems)
    picture = drawing(ledger, lang)
    if picture:
        yield _heading("map" if ledger.devices <= 1 else "map.of", lang, devices=ledger.devices)
        yield picture
    if ledger.cache:
        yield from _section("holds", (), words.holds(ledger.cache, lang), lang)
    yield from _section("printed", ("term", "engine", "computed", "residual"), words.printed(report, lang), lang)
    if report.planned:
        heads, rows = words.planned(report.planned, lang)
        yield _heading("planned", lang)
        yield _table(heads, rows)
        yield f"<p><strong>{_text(words.fits(report.planned, lang))}</strong></p>"
    solved = ((*words.solution(one, lang), words.sentence(one.text, lang)) for one in report.solutions)
    yield from _section("solutions", ("goal", "set", "result", "why"), solved, lang)
    yield from _section("arithmetic", (), words.arithmetic(ledger, lang), lang)
    yield from _section("settings", (), words.settings(report.settings, lang), lang)
    yield from _section("notes", (), ((words.sentence(note, lang),) for note in ledger.notes), lang)
    gaps = (general.gap(one, lang) for one in ledger.gaps)
    yield from _section("gaps", ("term", "why", "how"), ((gap.what, gap.why, gap.how) for gap in gaps), lang)


def _problem(problem: Problem, lang: Lang) -> str:
    colon = _text(say("colon", lang))
    said = f"<strong>{_text(say(f'severity.{problem.severity}', lang))}</strong>{colon}"
    said += _text(words.sentence(problem.text, lang))
    if problem.cause:
        said += f" (<code>{_text(f'llmedic explain {problem.cause}')}</code>)"
    if problem.change:
        said += f"<br>{_text(say('change', lang))}{colon}<code>{_text(problem.change)}</code>"
    return f'<p class="{problem.severity}">{said}</p>'


def _section(key: str, heads: Iterable[str], rows: Iterable[tuple[str, ...]], lang: Lang) -> Iterator[str]:
    """A heading and a table; nothing when there are no rows."""
    rows = list(rows)
    if rows:
        yield _heading(key, lang)
        yield _table([say(head, lang) for head in heads], rows)


def _table(heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in heads)
    lines = [f"<tr>{head}</tr>"] if head else []
    for first, *others in rows:
        cells = "".join(f"<td>{_text(cell)}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{_text(first)}</th>{cells}</tr>')
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def _heading(key: str, lang: Lang, **parts: object) -> str:
    return f"<h2>{_text(say(key, lang, **parts))}</h2>"


def _text(text: str) -> str:
    return escape(plain(text))
