"""Tells the variants of a pattern apart: a sentence means something else in another phase or with other numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from llmedic.knowledge import logs

Fields = Mapping[str, str | float]

_SMALL_GIB = 2.5
"""What a driver context, a desktop and a framework take on a card: more than that is somebody's tensors."""

_HELD_SHARE = 0.15

_UNITS = {"KiB": 1 / 1048576, "MiB": 1 / 1024, "GiB": 1.0, "TiB": 1024.0, "KB": 1 / 1048576, "MB": 1 / 1024, "GB": 1.0}
_SIZE = r"(?P<size>[\d.]+) (?P<unit>[KMGT]i?B)"
_MEMORY = {
    "tried_gib": re.compile(rf"Tried to allocate {_SIZE}"),
    "total_gib": re.compile(rf"total capac\w+ of {_SIZE}|(?P<size2>[\d.]+) (?P<unit2>[KMGT]i?B) total capacity"),
    "free_gib": re.compile(rf"of which {_SIZE} is free|(?P<size2>[\d.]+) (?P<unit2>[KMGT]i?B) free"),
    "process_gib": re.compile(rf"this process has {_SIZE} memory in use"),
    "torch_gib": re.compile(
        rf"memory {_SIZE} is allocated by PyTorch|(?P<size2>[\d.]+) (?P<unit2>[KMGT]i?B) already allocated"
    ),
}
_OTHERS = re.compile(rf"Process \d+ has {_SIZE} memory in use")


def memory_fields(text: str) -> dict[str, float]:
    """The numbers of an out-of-memory message of PyTorch, in GiB, of 1.x and 2.x wording."""
    found: dict[str, float] = {}
    for name, pattern in _MEMORY.items():
        match = pattern.search(text)
        if match is not None:
            found[name] = _gib(match)
    others = [_gib(match) for match in _OTHERS.finditer(text)]
    if "process_gib" in found:
        found["others_gib"] = sum(others)
    elif len(others) == 1:
        found["process_gib"] = others[0]
    elif others and "torch_gib" in found:
        own = min(others, key=lambda size: abs(size - found["torch_gib"]) if size >= found["torch_gib"] else size + 1e6)
        found["process_gib"] = own
        found["others_gib"] = sum(others) - own
    return found


def _gib(match: re.Match[str]) -> float:
    groups = match.groupdict()
    size, unit = (groups["size"], groups["unit"]) if groups.get("size") else (groups["size2"], groups["unit2"])
    try:
        return float(size) * _UNITS.get(unit, 1.0)
    except ValueError:
        return 0.0


def choose(key: str, fields: Fields, phase: str) -> str:
    """The id of the variant that fits, or `key` itself when none is known."""
    for suffix in _suffixes(key, fields, phase):
        variant = f"{key}{logs.VARIANT}{suffix}"
        if variant in logs.homes():
            return variant
    return key


def _suffixes(key: str, fields: Fields, phase: str) -> tuple[str, ...]:
    code = fields.get("code")
    if code is not None:
        return (str(int(code)) if isinstance(code, float) else str(code),)
    if key == "vllm-free-memory-low":
        free, total = _number(fields, "free"), _number(fields, "total")
        return ("small-gap",) if total - free <= _SMALL_GIB else ("held",) if total - free > 2 * _SMALL_GIB else ()
    total, others = _number(fields, "total_gib"), _number(fields, "others_gib")
    if total and others > max(_SMALL_GIB, _HELD_SHARE * total):
        return ("held",)
    return (phase,) if phase else ()


def _number(fields: Fields, name: str) -> float:
    value = fields.get(name, 0.0)
    return value if isinstance(value, float) else 0.0
