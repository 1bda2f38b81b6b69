"""Text from outside as Markdown: on one line, without becoming markup. A tool of the renderers, no renderer itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

from llmedic.model.plain import plain


def text(words: str) -> str:
    """Text from outside, kept on one line and from becoming markup."""
    flat = plain(" ".join(words.split()))
    for letter in "\\`*_[]<>|":
        flat = flat.replace(letter, f"\\{letter}")
    return flat


def code(command: str) -> str:
    """A command in a code span, whatever backticks it has in it."""
    flat = plain(" ".join(command.split()))
    longest = max((len(run) for run in re.findall("`+", flat)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def table(heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    """A table; cells are Markdown already."""
    heads = list(heads)
    lines = [" | ".join(heads), " | ".join("---" for _ in heads), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)
