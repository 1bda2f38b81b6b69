"""What is deployed: engine, flags and where each was read, model facts, hardware facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FlagValue = str | float | bool | None
"""None: the flag is known to be unset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One setting of the engine.

    name    the engine-neutral name of `knowledge/data/flags.yaml` (max_num_seqs for vLLM's --max-num-seqs,
            SGLang's --max-running-requests, llama.cpp's --parallel), or the engine's own name in snake case
    spelled as the user would type it for this engine ("--max-running-requests")
    origin  "args", "process", "log", "metrics", "models-api", "case", "default"
    """

    name: str
    value: FlagValue
    spelled: str = ""
    origin: str = "args"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The served model: its name and what its configuration files say (config.json keys, nested)."""

    name: str = ""
    config: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareFacts:
    """The machine under the engine; None where nobody said."""

    accelerator: str = ""
    count: int | None = None
    memory_gib: float | None = None
    compute_capability: float | None = None
    host_cpus: int | None = None
    host_memory_gib: float | None = None
    interconnect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Everything that was chosen before the first request arrived."""

    engine: str = ""
    version: str = ""
    flags: tuple[Flag, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    model: ModelFacts = field(default_factory=ModelFacts)
    hardware: HardwareFacts = field(default_factory=HardwareFacts)
