"""Finds the lines of a big text that contain one of many literals, at the speed of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

LINE_BYTES = 8192
"""A longer line is cut: progress bars and dumped arguments can fill megabytes without a line end."""

_BEFORE_HIT = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A line and the literals found in it, as positions in the sequence the scanner was made from."""

    line: bytes
    found: tuple[int, ...]


class Scanner:
    """An automaton over the literals, made once for a whole run."""

    def __init__(self, literals: Sequence[str]) -> None:
        encoded = [literal.encode("ascii") for literal in literals]
        self._fast = BytesAhoCorasick(encoded, matchkind=MatchKind.Standard, implementation=Implementation.DFA)
        self._full = BytesAhoCorasick(encoded, matchkind=MatchKind.Standard)

    def lines(self, chunk: bytes) -> Iterator[Hit]:
        """The matching lines of a chunk, in order, each with the first literals that end in it."""
        find, rfind = chunk.find, chunk.rfind
        start = end = -1
        found: list[int] = []
        position = 0
        for literal, first, _ in self._fast.find_matches_as_indexes(chunk):
            if first < end:
                found.append(literal)
                continue
            if found:
                yield Hit(line=_cut(chunk, start, end, position), found=tuple(found))
            start = rfind(b"\n", 0, first) + 1
            end = find(b"\n", first)
            end = len(chunk) if end < 0 else end
            found, position = [literal], first
        if found:
            yield Hit(line=_cut(chunk, start, end, position), found=tuple(found))

    def every(self, line: bytes) -> tuple[int, ...]:
        """All literals in one line, overlapping ones too, each once."""
        return tuple(sorted({match[0] for match in self._full.find_matches_as_indexes(line, overlapping=True)}))


def _cut(chunk: bytes, start: int, end: int, position: int) -> bytes:
    if end - start <= LINE_BYTES:
        return chunk[start:end]
    if position - start < LINE_BYTES // 2:
        return chunk[start : start + LINE_BYTES]
    return chunk[max(start, position - _BEFORE_HIT) : min(end, position + LINE_BYTES // 2)]
