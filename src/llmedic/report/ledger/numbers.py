"""How sizes, counts and intervals of a ledger are written: no more digits than are known."""

from __future__ import annotations

from collections.abc import Sequence

from llmedic.model.ledger import Range

GIB = 2**30
_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def gib(size: Range) -> tuple[str, str]:
    """The likely GiB, and the interval as "34.1–36.5"; "" for a size known to the digits that are written."""
    digits = _digits(size)
    likely = _fixed(size.likely / GIB, digits)
    if (size.high - size.low) / GIB <= 2.01 * 10**-digits:  # printed to half a digit each way; one step more is noise
        return likely, ""
    return likely, _between(_fixed(size.low / GIB, digits), _fixed(size.high / GIB, digits))


def size(value: Range) -> str:
    """One size on its own: "35.34 GiB", or "35.3 GiB (34.1–36.5)"."""
    likely, interval = gib(value)
    return f"{likely} GiB" + (f" ({interval})" if interval else "")


def plain_bytes(number: float) -> str:
    """A size in the unit that suits it: "2 MiB", "70 KiB", "1,088 bytes" is "1.06 KiB"."""
    for unit, factor in _UNITS:
        if abs(number) >= factor:
            return f"{_trimmed(number / factor)} {unit}"
    return f"{_trimmed(number)} B"


def count(value: Range) -> str:
    """Tokens or blocks: "43,296", or with three digits where it is uncertain: "43,300 (40,100–46,200)"."""
    if value.exact:
        return f"{value.likely:,.0f}"
    low, likely, high = (f"{_rounded(number):,.0f}" for number in (value.low, value.likely, value.high))
    return likely if low == high else f"{likely} ({_between(low, high)})"


def often(value: Range) -> str:
    """How many requests at once: "4.74", or "4.7 (4.2–5.1)"."""
    digits = 2 if value.exact or value.high < 1 else 1
    low, likely, high = (f"{number:,.{digits}f}" for number in (value.low, value.likely, value.high))
    return likely if low == high else f"{likely} ({_between(low, high)})"


def times(value: Range) -> str:
    """A concurrency as engines print it: "4.74x", or "4.7x (4.2–5.1)"."""
    likely, space, interval = often(value).partition(" ")
    return f"{likely}x{space}{interval}"


def aligned(figures: Sequence[str]) -> list[str]:
    """Figures of one column, padded so that their decimal points stand below each other."""
    after = max((len(figure.partition(".")[2]) for figure in figures), default=0)
    padded = [figure + " " * (after - len(figure.partition(".")[2]) + ("." not in figure)) for figure in figures]
    width = max(map(len, padded), default=0)
    return [figure.rjust(width) for figure in padded]


def percent(share: float) -> str:
    """A share of a device: "92 %", "0.4 %"."""
    return f"{share * 100:.0f} %" if abs(share) >= 0.0095 or share == 0 else f"{share * 100:.1f} %"


def quantity(value: Range, unit: str) -> str:
    """A number of `model.ledger.Printed`: bytes as GiB, requests as engines print them, tokens and blocks counted."""
    if unit == "bytes":
        return size(value)
    return times(value) if unit == "requests" else count(value)


def difference(number: float, unit: str) -> str:
    """A residual: "+0.12 GiB", "-0.03x", "+16", "0"; what rounds to nothing has no sign."""
    if unit == "bytes":
        return f"{_signed(number / GIB, 2)} GiB"
    return f"{_signed(number, 2)}x" if unit == "requests" else _signed(number, 0)


def _digits(value: Range) -> int:
    """Two; one where the interval is wider than half a GiB; three or four for what would be 0.00."""
    if (value.high - value.low) / GIB > 0.5:
        return 1
    largest = max(abs(value.low), abs(value.high)) / GIB
    return 2 if largest >= 0.095 or largest == 0 else 3 if largest >= 0.0095 else 4


def _fixed(number: float, digits: int) -> str:
    text = f"{number:,.{digits}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def _signed(number: float, digits: int) -> str:
    text = _fixed(number, digits)
    return text if text.startswith("-") or not text.strip("0.") else f"+{text}"


def _between(low: str, high: str) -> str:
    return f"{low} – {high}" if low.startswith("-") else f"{low}–{high}"


def _trimmed(number: float) -> str:
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def _rounded(number: float) -> float:
    """To three significant digits."""
    return float(f"{number:.3g}")
