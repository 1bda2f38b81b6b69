"""A page of text for a terminal: paragraphs, tables and commands to copy, within a width, in any script.

A tool of the renderers, no renderer itself. rich is imported only when a page is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Literal

from llmedic.knowledge.texts import Lang, label
from llmedic.model.plain import plain

if TYPE_CHECKING:
    from rich.text import Text

WIDTH = 80
INDENT = 2
GUTTER = 2
LEAST_COLUMN = 10
"""Other columns give way to the first down to this width; below it, the first folds too."""


class Page:
    """Collects the lines of a report. Parts of a line are (text, style) pairs; text from outside steers no terminal."""

    def __init__(self, *, lang: Lang, width: int = WIDTH, colour: bool = False) -> None:
        from rich.console import Console

        self.lang: Lang = lang
        self.width = width
        self._out = StringIO()
        self._console = Console(
            file=self._out, width=width, force_terminal=colour, no_color=not colour,
            color_system="standard" if colour else None,
            highlight=False, markup=False, emoji=False, legacy_windows=False, _environ={},
        )  # fmt: skip

    def show(self) -> str:
        """All that was written, without blanks at the ends of lines, with a final newline."""
        return "\n".join(line.rstrip() for line in self._out.getvalue().splitlines()).strip("\n") + "\n"

    def blank(self) -> None:
        """An empty line."""
        self._console.print()

    def heading(self, words: str) -> None:
        """A heading, underlined where there is colour."""
        self.line((words, "bold underline"))

    def line(self, *parts: tuple[str, str], indent: int = 0, hang: int = 0) -> None:
        """One paragraph: wrapped at the width, every line indented, lines after the first by `hang` more."""
        text = _text(parts)
        lines = text.wrap(self._console, max(20, self._console.width - indent - hang))
        for position, line in enumerate(lines):
            line.rstrip()
            pad = " " * (indent + (hang if position else 0))
            self._console.print(_text(((pad, ""),)).append_text(line), soft_wrap=True)

    def command(self, name: str, command: str, *, indent: int) -> None:
        """Something to copy: a command that does not fit stands on its own line, never broken."""
        head = _text(((" " * indent + name + label("colon", self.lang), "dim"),))
        line = _text(((command, "cyan"),))
        if head.cell_len + line.cell_len > self._console.width:
            self._console.print(head, soft_wrap=True)
            head = _text(((" " * (indent + 2), ""),))
        self._console.print(head.append_text(line), soft_wrap=True)

    def pairs(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Names in a column, and beside each what belongs to it, wrapped in a column of its own."""
        from rich.cells import cell_len, set_cell_size

        column = max((cell_len(plain(name)) for name, _ in pairs), default=0) + GUTTER
        for name, words in pairs:
            wrapped = _text(((words, ""),)).wrap(self._console, max(20, self.width - INDENT - column))
            for position, line in enumerate(wrapped or [_text(())]):
                line.rstrip()
                head = " " * INDENT + set_cell_size("" if position else plain(name), column)
                self._console.print(_text(((head, "dim"),)).append_text(line), soft_wrap=True)
        self.blank()

    def table(
        self,
        heads: Sequence[str],
        rows: Sequence[tuple[str, ...]],
        *,
        styles: Sequence[str] = (),
        numbers: Iterable[int] = (),
    ) -> None:
        """Rows in columns that all fit the width; `styles` colours the second column, `numbers` stand to the right."""
        from rich.padding import Padding
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, GUTTER, 0, 0), header_style="dim")
        to_the_right = set(numbers)
        columns = [list(column) for column in zip(heads, *rows, strict=True)]
        for position, width in enumerate(_widths(columns, self._console.width - INDENT)):
            justify: Literal["left", "right"] = "right" if position in to_the_right else "left"
            table.add_column(heads[position], overflow="fold", width=width, justify=justify)
        for position, row in enumerate(rows):
            cells = [_text(((cell, styles[position] if styles and column == 1 else ""),))
                     for column, cell in enumerate(row)]  # fmt: skip
            table.add_row(*cells)
        self._console.print(Padding(table, (0, 0, 0, INDENT)))
        self.blank()


def _text(parts: Iterable[tuple[str, str]]) -> Text:
    from rich.text import Text

    return Text.assemble(*((plain(part), style) for part, style in parts))


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """A width for every column so that all fit: the widest gives way first, the first column last.

    What stands in the first column can be looked up, so it is kept whole while the others can still fold.
    """
    from rich.cells import cell_len

    widths = [max(cell_len(cell) for cell in column) for column in columns]
    for _ in range(sum(widths) + GUTTER * (len(widths) - 1) - room):
        others = range(1, len(widths))
        widest = max(others, key=lambda position: widths[position], default=0)
        widths[widest if widths[widest] > LEAST_COLUMN else 0] -= 1
    return [max(1, width) for width in widths]
