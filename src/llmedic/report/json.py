"""The machine-readable verdict, `llmedic.verdict/1`: keys in a fixed order.

Ids, states, values and what they are held against are the same in every language; titles, summaries and what is
expected of a change are in the one asked for.
The schema is in docs/reference/verdict-1.schema.json. Within version 1 keys are only added, never renamed.
"""

from __future__ import annotations

import json
from typing import Any

from llmedic.model.finding import Fact
from llmedic.model.plain import escaped
from llmedic.model.verdict import Cause, Change, Verdict

SCHEMA = "llmedic.verdict/1"


def render(verdict: Verdict) -> str:
    """The verdict as indented JSON text, UTF-8 letters as they are, with a final newline.

    Only what would steer a terminal is spelled as an escape.
    """
    return escaped(json.dumps(document(verdict), ensure_ascii=False, indent=2)) + "\n"


def document(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain lists and dicts."""
    return {
        "schema": SCHEMA,
        "health": verdict.health,
        "layers": [
            {"layer": layer.layer, "status": layer.status, "summary": layer.summary} for layer in verdict.layers
        ],
        "causes": [_cause(cause) for cause in verdict.causes],
        "cannot_tell": list(verdict.cannot_tell),
        "gaps": [{"what": gap.what, "why": gap.why, "how": gap.how} for gap in verdict.gaps],
        "disagreements": [
            {"about": item.about, "first": _fact(item.first), "second": _fact(item.second), "meaning": item.meaning}
            for item in verdict.disagreements
        ],
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "id": cause.id,
        "layer": cause.layer,
        "severity": cause.severity,
        "confidence": round(cause.confidence, 3),
        "title": cause.title,
        "summary": cause.summary,
        "evidence": [_fact(fact) for fact in cause.evidence],
        "symptoms": list(cause.symptoms),
        "change": _change(cause.change) if cause.change else None,
    }


def _fact(fact: Fact) -> dict[str, str]:
    return {
        "name": fact.name,
        "value": fact.value,
        "unit": fact.unit,
        "window": fact.window,
        "source": fact.source,
        "compared_to": fact.compared_to,
    }


def _change(change: Change) -> dict[str, str]:
    return {
        "variable": change.variable,
        "from": change.from_,
        "to": change.to,
        "expected": change.expected,
        "verify": change.verify,
    }
