"""Scores a verdict against what a case expects. Shared by the corpus test and by `python -m tests.cases.score`.

right            the first cause is the expected one (or as good from this evidence), said with confidence >= 0.5
wrong            the first cause is another one, said with confidence >= 0.5
abstained        no cause, `cannot-tell`, or a hedge below 0.5
confidently wrong  the first cause is one the case forbids, or is wrong and said with confidence >= 0.7
false alarm      the case is a healthy control and the first cause is one that is not accepted
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SPECIAL = {"healthy", "cannot-tell"}
WEAK, SURE = 0.5, 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of one case."""

    id: str
    expected: str
    decidable: bool
    said: str
    confidence: float
    right: bool
    wrong: bool
    surely_wrong: bool
    false_alarm: bool


def judge(case: Mapping[str, Any], causes: Sequence[Mapping[str, Any]]) -> Row:
    """One verdict's causes, as in the machine-readable report, against the case's `expect`."""
    expect = case["expect"]
    accepted = {expect["cause"], *(expect.get("also_accept") or [])}
    ranked = sorted(causes, key=lambda cause: -cause["confidence"])
    said, confidence = (ranked[0]["id"], ranked[0]["confidence"]) if ranked else ("cannot-tell", 1.0)
    right = said in accepted and confidence >= WEAK
    other = said not in accepted and said != "cannot-tell"
    forbidden = said in (expect.get("must_not") or [])
    return Row(
        id=str(case["id"]),
        expected=expect["cause"],
        decidable=expect["cause"] not in SPECIAL and expect["decidable"] != "no",
        said=said,
        confidence=confidence,
        right=right,
        wrong=other and confidence >= WEAK,
        surely_wrong=other and (forbidden or confidence >= SURE),
        false_alarm=expect["cause"] == "healthy" and said not in SPECIAL and not right,
    )


def share(rows: Iterable[bool]) -> float:
    """How many of them hold, 0..1."""
    found = list(rows)
    return sum(found) / len(found) if found else 0.0


def summary(rows: Sequence[Row]) -> dict[str, float]:
    """The figures that the corpus is held to."""
    decidable = [row for row in rows if row.decidable]
    return {
        "right of decidable": share(row.right for row in decidable),
        "wrong of all": share(row.wrong for row in rows),
        "confidently wrong of all": share(row.surely_wrong for row in rows),
        "right ones said with 0.7": share(row.confidence >= SURE for row in decidable if row.right),
        "false alarms on healthy": float(sum(row.false_alarm for row in rows)),
    }
