"""Which modules a quantisation means: names, globs and regular expressions, as the checkpoint tools write them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

LAYER = re.compile(r"^(?:.*\.)?layers\.(\d+)(?:\*$|$|\.(.*))")
EVERY_LAYER = re.compile(r"^(?:.*\.)?layers\.\*\.(.*)")
RUNAWAY = re.compile(r"[)\]][*+{][^)]*\)[*+{]|[*+]\)[*+{]")
FEED_FORWARD = re.compile(r"\b(block_sparse_moe|feed_forward)\.")
"""What some families call the module that is "mlp" here."""
EXPERT = re.compile(r"experts\.\d+")
MIXTRAL = re.compile(r"\bw[123]\b")
MIXTRAL_NAMES = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
ENCODER_WORDS = ("vis", "audio", "image", "multi_modal", "mm_proj")
LONGEST_PATTERN = 1_000
PREFIXES = ("model.language_model.", "language_model.model.", "language_model.", "model.", "backbone.")


class Names:
    """A set of module names. An entry means itself and everything below it; "re:…" is a pattern, "*" a glob.

    mention_encoders, mention_drafts    an entry is about a vision or audio encoder, about draft layers
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._layers: dict[int, set[str]] = {}
        self._every: set[str] = set()
        self._patterns: list[re.Pattern[str]] = []
        found = set(entries)
        for entry in found:
            self._add(FEED_FORWARD.sub("mlp.", entry))
        self._numbered = any(re.search(r"\d", pattern.pattern) for pattern in self._patterns)
        self.mention_drafts = any("mtp" in entry or "nextn" in entry for entry in found)
        self.mention_encoders = any(word in entry for entry in found for word in ENCODER_WORDS)

    def _add(self, entry: str) -> None:
        if entry.startswith("re:"):
            if (compiled := _compiled(entry[3:])) is not None:
                self._patterns.append(compiled)
        elif found := LAYER.match(entry):
            self._layers.setdefault(int(found[1]), set()).add(_first_expert(found[2] or "*"))
        elif found := EVERY_LAYER.match(entry):
            self._every.add(found[1])
        else:
            self._every.add(_bare(entry))

    def signature(self, layer: int) -> Hashable:
        """What is meant in a layer: layers with the same answer are treated alike."""
        own = frozenset(self._layers.get(layer, ()))
        return (own, layer) if self._numbered else own

    def match(self, layer: int | None, path: str) -> bool:
        """The module `path` of `layer` (None: outside the layers) is meant."""
        own = self._layers.get(layer, ()) if layer is not None else ()
        if any(_means(entry, path) for entry in own) or any(_means(entry, path) for entry in self._every):
            return True
        if not self._patterns:
            return False
        below = path if layer is None else f"layers.{layer}.{path}"
        return any(pattern.match(prefix + below) for pattern in self._patterns for prefix in ("", *PREFIXES))


def _bare(entry: str) -> str:
    return next((entry.removeprefix(prefix) for prefix in PREFIXES if entry.startswith(prefix)), entry)


def _first_expert(entry: str) -> str:
    """Experts are alike: each is treated as the first one, which stands for all."""
    first = EXPERT.sub("experts.0", entry)
    return MIXTRAL.sub(lambda found: MIXTRAL_NAMES[found[0]], first) if "experts.0.w" in first else first


def _means(entry: str, path: str) -> bool:
    if "*" in entry:
        return fnmatchcase(path, entry) or fnmatchcase(f".{path}", f"*{entry}")
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
