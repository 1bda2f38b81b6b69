"""The verdict for a person at a terminal, woken at night: the answer first, then what supports it.

Every state is a word as well as a colour, so it reads the same in a pipe, in a ticket and without colour.
rich is imported only here, and only when a report is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from llmedic.knowledge import causes, phrases
from llmedic.knowledge.texts import Lang, label
from llmedic.model.evidence import Gap
from llmedic.model.finding import Fact
from llmedic.model.plain import plain
from llmedic.model.verdict import BindingLimit, Cause, Change, Disagreement, Layer, Verdict
from llmedic.report import words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDTH = 80
MOST_IDS = 6
"""Undecided causes that are named; the rest is counted."""


_HEALTH_STYLE = {"healthy": "bold green", "degraded": "bold yellow", "down": "bold red", "unknown": "bold magenta"}
_STATUS_STYLE = {"ok": "green", "cause": "bold red", "symptom": "yellow", "not-evaluated": "dim"}
_INDENT, _GUTTER = 2, 2
_LEAST_COLUMN = 10
"""Other columns give way to the first down to this width; below it, the first folds too."""
_STATUS_MARK = {"ok": "+", "cause": "!", "symptom": "~", "not-evaluated": "?"}
_SEVERITY_STYLE = {"info": "bold cyan", "warning": "bold yellow", "critical": "bold red"}


def render(verdict: Verdict, *, lang: Lang = "en", width: int = WIDTH, colour: bool = False) -> str:
    """The report as text of at most `width` columns, with ANSI colours if asked for."""
    from rich.console import Console

    out = StringIO()
    console = Console(
        file=out, width=width, force_terminal=colour, no_color=not colour, color_system="standard" if colour else None,
        highlight=False, markup=False, emoji=False, legacy_windows=False, _environ={},
    )  # fmt: skip
    page = _Page(console, lang)
    page.verdict(verdict)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n") + "\n"


class _Page:
    """Writes the parts of a verdict to a console, one method per part."""

    def __init__(self, console: Console, lang: Lang) -> None:
        self._console = console
        self._lang: Lang = lang

    def verdict(self, verdict: Verdict) -> None:
        self._head(verdict)
        if verdict.restart_warning:
            self._line(("! " + self._say("restart"), "bold red"))
            self._blank()
        if verdict.causes:
            self._cause(verdict.causes[0])
        else:
            self._line((self._say("healthy" if verdict.health == "healthy" else "undecided"), "bold"))
            self._blank()
        if verdict.binding:
            self._binding(verdict.binding)
        self._layers(verdict.layers)
        self._others(verdict.causes[1:])
        self._disagreements(verdict.disagreements)
        self._gaps(verdict.gaps)
        self._undecided(verdict.cannot_tell)

    def _head(self, verdict: Verdict) -> None:
        health = self._say(f"health.{verdict.health}")
        parts = [("LLMedic: ", "bold"), (health, _HEALTH_STYLE.get(verdict.health, "bold"))]
        if verdict.engine:
            parts.append((f"  ({verdict.engine})", "dim"))
        self._line(*parts)
        self._blank()

    def _cause(self, cause: Cause) -> None:
        self._cause_head(cause)
        self._line((cause.summary, ""), indent=2)
        self._blank()
        self._facts(cause.evidence)
        if cause.change:
            self._change(cause.id, cause.change)
        if cause.symptoms:
            self._heading("beneath")
            for symptom in cause.symptoms:
                self._line(("- " + self._named(symptom), ""), indent=2, hang=2)
            self._blank()

    def _cause_head(self, cause: Cause) -> None:
        if cause.id in causes.SPECIAL:
            self._line((cause.title, "bold"))
            return
        sure = self._say("sure").format(percent=round(cause.confidence * 100))
        severity = self._say(f"severity.{cause.severity}")
        self._line((f"{severity}  ", _SEVERITY_STYLE[cause.severity]), (cause.title, "bold"))
        self._line((f"{cause.id}, {self._say(f'layer.{cause.layer}')}, {sure}", "dim"), indent=2)

    def _facts(self, facts: Sequence[Fact]) -> None:
        said = [words.in_words(fact, self._lang) for fact in facts]
        rows = [(fact.name, words.value(fact), fact.compared_to, words.origin(fact)) for fact in said]
        if not rows:
            return
        heads = ("observation", "value", "compared", "source")
        used = [column for column in range(len(heads)) if any(row[column] for row in rows)]
        self._heading("evidence")
        self._table([heads[column] for column in used], [tuple(row[column] for column in used) for row in rows])

    def _change(self, cause: str, change: Change) -> None:
        self._heading("change")
        if cause in causes.ids():
            self._line((getattr(causes.cause(cause).remedy, self._lang), ""), indent=2)
        self._line((words.change(change, self._lang), "bold green"), indent=2, hang=2)
        if change.add:
            self._command("add", change.add, indent=2)
        if change.drop:
            self._command("drop", change.drop, indent=2)
        self._line((self._say("expected") + self._say("colon"), "dim"), (change.expected, ""), indent=2, hang=2)
        self._command("verify", change.verify, indent=2)
        self._blank()

    def _binding(self, binding: BindingLimit) -> None:
        self._heading("binding")
        self._line((binding.summary, ""), indent=2)
        self._blank()

    def _layers(self, layers: Sequence[Layer]) -> None:
        rows = [
            (
                self._say(f"layer.{layer.layer}"),
                f"{_STATUS_MARK.get(layer.status, ' ')} {self._say(f'status.{layer.status}')}",
                layer.summary,
            )
            for layer in layers
        ]
        if rows:
            self._heading("layers")
            self._table(("layer", "status", "summary"), rows, styles=[_STATUS_STYLE.get(x.status, "") for x in layers])

    def _others(self, others: Sequence[Cause]) -> None:
        for position, cause in enumerate(others):
            if position == 0:
                self._heading("others")
            sure = self._say("sure").format(percent=round(cause.confidence * 100))
            self._line(
                ("- ", ""), (f"{self._say(f'severity.{cause.severity}')} ", _SEVERITY_STYLE[cause.severity]),
                (f"{cause.title} ({sure})", ""), indent=2, hang=2,
            )  # fmt: skip
            for fact in cause.evidence[:2]:
                self._line((self._fact_line(fact), ""), indent=4, hang=2)
            self._line((self._say("more").format(id=cause.id), "cyan"), indent=4)
        if others:
            self._blank()

    def _disagreements(self, items: Sequence[Disagreement]) -> None:
        for position, item in enumerate(items):
            if position == 0:
                self._heading("disagreements")
            about = phrases.chinese(item.about) if self._lang == "zh" else item.about
            self._line((f"- {about}{self._say('colon')}", "bold"), (item.meaning, ""), indent=2, hang=2)
            for fact in (item.first, item.second):
                self._line((self._fact_line(fact), ""), indent=4, hang=2)
        if items:
            self._blank()

    def _gaps(self, gaps: Sequence[Gap]) -> None:
        for position, gap in enumerate(words.gap(one, self._lang) for one in gaps):
            if position == 0:
                self._heading("gaps")
            self._line((f"- {gap.what}{self._say('colon')}", "bold"), (gap.why, ""), indent=2, hang=2)
            if gap.how:
                self._command("how", gap.how, indent=4)
        if gaps:
            self._blank()

    def _undecided(self, ids: tuple[str, ...]) -> None:
        if ids:
            self._heading("cannot-tell")
            more = [self._say("and-more").format(count=len(ids) - MOST_IDS)] if len(ids) > MOST_IDS else []
            self._line((", ".join([*ids[:MOST_IDS], *more]), ""), indent=2)

    def _named(self, below: str) -> str:
        title, name = words.named(below, self._lang)
        return f"{title} ({name})" if name else title

    def _fact_line(self, fact: Fact) -> str:
        return words.line(words.in_words(fact, self._lang))

    def _say(self, key: str) -> str:
        return label(key, self._lang)

    def _heading(self, key: str) -> None:
        self._line((self._say(key), "bold underline"))

    def _command(self, key: str, command: str, *, indent: int) -> None:
        """Something to copy: a command that does not fit stands on its own line, never broken."""
        name = self._text(((" " * indent + self._say(key) + self._say("colon"), "dim"),))
        line = self._text(((command, "cyan"),))
        if name.cell_len + line.cell_len > self._console.width:
            self._console.print(name, soft_wrap=True)
            name = self._text(((" " * (indent + 2), ""),))
        self._console.print(name.append_text(line), soft_wrap=True)

    def _blank(self) -> None:
        self._console.print()

    def _line(self, *parts: tuple[str, str], indent: int = 0, hang: int = 0) -> None:
        """One paragraph: wrapped at the width, every line indented, lines after the first by `hang` more."""
        text = self._text(parts)
        lines = text.wrap(self._console, max(20, self._console.width - indent - hang))
        for position, line in enumerate(lines):
            line.rstrip()
            pad = " " * (indent + (hang if position else 0))
            self._console.print(self._text(((pad, ""),)).append_text(line), soft_wrap=True)

    def _text(self, parts: Iterable[tuple[str, str]]) -> Text:
        from rich.text import Text

        return Text.assemble(*((plain(part), style) for part, style in parts))

    def _table(self, heads: Iterable[str], rows: Iterable[tuple[str, ...]], styles: Iterable[str] = ()) -> None:
        from rich.padding import Padding
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, _GUTTER, 0, 0), header_style="dim")
        heads, rows, shades = list(heads), list(rows), list(styles)
        names = [self._say(head) for head in heads]
        columns = [list(column) for column in zip(names, *rows, strict=True)]
        for name, width in zip(names, _widths(columns, self._console.width - _INDENT), strict=True):
            table.add_column(name, overflow="fold", width=width)
        for position, row in enumerate(rows):
            cells = [self._text(((cell, shades[position] if shades and column == 1 else ""),))
                     for column, cell in enumerate(row)]  # fmt: skip
            table.add_row(*cells)
        self._console.print(Padding(table, (0, 0, 0, _INDENT)))
        self._blank()


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """A width for every column so that all fit: the widest gives way first, the first column last.

    What stands in the first column can be looked up, so it is kept whole while the others can still fold.
    """
    from rich.cells import cell_len

    widths = [max(cell_len(cell) for cell in column) for column in columns]
    for _ in range(sum(widths) + _GUTTER * (len(widths) - 1) - room):
        others = range(1, len(widths))
        widest = max(others, key=lambda position: widths[position], default=0)
        widths[widest if widths[widest] > _LEAST_COLUMN else 0] -= 1
    return [max(1, width) for width in widths]
