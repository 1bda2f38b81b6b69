"""What a start-up log printed of memory, held against what is computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from llmedic.analysis.ledger.printedlines import ADDED, COUNTS, DEVICES, RANKS, TIGHTEST, is_host
from llmedic.analysis.ledger.ranges import GIB, less, stacked
from llmedic.knowledge import logs, releases
from llmedic.model.evidence import LogEvent, Reading
from llmedic.model.ledger import Ledger, Printed, Range

PRINT_ROUNDING_BYTES = 0.005 * GIB
"""The engines print GiB with two decimals."""
GRAPHS_IN_PEAK_SINCE = (0, 27)
"""Since then vLLM's "peak activation" holds the estimate of CUDA graphs (determine_available_memory in
vllm/v1/worker/gpu_worker.py)."""
_Lines = Mapping[str, Sequence[Reading]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """What a log says of memory: of its last start, and of the rank or card that decides.

    starts  servers that were started in this log; notes: what in it cannot be
    """

    printed: tuple[Printed, ...] = ()
    starts: int = 1
    notes: tuple[str, ...] = ()

    def size(self, name: str) -> float | None:
        """Bytes that were printed for a term."""
        return next((one.value for one in self.printed if one.id == name and one.unit == "bytes"), None)


def read(events: Iterable[LogEvent], version: str = "") -> Startup:
    """Every size and count of the last start once. version: the release, where it is known."""
    recent = tuple(events)
    lines = _lines(last_start(recent))
    found: dict[str, Printed] = {}
    for name, value, unit in (*_ranks(lines), *_devices(lines), *_added(lines), *_counts(lines)):
        found.setdefault(name, Printed(id=name, value=value * (GIB if unit == "bytes" else 1), unit=unit))
    _tell_peak_apart(found, version)
    kept, notes = _possible(found)
    return Startup(printed=kept, starts=max((event.start for event in recent), default=0) + 1, notes=notes)


def printed(events: Iterable[LogEvent], version: str = "") -> tuple[Printed, ...]:
    """Every size and count of the log once; of several ranks and cards the one that decides."""
    return read(events, version).printed


def last_start(events: Iterable[LogEvent]) -> tuple[LogEvent, ...]:
    """The events of the last start in each log."""
    every = tuple(events)
    last: dict[str, int] = {}
    for event in every:
        last[event.source] = max(last.get(event.source, 0), event.start)
    return tuple(event for event in every if event.start == last[event.source])


def base(event: LogEvent) -> str:
    """The pattern that an event's line matched, without what its phase made of it."""
    return event.id.partition(logs.VARIANT)[0]


def _lines(events: Iterable[LogEvent]) -> _Lines:
    found: dict[str, list[Reading]] = {}
    for event in events:
        said = event.readings or (Reading(fields=event.fields, process=event.process),)
        found.setdefault(base(event), []).extend(said)
    return found


def _ranks(lines: _Lines) -> Iterator[tuple[str, float, str]]:
    """Of lines with a pool in them the one with the smallest; of others the extreme values."""
    for pattern, terms in RANKS.items():
        said = lines.get(pattern, ())
        pools = [(value, one) for one in said for field in _fields(terms, "kv_cache")
                 if (value := _number(one, field)) is not None]  # fmt: skip
        if pools:
            said = [min(pools, key=lambda pool: pool[0])[1]]
        for field, name in terms.items():
            value = _deciding(name, said, field)
            if value is not None:
                yield name, value, "bytes"


def _fields(terms: Mapping[str, str], wanted: str) -> list[str]:
    return [field for field, name in terms.items() if name == wanted]


def _counts(lines: _Lines) -> Iterator[tuple[str, float, str]]:
    for pattern, counts in COUNTS.items():
        for field, (name, unit) in counts.items():
            value = _deciding(name, lines.get(pattern, ()), field)
            if value is not None:
                yield name, value, unit
    cells = [
        cells * (_number(one, "streams") or 1)
        for one in lines.get("llama-kv-size", ())
        if (cells := _number(one, "cells")) is not None
    ]
    if cells:
        yield "kv_tokens", max(cells), "tokens"


def _devices(lines: _Lines) -> Iterator[tuple[str, float, str]]:
    """The terms of the card that has most on it."""
    cards: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for pattern, terms in DEVICES.items():
        for one in lines.get(pattern, ()):
            device = str(one.fields.get("device", ""))
            for field, name in terms.items():
                value = _number(one, field)
                if value is not None and not is_host(device):
                    cards[device.partition("_")[0]][name] += value
    if not cards:
        yield from _breakdown(lines)
        yield from _estimate(lines)
        return
    fullest = max(cards.values(), key=lambda card: sum(card.values()))
    yield from ((name, value, "bytes") for name, value in fullest.items())
    yield from _breakdown(lines)


def _breakdown(lines: _Lines) -> Iterator[tuple[str, float, str]]:
    """llama.cpp's table at its end, of the card that has most on it."""
    said = [one for one in lines.get("llama-breakdown", ()) if _number(one, "used_gib") is not None]
    if not said:
        return
    card = max(said, key=lambda one: _number(one, "used_gib") or 0.0)
    for field, name in (("total_gib", "total"), ("weights_gib", "weights"), ("compute_gib", "compute_buffers")):
        value = _number(card, field)
        if value is not None:
            yield name, value, "bytes"


