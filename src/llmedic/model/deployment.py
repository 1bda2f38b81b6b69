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
class TensorGroup:
    """Tensors of a checkpoint that differ only in the numbers within their names: the experts of one layer, say.

    name        with layer and expert numbers replaced: "model.layers.{}.mlp.experts.{}.up_proj.weight"; a file's
                name where the format shows its size only (PyTorch)
    layer       0-based number of the layer, None outside the layers
    dtype       as the file spells it ("BF16", "F8_E4M3", "Q4_K"); "" where only the size is known
    tensors     how many there are
    parameters  numbers as stored: eight 4-bit weights that are packed into an int32 count as one
    bytes       of all of them, without the file's header and padding
    """

    name: str
    dtype: str
    tensors: int
    parameters: int
    bytes: int
    layer: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The served model: its name, what its configuration files say (config.json keys, nested) and what it holds.

    tensors      every tensor of the checkpoint, or none at all: a checkpoint that is there in part is a gap
    width_known  False: the name says that the weights are stored narrower, but not how narrow
    notes        what was concluded from the name instead of read, one sentence each
    """

    name: str = ""
    config: Mapping[str, object] = field(default_factory=dict)
    tensors: tuple[TensorGroup, ...] = ()
    width_known: bool = True
    notes: tuple[str, ...] = ()


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
