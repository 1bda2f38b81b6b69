"""Counts the tensors of a checkpoint together by what they are: 100,000 names become a few thousand groups."""

from __future__ import annotations

from collections.abc import Iterable

from llmedic.errors import InputError
from llmedic.model.deployment import TensorGroup

MAX_GROUPS = 50_000
"""Ten times what the largest checkpoints have; more only come from a file that is made up."""
MAX_NAME = 256
_LAYERS = frozenset({"layers", "layer", "h", "blocks", "block", "blk"})
"""What the number of a layer follows: "model.layers.3", "transformer.h.3", "blk.3"."""
_Key = tuple[str, int | None, str]


class Tally:
    """Adds up tensors file by file."""

    def __init__(self) -> None:
        self._sums: dict[_Key, list[int]] = {}

    def add(self, name: str, dtype: str, parameters: int, bytes_: int) -> None:
        """One tensor more. Raises InputError for names that no checkpoint has."""
        key = (*_pattern(name), dtype)
        sums = self._sums.get(key)
        if sums is None:
            self._check(key[0])
            sums = self._sums[key] = [0, 0, 0]
        sums[0] += 1
        sums[1] += parameters
        sums[2] += bytes_

    def groups(self) -> tuple[TensorGroup, ...]:
        """What was added, in the order in which each group was first met."""
        return tuple(
            TensorGroup(name=name, layer=layer, dtype=dtype, tensors=sums[0], parameters=sums[1], bytes=sums[2])
            for (name, layer, dtype), sums in self._sums.items()
        )

    def _check(self, name: str) -> None:
        if len(self._sums) >= MAX_GROUPS:
            raise InputError(
                f"more than {MAX_GROUPS:,} tensors with nothing in common", hint="is this a language model's file?"
            )
        if len(name) > MAX_NAME or not name.isprintable():
            raise InputError("a tensor has a name that no model has", hint="is this a language model's file?")


def _pattern(name: str) -> tuple[str, int | None]:
    """The name without its numbers, and the layer it is of."""
    layer = None
    parts = name.split(".")
    for position, part in enumerate(parts):
        if part.isdigit() and part.isascii() and len(part) < 10:
            if layer is None and position and parts[position - 1] in _LAYERS:
                layer = int(part)
            parts[position] = "{}"
    return ".".join(parts), layer


def rows(groups: Iterable[TensorGroup]) -> list[list[object]]:
    """The groups as JSON rows, which `of_rows` reads."""
    return [[one.name, one.layer, one.dtype, one.tensors, one.parameters, one.bytes] for one in groups]


def of_rows(found: Iterable[tuple[str, int | None, str, int, int, int]]) -> tuple[TensorGroup, ...]:
    """The groups of such rows."""
    return tuple(
        TensorGroup(name=name, layer=layer, dtype=dtype, tensors=tensors, parameters=parameters, bytes=bytes_)
        for name, layer, dtype, tensors, parameters, bytes_ in found
    )
