"""What each engine calls its metrics, release by release, in the words of the vocabulary.

One file per engine under `knowledge/data/metrics`, read only when that engine is met. Gauges and histograms give a
vocabulary name at once; counters give a `QUANTITIES` name, from which the engine source derives rates and ratios.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from llmedic.errors import KnowledgeError
from llmedic.knowledge import load, vocabulary
from llmedic.knowledge.schema import Record

Kind = Literal["gauge", "counter", "histogram", "constant", "info"]
Together = Literal["sum", "max", "min"]

QUANTITIES = frozenset({
    "finished", "finished_abort", "finished_error", "finished_length", "arrived", "preemptions", "prompt_tokens",
    "computed_prompt_tokens", "cached_prompt_tokens", "output_tokens", "prefix_queries", "prefix_hits",
    "draft_tokens", "accepted_tokens", "corrupted_requests", "rejections", "evicted_tokens", "http_requests",
    "http_errors", "slot_decode_s", "process_cpu_s", "process_start_s",
})  # fmt: skip
"""Counters, and the process start, that observations are derived from."""


class Metric(Record, frozen=True):
    """One thing that an engine tells about itself.

    id        what it gives: a vocabulary name, or one of QUANTITIES (kind counter); free for kind info
    kind      gauge: varies; constant: a gauge that is fixed at start; info: the values are in the labels
    names     full sample or family names, newest first; the first one on the page is used
    versions  releases that have the newest name, and until when the older ones lived
    where     only series with one of these label values
    scale     factor from the engine's unit to the vocabulary's
    together  how engines and replicas join into the service
    lifetime  the gauge is a mean or a high-water mark since start, never a present value
    sets      kind constant: flag name; observes, flags: kind info: label -> vocabulary name or flag name
    note      what to know before trusting it
    """

    id: str
    kind: Kind
    names: tuple[str, ...]
    versions: str
    where: dict[str, tuple[str, ...]] = {}
    scale: float = 1.0
    together: Together = "sum"
    lifetime: bool = False
    sets: str = ""
    observes: dict[str, str] = {}
    flags: dict[str, str] = {}
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How an engine's series are recognised and kept apart.

    prefixes    what its names start with, the usual one first; the others are spellings of relays
    part        label that tells data-parallel engines of one server apart
    copies      labels of workers that all repeat the same value
    total_of    labels with which a total and its parts are both exported: the total has ""
    """

    prefixes: tuple[str, ...] = ()
    part: str = ""
    copies: tuple[str, ...] = ()
    total_of: tuple[str, ...] = ()


ENGINES: Mapping[str, Engine] = {
    "vllm": Engine(prefixes=("vllm:", "vllm_", "ray_vllm:", "ray_vllm_"), part="engine"),
    "sglang": Engine(
        prefixes=("sglang:", "sglang_"),
        part="dp_rank",
        copies=("tp_rank", "pp_rank", "moe_ep_rank"),
        total_of=("priority",),
    ),
    "llama.cpp": Engine(prefixes=("llamacpp:", "llamacpp_")),
    "tgi": Engine(prefixes=("tgi_",)),
    "ollama": Engine(),
}
"""Every engine that is read, in the order in which a page is tested for it."""

_FILES = {"vllm": "vllm", "sglang": "sglang", "llama.cpp": "llamacpp", "tgi": "tgi"}
"""Ollama has none: it has no metrics page, what it tells is in /api/ps and in its log."""


@dataclass(frozen=True, slots=True)
class Names:
    """An engine's metrics and every sample name they need."""

    metrics: tuple[Metric, ...]
    samples: frozenset[str]
    gauges: frozenset[str] = field(default=frozenset())


def engine_of(page: bytes) -> str:
    """The engine that wrote this metrics page ("vllm", ...); "" for none that is known."""
    for engine, about in ENGINES.items():
        starts = [prefix.encode() for prefix in about.prefixes]
        if any(page.startswith(start) or b"\n" + start in page for start in starts):
            return engine
    return ""


@cache
def names(engine: str) -> Names:
    """The metrics of one engine, those of its process included; for "" those of the process alone.

    Raises KnowledgeError when the engine is unknown or its file is wrong.
    """
    if engine and engine not in ENGINES:
        raise KnowledgeError(f"no metric names for engine {engine!r}")
    metrics = load.records("metrics/process.yaml", Metric)
    if engine in _FILES:
        metrics += load.records(f"metrics/{_FILES[engine]}.yaml", Metric)
    check(engine, metrics)
    gauges = {name for metric in metrics if metric.kind == "gauge" for name in sample_names(metric, engine)}
    samples = {name for metric in metrics for name in sample_names(metric, engine)}
    return Names(metrics, frozenset(samples), frozenset(gauges))


def sample_names(metric: Metric, engine: str) -> tuple[str, ...]:
    """Every sample name under which one metric may come, newest first, in every spelling of the prefix."""
    return tuple(sample for name in spellings(metric, engine) for sample in samples_of(metric.kind, name))


def spellings(metric: Metric, engine: str) -> tuple[str, ...]:
    """The metric's names as relays may spell them too ("sglang_x" for "sglang:x"), newest first."""
    prefixes = ENGINES[engine].prefixes if engine else ()
    spelled: list[str] = []
    for name in metric.names:
        spelled.append(name)
        if prefixes and name.startswith(prefixes[0]):
            spelled += [prefix + name.removeprefix(prefixes[0]) for prefix in prefixes[1:]]
    return tuple(spelled)


def samples_of(kind: Kind, name: str) -> tuple[str, ...]:
    """The samples that a family of this kind consists of."""
    match kind:
        case "histogram":
            return (f"{name}_bucket", f"{name}_sum", f"{name}_count")
        case "counter" if not name.endswith(("_total", "_sum", "_count")):
            return (f"{name}_total", name)
    return (name,)


def check(engine: str, metrics: tuple[Metric, ...]) -> None:
    """Raise KnowledgeError for a repeated id, or one that is neither in the vocabulary nor among QUANTITIES."""
    seen: set[str] = set()
    for metric in metrics:
        if metric.id in seen:
            raise KnowledgeError(f"metrics of {engine}: {metric.id} is there twice")
        seen.add(metric.id)
        needed = list(metric.observes.values())
        if metric.kind in ("gauge", "histogram") or (metric.kind == "constant" and not metric.sets):
            needed.append(metric.id)
        for name in needed:
            if name not in QUANTITIES and name not in _vocabulary():
                raise KnowledgeError(f"metrics of {engine}: {metric.id}: {name} is not in the vocabulary")
        if metric.kind == "counter" and metric.id not in QUANTITIES:
            raise KnowledgeError(f"metrics of {engine}: {metric.id} is not a known quantity")


@cache
def _vocabulary() -> frozenset[str]:
    return frozenset(vocabulary.names())
