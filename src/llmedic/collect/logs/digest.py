"""Keeps what matters of a log of any size in a few megabytes.

Rare lines are all kept. Of a line that is repeated for ever the first and the last are kept and the rest counted.
Statistics lines are thinned evenly, so that a week still fits and still shows its shape.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from llmedic.collect.logs.reader import scanner
from llmedic.knowledge import logs

FIRST = 150
LAST = 50
SAMPLES = 2000
FRAMES = 4000
BLOCK = 64
"""Statistics are thinned by whole blocks: the ranks of a server print in turn, and none may be thinned away."""

_FRAME_LITERAL = '", line '


@dataclass(slots=True)
class _Kept:
    """The lines of one literal: (position, line)."""

    first: list[tuple[int, bytes]] = field(default_factory=list)
    last: deque[tuple[int, bytes]] = field(default_factory=deque)
    count: int = 0
    stride: int = 1


class Digest:
    """Takes chunks that end at a line end; `body` and `dropped` give the result."""

    def __init__(self) -> None:
        literals = logs.literals()
        self._literals = tuple(literals)
        self._is_series = tuple(_series(keys) for keys in literals.values())
        self._limit = tuple(FRAMES if literal == _FRAME_LITERAL else FIRST for literal in literals)
        self._kept = [_Kept(last=deque(maxlen=LAST)) for _ in literals]
        self._position = 0
        self.lines = 0

    def take(self, chunk: bytes) -> None:
        """Keep the matching lines of a chunk."""
        self.lines += chunk.count(b"\n")
        position = self._position
        for hit in scanner().lines(chunk):
            position += 1
            self._keep(hit.found[0], position, hit.line)
            if len(hit.found) > 1:
                for index in set(hit.found) - {hit.found[0]}:
                    self._keep(index, position, hit.line)
        self._position = position

    def _keep(self, index: int, position: int, line: bytes) -> None:
        entry = self._kept[index]
        entry.count += 1
        if self._is_series[index]:
            self._sample(entry, position, line)
        elif len(entry.first) < self._limit[index]:
            entry.first.append((position, line))
        else:
            entry.last.append((position, line))

    def _sample(self, entry: _Kept, position: int, line: bytes) -> None:
        if (entry.count // BLOCK) % entry.stride:
            return
        entry.first.append((position, line))
        if len(entry.first) >= 2 * SAMPLES:
            entry.first = [line for index, line in enumerate(entry.first) if not (index // BLOCK) % 2]
            entry.stride *= 2

    def _entries(self) -> Iterator[tuple[str, _Kept]]:
        return zip(self._literals, self._kept, strict=True)

    def body(self) -> bytes:
        """The kept lines in the order of the log."""
        chosen: dict[int, bytes] = {}
        for entry in self._kept:
            chosen.update(entry.first)
            chosen.update(entry.last)
        return b"\n".join(line for _, line in sorted(chosen.items()))

    def dropped(self) -> str:
        """JSON: literal -> how many of its lines are not in the body."""
        kept = ((literal, entry.count, len(entry.first) + len(entry.last)) for literal, entry in self._entries())
        left = {literal: count - inside for literal, count, inside in kept if count > inside}
        return json.dumps(left) if left else ""


def _series(keys: tuple[str, ...]) -> bool:
    return any("\n  series: true" in logs.source(key) for key in keys)