def _estimate(lines: _Lines) -> Iterator[tuple[str, float, str]]:
    """What Ollama expected before the load, where all layers were to go to the card."""
    for one in lines.get("ollama-offload-estimate", ())[-1:]:
        if one.fields.get("all") == one.fields.get("layers"):
            for field, name in (
                ("weights_gib", "weights"),
                ("pool_gib", "kv_cache"),
                ("compute_gib", "compute_buffers"),
            ):
                value = _number(one, field)
                if value is not None:
                    yield name, value, "bytes"


def _added(lines: _Lines) -> Iterator[tuple[str, float, str]]:
    for pattern, terms in ADDED.items():
        sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for one in lines.get(pattern, ()):
            for field, name in terms.items():
                value = _number(one, field)
                if value is not None:
                    sums[one.process][name] += value
        for name in dict.fromkeys(terms.values()):
            values = [process[name] for process in sums.values() if name in process]
            if values:
                yield name, min(values), "bytes"


def _number(reading: Reading, field: str) -> float | None:
    value = reading.fields.get(field)
    return value if isinstance(value, float) else None


def _deciding(name: str, said: Iterable[Reading], field: str) -> float | None:
    values = [value for one in said if (value := _number(one, field)) is not None]
    if not values:
        return None
    return min(values) if name in TIGHTEST else max(values)


def _tell_peak_apart(found: dict[str, Printed], version: str) -> None:
    """A peak that holds the estimate of CUDA graphs becomes the peak alone, where the estimate was printed too."""
    numbers = releases.numbers(version)
    if "activation" in found and "weights" in found and numbers and numbers >= GRAPHS_IN_PEAK_SINCE:
        found.setdefault("activation_and_graphs", replace(found.pop("activation"), id="activation_and_graphs"))
    both, graphs = found.get("activation_and_graphs"), found.get("cuda_graphs_estimate")
    if both is not None and graphs is not None and graphs.value <= both.value:
        found.setdefault("activation", Printed(id="activation", value=both.value - graphs.value))


def _possible(found: Mapping[str, Printed]) -> tuple[tuple[Printed, ...], tuple[str, ...]]:
    """What can be true of one card; a note for what cannot."""
    total = found.get("total")
    kept, notes = [], []
    for one in found.values():
        size = f"{one.value / GIB:.2f} GiB" if one.unit == "bytes" else f"{one.value:g}"
        too_large = one.unit == "bytes" and total is not None and one.value > total.value + PRINT_ROUNDING_BYTES
        if total is not None and too_large and one.id != "one_request":
            notes.append(f"the log's {one.id} of {size} is more than the card's {total.value / GIB:.2f} GiB: left out")
            continue
        if one.value < 0 and one.id not in _MAY_BE_NEGATIVE:
            notes.append(f"the log's {one.id} of {size} cannot be: left out")
            continue
        kept.append(one)
    return tuple(kept), tuple(notes)


_MAY_BE_NEGATIVE = frozenset({"kv_cache", "non_torch", "cuda_graphs", "cuda_graphs_estimate"})
"""vLLM prints differences of what the driver calls free, and others on the card give memory back meanwhile."""


def beside(found: Iterable[Printed], ledger: Ledger) -> tuple[Printed, ...]:
    """The printed numbers with the computed ones beside them, where the ledger has them."""
    computed = _computed(ledger)
    return tuple(replace(one, computed=computed.get(one.id)) for one in found)


def _computed(ledger: Ledger) -> dict[str, Range]:
    terms = [*(term for term in (ledger.total, ledger.requested) if term), *ledger.terms, *ledger.outside]
    found = {term.id: term.size for term in terms}
    inside = {term.id for term in ledger.terms}
    if "weights" in found and "non_torch" in found:
        found["consumed"] = stacked((found["weights"], found["non_torch"]))
    if "weights" in found and "activation" in found:
        found["torch_peak"] = stacked((found["weights"], found["activation"]))
    if "activation" in found:
        parts = [found[name] for name in ("activation", "cuda_graphs") if name in inside]
        found["activation_and_graphs"] = stacked(parts)
    if ledger.engine == "vllm" and "cuda_graphs" in inside:
        found["cuda_graphs_estimate"] = found.pop("cuda_graphs")  # taken off the budget is the estimate
    if ledger.engine == "sglang" and ledger.total is not None and "non_torch" in found:
        found["free"] = less(ledger.total.size, found["non_torch"])
    if ledger.pool is not None:
        found["kv_cache"] = ledger.pool.size
    if ledger.cache is not None:
        found |= {
            "kv_tokens": ledger.cache.printed_tokens,
            "blocks": ledger.cache.blocks,
            "concurrency": ledger.cache.concurrency,
        }
    return found


def terms(found: Iterable[Printed], *, graphs_inside: bool) -> dict[str, Range]:
    """Printed sizes by the term that they are in the ledger.

    graphs_inside: what the budget pays for CUDA graphs is an estimate, and their true size lies outside.
    """
    sizes = {one.id: rounded(one.value) for one in found if one.unit == "bytes"}
    if graphs_inside:
        sizes.pop("cuda_graphs", None)
        if "cuda_graphs_estimate" in sizes:
            sizes["cuda_graphs"] = sizes["cuda_graphs_estimate"]
    return sizes


def rounded(value_bytes: float) -> Range:
    """The interval in which a size lies that was printed in GiB with two decimals."""
    return Range(low=value_bytes - PRINT_ROUNDING_BYTES, likely=value_bytes, high=value_bytes + PRINT_ROUNDING_BYTES)
