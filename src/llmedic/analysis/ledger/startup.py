"""What a start-up log printed of memory, held against what is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from llmedic.model.evidence import LogEvent
from llmedic.model.ledger import Ledger, Printed, Range

GIB = 2**30
PRINT_ROUNDING_BYTES = 0.005 * GIB
"""The engines print GiB with two decimals."""
SIZES: Mapping[str, Mapping[str, str]] = {
    "vllm-memory-usage": {
        "total": "total", "requested": "requested", "weights": "weights", "peak": "activation", "other": "non_torch",
        "graphs": "cuda_graphs", "pool": "kv_cache", "free": "free",
    },
    "vllm-memory-usage-consumed": {
        "total": "total", "requested": "requested", "consumed": "consumed", "peak": "activation",
        "graphs": "cuda_graphs", "pool": "kv_cache", "free": "free",
    },
    "vllm-profile-terms": {"weights": "weights", "peak": "activation", "other": "non_torch", "consumed": "consumed"},
    "vllm-profile-v0": {"weights": "weights", "peak": "activation", "other": "non_torch", "pool": "kv_cache"},
    "vllm-profile-v066": {"total": "total", "peak": "torch_peak", "other": "non_torch", "pool": "kv_cache"},
    "vllm-usable-memory-v0": {"total": "total", "requested": "requested"},
    "vllm-requested-memory": {"requested": "requested", "free": "free"},
    "vllm-free-memory-low": {"total": "total", "desired": "requested", "free": "free"},
    "vllm-weights": {"gib": "weights"},
    "vllm-phase-load-weights": {"gib": "weights"},
    "vllm-graph-estimate": {"gib": "cuda_graphs_estimate"},
    "vllm-graph-pool": {"actual": "cuda_graphs", "estimated": "cuda_graphs_estimate"},
    "vllm-captured": {"gib": "cuda_graphs"},
    "vllm-decoder-reserve": {"gib": "media_decoder"},
    "vllm-pool-given": {"pool": "kv_cache", "free": "free"},
    "vllm-kv-below-length-gib": {"available": "kv_cache", "needed": "one_request"},
    "vllm-pool-gib": {"gib": "kv_cache"},
}  # fmt: skip
"""Log pattern -> its field in GiB -> the term it is. The earlier pattern counts: it lists all terms of one rank."""
COUNTS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "vllm-pool-tokens": {"tokens": ("kv_tokens", "tokens")},
    "vllm-pool-blocks": {"blocks": ("blocks", "blocks")},
    "vllm-pool-blocks-device": {"blocks": ("blocks", "blocks")},
    "vllm-pool-concurrency": {"times": ("concurrency", "requests")},
}
"""Log pattern -> its field -> what it counts, and the unit."""
TIGHTEST = frozenset({"kv_cache", "kv_tokens", "blocks", "concurrency", "free", "total", "requested"})
"""Of several ranks the smallest counts for these, the largest for what is taken."""


def printed(events: Iterable[LogEvent]) -> tuple[Printed, ...]:
    """Every size and count of the log once, in the order of the table; of several ranks the one that decides."""
    by_pattern: dict[str, list[LogEvent]] = {}
    for event in events:
        by_pattern.setdefault(event.id.partition("-at-")[0], []).append(event)
    found: dict[str, Printed] = {}
    for pattern, fields in SIZES.items():
        for field, name in fields.items():
            value = _deciding(name, by_pattern.get(pattern, ()), field)
            if value is not None and name not in found:
                found[name] = Printed(id=name, value=value * GIB)
    for pattern, counts in COUNTS.items():
        for field, (name, unit) in counts.items():
            value = _deciding(name, by_pattern.get(pattern, ()), field)
            if value is not None and name not in found:
                found[name] = Printed(id=name, value=value, unit=unit)
    return tuple(found.values())


def _deciding(name: str, events: Iterable[LogEvent], field: str) -> float | None:
    values = [value for event in events if isinstance(value := event.fields.get(field), float)]
    if not values:
        return None
    return min(values) if name in TIGHTEST else max(values)


def beside(found: Iterable[Printed], ledger: Ledger) -> tuple[Printed, ...]:
    """The printed numbers with the computed ones beside them, where the ledger has them."""
    computed = _computed(ledger)
    return tuple(replace(one, computed=computed.get(one.id)) for one in found)


def _computed(ledger: Ledger) -> dict[str, Range]:
    terms = [*(term for term in (ledger.total, ledger.requested) if term), *ledger.terms, *ledger.outside]
    found = {term.id: term.size for term in terms}
    if "weights" in found and "non_torch" in found:
        found["consumed"] = _sum(found["weights"], found["non_torch"])
    if "weights" in found and "activation" in found:
        found["torch_peak"] = _sum(found["weights"], found["activation"])
    if ledger.pool is not None:
        found["kv_cache"] = ledger.pool.size
    if ledger.cache is not None:
        found |= {
            "kv_tokens": ledger.cache.printed_tokens,
            "blocks": ledger.cache.blocks,
            "concurrency": ledger.cache.concurrency,
        }
    return found


def _sum(first: Range, second: Range) -> Range:
    return Range(low=first.low + second.low, likely=first.likely + second.likely, high=first.high + second.high)


def rounded(value_bytes: float) -> Range:
    """The interval in which a size lies that was printed in GiB with two decimals."""
    return Range(low=value_bytes - PRINT_ROUNDING_BYTES, likely=value_bytes, high=value_bytes + PRINT_ROUNDING_BYTES)
