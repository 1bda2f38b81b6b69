"""The ledger at a terminal: the answer, a map of the device that is read in five seconds, then what supports it.

The map is drawn in ASCII, because block letters are two columns wide in some East Asian terminals: `#` is certain, `~`
is the part in which the end of a term lies, `!` is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llmedic.knowledge.texts import Lang
from llmedic.model.ledger import Ledger, LedgerReport, Planned, Problem, Solution
from llmedic.report import words as general
from llmedic.report.ledger import chart, numbers, words
from llmedic.report.page import GUTTER, INDENT, WIDTH, Page

if TYPE_CHECKING:
    from llmedic.model.evidence import Gap

LEAST_BAR = 10
"""Columns of a bar that still shows something; on a narrower page there is none."""

_STARTS_STYLE = {"yes": "bold green", "no": "bold red", "perhaps": "bold yellow", "unknown": "bold magenta"}
_SEVERITY_STYLE = {"info": "bold cyan", "warning": "bold yellow", "critical": "bold red"}
_ROW_STYLE = {"whole": "dim", "part": "", "pool": "bold green", "outside": "dim", "host": "dim"}
_SIGNS = {"whole": " ", "part": "-", "pool": "=", "outside": " ", "host": " "}


def render(report: LedgerReport, *, lang: Lang = "en", width: int = WIDTH, colour: bool = False) -> str:
    """The ledger as text of at most `width` columns, with ANSI colours if asked for."""
    page = _Ledger(lang=lang, width=width, colour=colour)
    page.report(report)
    return page.show()


class _Ledger(Page):
    """Writes the parts of a ledger, one method per part."""

    def report(self, report: LedgerReport) -> None:
        ledger = report.ledger
        self._head(report)
        for problem in ledger.problems:
            self._problem(problem)
        self._map(ledger)
        if ledger.cache:
            self.heading(self._say("holds"))
            self.pairs(list(words.holds(ledger.cache, self.lang)))
        self._printed(report)
        if report.planned:
            self._planned(report.planned)
        self._solutions(report.solutions)
        self._arithmetic(ledger)
        if report.settings:
            self.heading(self._say("settings"))
            self.pairs(list(words.settings(report.settings, self.lang)))
        self._notes(ledger.notes)
        self._gaps(ledger.gaps)

    def _head(self, report: LedgerReport) -> None:
        ledger = report.ledger
        starts = self._say(f"starts.{ledger.starts}")
        self.line((self._say("title") + self._say("colon"), "bold"), (starts, _STARTS_STYLE[ledger.starts]))
        about = words.subject(report, self.lang)
        if about:
            self.line((about, "dim"), indent=INDENT)
        self.line((words.answer(ledger, self.lang), "bold"), indent=INDENT)
        self.blank()

    def _problem(self, problem: Problem) -> None:
        style = _SEVERITY_STYLE[problem.severity]
        self.line(
            (self._say(f"severity.{problem.severity}") + "  ", style),
            (words.sentence(problem.text, self.lang), ""),
            hang=INDENT,
        )
        if problem.cause:
            self.line((f"llmedic explain {problem.cause}", "cyan"), indent=INDENT)
        if problem.change:
            self.command(self._say("change"), problem.change, indent=INDENT)
        self.blank()

    def _map(self, ledger: Ledger) -> None:
        lines = chart.rows(ledger)
        if not lines:
            return
        sizes = [numbers.gib(row.term.size) for row in lines]
        columns = [
            _column([self._name(row) for row in lines]),
            numbers.aligned([likely for likely, _ in sizes]),
            _column([interval for _, interval in sizes]),
            _column([_share(row) for row in lines], right=True),
        ]
        columns = [column for column in columns if any(map(str.strip, column))]
        room = self.width - INDENT - sum(cell_width(column[0]) + GUTTER for column in columns) - len("[]")
        if room >= LEAST_BAR:
            columns.append([f"[{bar(row, chart.extent(lines), room)}]" for row in lines])
        key = "map" if ledger.devices <= 1 else "map.of"
        self.heading(words.say(key, self.lang, devices=ledger.devices))
        for row, cells in zip(lines, zip(*columns, strict=True), strict=True):
            style = "bold red" if row.missing else _ROW_STYLE[row.kind]
            self.line(((" " * GUTTER).join(cells), style), indent=INDENT)
        self.blank()

    def _name(self, row: chart.Row) -> str:
        return f"{_SIGNS[row.kind]} {words.term_name(row.term.id, self.lang)}"

    def _printed(self, report: LedgerReport) -> None:
        rows = list(words.printed(report, self.lang))
        if rows:
            self.heading(self._say("printed"))
            heads = [self._say(key) for key in ("term", "engine", "computed", "residual")]
            self.table(heads, rows)

    def _planned(self, plan: Planned) -> None:
        self.heading(self._say("planned"))
        heads, rows = words.planned(plan, self.lang)
        self.table(heads, rows, numbers=range(1, len(heads)))
        verdict = words.fits(plan, self.lang)
        if verdict:
            self.line((verdict, "bold"), indent=INDENT)
            self.blank()

    def _solutions(self, solutions: tuple[Solution, ...]) -> None:
        if not solutions:
            return
        self.heading(self._say("solutions"))
        for one in solutions:
            goal, change, size = words.solution(one, self.lang)
            style = "bold green" if one.change else "bold red"
            self.line((f"- {goal}{self._say('colon')}", "bold"), (change, style), indent=INDENT, hang=INDENT)
            if size:
                self.line((size, ""), indent=2 * INDENT)
            self.line((words.sentence(one.text, self.lang), "dim"), indent=2 * INDENT)
        self.blank()

    def _arithmetic(self, ledger: Ledger) -> None:
        pairs = list(words.arithmetic(ledger, self.lang))
        if pairs:
            self.heading(self._say("arithmetic"))
            self.pairs(pairs)

    def _notes(self, notes: tuple[str, ...]) -> None:
        if notes:
            self.heading(self._say("notes"))
            for note in notes:
                self.line(("- " + words.sentence(note, self.lang), ""), indent=INDENT, hang=INDENT)
            self.blank()

    def _gaps(self, gaps: tuple[Gap, ...]) -> None:
        for position, gap in enumerate(general.gap(one, self.lang) for one in gaps):
            if position == 0:
                self.heading(self._say("gaps"))
            self.line((f"- {gap.what}{self._say('colon')}", "bold"), (gap.why, ""), indent=INDENT, hang=INDENT)
            if gap.how:
                self.command(self._say("how"), gap.how, indent=2 * INDENT)

    def _say(self, key: str) -> str:
        return words.say(key, self.lang)


def cell_width(text: str) -> int:
    """Columns that a text takes: two for a Chinese letter."""
    from rich.cells import cell_len

    return cell_len(text)


def _column(cells: list[str], *, right: bool = False) -> list[str]:
    from rich.cells import set_cell_size

    width = max(map(cell_width, cells))
    return [cell.rjust(width) if right else set_cell_size(cell, width) for cell in cells]


def _share(row: chart.Row) -> str:
    return "" if row.share is None else numbers.percent(row.share)


def bar(row: chart.Row, extent: float, width: int) -> str:
    """Where the row lies on the device, in `width` letters; whatever is there is at least one letter wide."""
    if extent <= 0:
        return " " * width
    first, sure, last = (round(at / extent * width) for at in (row.start, row.sure, max(row.stop, row.reach)))
    if row.missing:
        sure, last, letter = round(row.stop / extent * width), round(row.stop / extent * width), "!"
    else:
        letter = "#"
    if last <= first and row.stop > row.start:
        first = min(first, width - 1)
        last = sure = first + 1
    return (" " * first + letter * (sure - first) + "~" * (last - max(first, sure)))[:width].ljust(width)
