"""Small changes to a rule's condition. A rule is proved by its cases only if each such change breaks one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from llmedic.knowledge.conditions import BOUNDS

Raw = Mapping[str, object]

SHARE = 0.2
"""A bound is moved by a fifth: cases have to lie that near to it."""
SMALL = 5
"""Up to here a whole number counts something, so it is moved by one."""


def of(when: Raw) -> Iterator[tuple[str, Raw]]:
    """Every condition with one bound moved or one part left out, and what was done to it."""
    for key, value in when.items():
        if key in BOUNDS:
            assert isinstance(value, int | float)
            for bound in _moved(key, value):
                yield f"{key} {value} -> {bound:g}", {**when, key: bound}
        elif key in ("all", "any"):
            yield from _parts(when, key, cast("list[Raw]", value))
        elif key in ("not", "unless"):
            for label, part in of(cast("Raw", value)):
                yield f"{key}: {label}", {**when, key: part}


def _parts(when: Raw, key: str, parts: list[Raw]) -> Iterator[tuple[str, Raw]]:
    for position, part in enumerate(parts):
        before, after = parts[:position], parts[position + 1 :]
        if len(parts) > 1:
            yield f"without {part}", {**when, key: [*before, *after]}
        for label, changed in of(part):
            yield f"{part}: {label}", {**when, key: [*before, changed, *after]}


def _moved(key: str, bound: float) -> tuple[float, float]:
    counted = bound == int(bound) and abs(bound) <= SMALL
    step = 1.0 if counted or key == "equals" else SHARE * abs(bound)
    return bound - step, bound + step
