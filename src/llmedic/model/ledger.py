"""The memory of one device, term by term: what it has, what was asked for, who takes what, what the KV cache gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llmedic.model.evidence import Gap
from llmedic.model.geometry import Geometry

Basis = Literal["given", "printed", "computed", "calibrated", "assumed"]
"""Where a number comes from.

    given       typed by the user, or set by a flag
    printed     the engine's own log says it
    computed    exact arithmetic over the model's shape and the flags
    calibrated  a formula with a coefficient measured on real servers, hence an interval
    assumed     a usual value, because nobody said
"""

Starts = Literal["yes", "no", "perhaps", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A number and the interval that it lies in; exact when the three are equal."""

    low: float
    likely: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.likely <= self.high:
            raise ValueError(f"not an interval: {self.low} <= {self.likely} <= {self.high}")

    @property
    def exact(self) -> bool:
        """Nothing about it is uncertain."""
        return self.low == self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One line of the ledger, in bytes of one device.

    id   "total", "requested", "weights", "activation", "non_torch", "cuda_graphs", "lora", "encoder_cache",
         "compute_buffers", "kv_cache", "state", "free_outside", …
    how  the arithmetic with its numbers, e.g. "79.18 GiB x 0.9"
    """

    id: str
    size: Range
    basis: Basis
    how: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFit:
    """What the KV cache of a size holds.

    bytes_per_block      of one device: one block of every layer of a group
    block_tokens         tokens in a block (of the smallest group, where groups differ)
    groups               layer groups that share the blocks
    bytes_per_token      of one device, for one more token of one long request (state and full windows excluded)
    blocks               blocks in the pool
    printed_tokens       the size as this release prints it, which is not always what it can serve
    blocks_per_request   for one request of max_model_len
    concurrency          requests of max_model_len that fit at once, as the engine prints it
    longest_request      tokens of the longest single request that fits; 0 when none does
    most_at_once         requests that run at once however much room the pool has; 0: only the pool limits them
    """

    bytes_per_block: int
    block_tokens: int
    groups: int
    bytes_per_token: float
    blocks: Range
    printed_tokens: Range
    blocks_per_request: int
    max_model_len: int
    concurrency: Range
    longest_request: Range
    most_at_once: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that will stop the start, or bite later, and the one setting that answers it.

    cause   an id of `knowledge/data/causes.yaml` where there is one ("weights-do-not-fit")
    text    one sentence with the arithmetic
    change  the flag and the value that would have started, as typed for this engine; "" when no setting helps
    starts  whether the server starts in spite of it
    """

    severity: Literal["info", "warning", "critical"]
    text: str
    cause: str = ""
    change: str = ""
    starts: Literal["yes", "perhaps", "no"] = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The memory of the tightest device.

    era         which of the engine's formulae applies ("vllm-graphs-inside"), formula: that formula in one line
    devices     devices that hold one copy of the model (tensor x pipeline parallel)
    terms       what is taken out of `requested`, in order; outside: what is taken beside it
    pool        bytes for the KV cache: requested less terms, or what a flag or the log says; may be negative
    settings    what the arithmetic used, with who set it
    notes       what was assumed, one sentence each; gaps: what could not be known, and how to make it known
    """

    engine: str
    version: str
    era: str
    formula: str
    devices: int
    total: Term | None
    requested: Term | None
    terms: tuple[Term, ...]
    pool: Term | None
    starts: Starts
    outside: tuple[Term, ...] = ()
    cache: CacheFit | None = None
    geometry: Geometry | None = None
    problems: tuple[Problem, ...] = ()
    settings: tuple[Setting, ...] = ()
    notes: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A number that the engine printed, beside the same number computed.

    id        of a term ("weights", "kv_cache"), or "kv_tokens", "blocks", "concurrency"
    unit      "bytes", "tokens", "blocks" or "requests"
    computed  None where there is no formula for it or something that it needs is not known
    """

    id: str
    value: float
    unit: str = "bytes"
    computed: Range | None = None

    @property
    def residual(self) -> float | None:
        """Printed less computed; None where nothing was computed."""
        return None if self.computed is None else self.value - self.computed.likely


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What one setting, or several together, would have to be for the wanted load to fit.

    goal    "max-num-seqs", "max-model-len", "gpu-memory-utilization", "tensor-parallel-size", "quantization", "gpu",
            "together"
    change  as typed for this engine ("--max-num-seqs 48"), or the card, or "checkpoint: awq"; "" when none is enough
    text    one sentence: why this value, or why none
    pool and concurrency are what the ledger says with it; None when there is no such value
    """

    goal: str
    text: str
    change: str = ""
    pool: Range | None = None
    concurrency: Range | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCost:
    """What requests of one length take.

    requests         how many of them the pool holds at once, over all replicas
    pool_blocks      blocks that requests can have, over all replicas
    blocks           exact blocks of one; quick_blocks: min(256, ceil(1.2 x tokens / 32) + 4), the rule of thumb
    """

    tokens: int
    blocks: int
    quick_blocks: int
    requests: Range
    pool_blocks: int = 0

    def share(self, wanted: int) -> float | None:
        """The part of the pool that so many requests take, above 1 where they do not fit; None without a pool."""
        return wanted * self.blocks / self.pool_blocks if self.pool_blocks else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A planned change of context length, recomputed before it bites."""

    now: ContextCost
    then: ContextCost
    concurrency: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting that the arithmetic used: the flag as typed for this engine, its value, and who said so.

    origin  "given", "log", "default"
    """

    flag: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReport:
    """Everything that `llmedic ledger` shows.

    model_name and accelerator are the names they were resolved to; "" where nobody said
    """

    ledger: Ledger
    model_name: str = ""
    accelerator: str = ""
    settings: tuple[Setting, ...] = ()
    printed: tuple[Printed, ...] = ()
    solutions: tuple[Solution, ...] = ()
    planned: Planned | None = None
