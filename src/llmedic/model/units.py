"""How a number with a unit is written for people."""

from __future__ import annotations


def show(number: float, unit: str = "") -> str:
    """The number in the form people write it: 1.25 s, 38 ms, 62 %, 1,024 tokens.

    Ratios ("0..1") become percentages, seconds below one become milliseconds, and a rate is "3/s".
    """
    if number != number:
        return "NaN"
    if unit == "0..1":
        return f"{_short(number * 100)} %"
    if unit == "s" and 0 < abs(number) < 1:
        return f"{_short(number * 1000)} ms"
    if unit.startswith("1/"):
        return f"{_short(number)}{unit[1:]}"
    return f"{_short(number)} {unit}".rstrip() if unit not in ("-", "count", "code") else _short(number)


def _short(number: float) -> str:
    if number in (float("inf"), float("-inf")):
        return "∞" if number > 0 else "-∞"
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    magnitude = abs(number)
    digits = 0 if magnitude >= 1000 else 1 if magnitude >= 100 else 2 if magnitude >= 1 else 3
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
