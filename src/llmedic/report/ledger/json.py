"""The ledger for a program, `llmedic.ledger/1`: keys in a fixed order, sizes in whole bytes.

An interval is {low, likely, high}, equal where the number is exact. Ids, states and settings are the same in every
language; sentences are in the one asked for. The schema is in docs/reference/ledger-1.schema.json. Within version 1
keys are only added, never renamed.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from llmedic.knowledge.texts import Lang
from llmedic.model.geometry import CacheLayer, Geometry
from llmedic.model.ledger import CacheFit, ContextCost, Ledger, LedgerReport, Planned, Range, Solution, Term
from llmedic.model.plain import escaped
from llmedic.report import words as general
from llmedic.report.ledger.words import sentence

SCHEMA = "llmedic.ledger/1"


def render(report: LedgerReport, *, lang: Lang = "en") -> str:
    """The ledger as indented JSON text with a final newline; only what would steer a terminal is escaped."""
    return escaped(json.dumps(document(report, lang), ensure_ascii=False, indent=2, allow_nan=False)) + "\n"


def document(report: LedgerReport, lang: Lang = "en") -> dict[str, Any]:
    """The ledger as plain lists and dicts."""
    ledger = report.ledger
    return {
        "schema": SCHEMA,
        "starts": ledger.starts,
        "model": report.model_name,
        "accelerator": report.accelerator,
        "devices": ledger.devices,
        "engine": ledger.engine,
        "version": ledger.version,
        "era": ledger.era,
        "formula": sentence(ledger.formula, lang),
        "total": _term(ledger.total, lang),
        "requested": _term(ledger.requested, lang),
        "terms": [_term(term, lang) for term in ledger.terms],
        "pool": _term(ledger.pool, lang),
        "outside": [_term(term, lang) for term in ledger.outside],
        "cache": _cache(ledger.cache),
        "geometry": _geometry(ledger.geometry, lang),
        "problems": _problems(ledger, lang),
        "printed": [
            {
                "id": item.id,
                "unit": item.unit,
                "value": _number(item.value, item.unit),
                "computed": _interval(item.computed, item.unit),
                "residual": None if item.residual is None else _number(item.residual, item.unit),
            }
            for item in report.printed
        ],
        "solutions": [_solution(one, lang) for one in report.solutions],
        "planned": _planned(report.planned),
        "settings": [{"flag": item.flag, "value": item.value, "origin": item.origin} for item in report.settings],
        "notes": [sentence(note, lang) for note in ledger.notes],
        "gaps": [
            {"what": gap.what, "why": gap.why, "how": gap.how}
            for gap in (general.gap(one, lang) for one in ledger.gaps)
        ],
    }


def _term(term: Term | None, lang: Lang) -> dict[str, Any] | None:
    if term is None:
        return None
    return {
        "id": term.id,
        "bytes": _interval(term.size, "bytes"),
        "basis": term.basis,
        "how": sentence(term.how, lang),
    }


def _cache(cache: CacheFit | None) -> dict[str, Any] | None:
    if cache is None:
        return None
    return {
        "bytes_per_block": cache.bytes_per_block,
        "block_tokens": cache.block_tokens,
        "groups": cache.groups,
        "bytes_per_token": round(cache.bytes_per_token, 3),
        "blocks": _interval(cache.blocks, "blocks"),
        "printed_tokens": _interval(cache.printed_tokens, "tokens"),
        "blocks_per_request": cache.blocks_per_request,
        "max_model_len": cache.max_model_len,
        "concurrency": _interval(cache.concurrency, "requests"),
        "longest_request": _interval(cache.longest_request, "tokens"),
    }


def _geometry(geometry: Geometry | None, lang: Lang) -> dict[str, Any] | None:
    """The model's shape in short: how many layers cache what, and what the weights are over all ranks."""
    if geometry is None:
        return None
    kinds = Counter(geometry.layers)
    return {
        "architecture": geometry.architecture,
        "layers": [_layer(layer, count) for layer, count in kinds.items()],
        "draft_layers": [_layer(layer, count) for layer, count in Counter(geometry.draft_layers).items()],
        "parameters": sum(part.parameters for part in geometry.weights),
        "weight_bytes": round(sum(part.bytes for part in geometry.weights)),
        "quantization": geometry.quantization,
        "unsure": [sentence(text, lang) for text in geometry.unsure],
    }


def _layer(layer: CacheLayer | None, count: int) -> dict[str, Any]:
    """Equal layers; "none" for those that cache nothing of their own."""
    return {
        "count": count,
        "kind": layer.kind if layer else "none",
        "kv_heads": layer.kv_heads if layer else 0,
        "head_dim": layer.head_dim if layer else 0,
        "window_tokens": layer.window_tokens if layer else 0,
        "latent_dim": layer.latent_dim if layer else 0,
    }


def _problems(ledger: Ledger, lang: Lang) -> list[dict[str, str]]:
    return [
        {
            "severity": problem.severity,
            "cause": problem.cause,
            "text": sentence(problem.text, lang),
            "change": problem.change,
        }
        for problem in ledger.problems
    ]


def _solution(one: Solution, lang: Lang) -> dict[str, Any]:
    return {
        "goal": one.goal,
        "change": one.change,
        "text": sentence(one.text, lang),
        "pool": _interval(one.pool, "bytes"),
        "concurrency": _interval(one.concurrency, "requests"),
    }


def _planned(plan: Planned | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    return {"now": _cost(plan.now), "then": _cost(plan.then), "concurrency": plan.concurrency}


def _cost(cost: ContextCost) -> dict[str, Any]:
    return {
        "tokens": cost.tokens,
        "blocks": cost.blocks,
        "quick_blocks": cost.quick_blocks,
        "requests": _interval(cost.requests, "requests"),
    }


def _interval(value: Range | None, unit: str) -> dict[str, int | float] | None:
    if value is None:
        return None
    return {name: _number(getattr(value, name), unit) for name in ("low", "likely", "high")}


def _number(number: float, unit: str) -> int | float:
    """Requests at once have decimals; bytes, blocks and tokens are whole."""
    return round(number, 3) if unit == "requests" else round(number)
