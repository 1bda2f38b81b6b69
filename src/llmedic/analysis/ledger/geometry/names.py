"""Which modules a quantisation means: names, globs and regular expressions, as the checkpoint tools write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

LAYER = re.compile(r"^(?:.*\.)?layers\.(\d+)(?:\*$|$|\.(.*))")
EVERY_LAYER = re.compile(r"^(?:.*\.)?layers\.\*\.(.*)")
RUNAWAY = re.compile(r"[)\]][*+{][^)]*\)[*+{]|[*+]\)[*+{]")
LONGEST_PATTERN = 1_000
PREFIXES = ("model.language_model.", "language_model.model.", "language_model.", "model.", "backbone.")


class Names:
    """A set of module names. `refused`: patterns that are not used because they are no valid regular expression.

    An entry means itself and everything below it. "re:…" is a regular expression, "*" a glob.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._layers: dict[int, list[str]] = {}
        self._every: list[str] = []
        self._patterns: list[re.Pattern[str]] = []
        self.refused: list[str] = []
        for entry in entries:
            self._add(entry)
        self.of_one_layer = bool(self._layers) or any(re.search(r"\d", found.pattern) for found in self._patterns)

    def _add(self, entry: str) -> None:
        if entry.startswith("re:"):
            compiled = _compiled(entry[3:])
            if compiled is None:
                self.refused.append(entry)
            else:
                self._patterns.append(compiled)
        elif found := LAYER.match(entry):
            self._layers.setdefault(int(found[1]), []).append(found[2] or "*")
        elif found := EVERY_LAYER.match(entry):
            self._every.append(found[1])
        else:
            self._every.append(_bare(entry))

    def match(self, layer: int | None, path: str) -> bool:
        """The module `path` of `layer` (None: outside the layers) is meant."""
        own = self._layers.get(layer, ()) if layer is not None else ()
        if any(_means(entry, path) for entry in own) or any(_means(entry, path) for entry in self._every):
            return True
        if not self._patterns:
            return False
        below = path if layer is None else f"layers.{layer}.{path}"
        return any(
            pattern.match(f"{prefix}{below}") for pattern in self._patterns for prefix in ("model.", "", *PREFIXES[:3])
        )


def _bare(entry: str) -> str:
    for prefix in PREFIXES:
        if entry.startswith(prefix):
            return entry.removeprefix(prefix)
    return entry


def _means(entry: str, path: str) -> bool:
    if "*" in entry:
        return fnmatchcase(path, entry) or fnmatchcase(path, f"*.{entry}")
    return path == entry or path.startswith(f"{entry}.") or f".{entry}." in f".{path}."


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """The expression; None when it is none, or could take for ever (a repetition of a repetition)."""
    if len(pattern) > LONGEST_PATTERN or RUNAWAY.search(pattern):
        return None
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None
