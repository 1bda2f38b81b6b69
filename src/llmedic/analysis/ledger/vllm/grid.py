"""Combinations of settings, cards and quantisations, tried from the most modest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from llmedic.analysis.ledger import geometry
from llmedic.analysis.ledger.vllm import placement
from llmedic.analysis.ledger.vllm.candidate import MOST_DEVICES, Candidate, Load, degrees, per_replica
from llmedic.analysis.ledger.vllm.variants import Values, Variants
from llmedic.errors import InputError
from llmedic.knowledge import accelerators, quantisations
from llmedic.model.deployment import FlagValue
from llmedic.model.geometry import Geometry

AXES = ("tensor-parallel-size", "quantization", "gpu", "gpu-memory-utilization", "max-num-seqs")
"""What can be varied together, in the order of what it costs to change."""
QUANTISATIONS = ("fp8", "awq", "gptq", "nvfp4", "bitsandbytes")
"""The least lossy first."""
STORED: Mapping[str, Mapping[str, object]] = {
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True},
    "nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16},
}
"""How checkpoints that are stored so are usually made."""
ONLINE = frozenset({"fp8", "bitsandbytes"})
"""vLLM quantises any checkpoint so while it loads; for the others a quantised checkpoint has to be downloaded."""
WHOLE_BEFORE = (0, 17)
"""Before, fp8 was made of weights that lay on the card as a whole (vllm/model_executor/layers/quantization/fp8.py)."""
SHARES = tuple(percent / 100 for percent in range(80, 96))
"""Tried where the share of the card as it is does not suffice."""
CAPS = (16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True, slots=True)
class Combination:
    """One combination of values; None where its axis is not varied."""

    server: Candidate
    degree: int | None
    quantization: str | None
    card: accelerators.Accelerator | None
    share: float | None
    cap: int | None

    @property
    def bought(self) -> tuple[str, ...]:
        """The card and the checkpoint that are needed for it."""
        stored = self.quantization if self.quantization and self.quantization not in ONLINE else ""
        checkpoint = named(stored) if stored else ""
        return (self.card.name if self.card else "", checkpoint)

    @property
    def values(self) -> Values:
        """The settings that are typed for it."""
        values: dict[str, FlagValue] = {
            "tensor_parallel_size": self.degree,
            "quantization": self.quantization if self.quantization in ONLINE else None,
            "gpu_memory_utilization": self.share,
            "max_num_seqs": self.cap,
        }
        return {name: value for name, value in values.items() if value}


def combinations(base: Variants, load: Load, axes: Sequence[str]) -> Iterator[Combination]:
    """Every combination on some of `AXES`: fewest devices first, then least loss, then the smallest card."""
    least = per_replica(base.candidate, load)
    raised = "gpu-memory-utilization" in axes and not base.candidate.asked_bytes
    shares = (None, *(share for share in SHARES if share > base.candidate.settings.utilization)) if raised else (None,)
    caps = (least, *(cap for cap in CAPS if cap > least)) if "max-num-seqs" in axes else (None,)
    places = [(card, base.on(card)) for card in cards()] if "gpu" in axes else [(None, base)]
    for degree, (name, stored) in product(_degrees(base, axes), _stored(base, axes)):
        for card, place in places:
            server = replace(place.candidate, geometry=stored.geometry, group_size=stored.group_size)
            server = server.changed(tensor_parallel=degree) if degree else server
            unquantised = replace(server, geometry=place.candidate.geometry)
            if not runs(server, place) or not loads(unquantised, name) or not placement.possible(place.plan(server)):
                continue
            usual = least if least > server.settings.max_num_seqs else None
            for cap in caps:
                capped = server.changed(max_num_seqs=cap or usual) if cap or usual else server
                for share in shares:
                    shared = capped.changed(utilization=share) if share else capped
                    yield Combination(shared, degree, name, card, share, cap or usual)


def named(quantization: str) -> str:
    """A checkpoint that has to be downloaded, beside settings that are typed."""
    return f"checkpoint: {quantization}"


def _degrees(base: Variants, axes: Sequence[str]) -> Sequence[int | None]:
    if "tensor-parallel-size" not in axes:
        return (None,)
    replicas = base.candidate.settings.pipeline_parallel * base.candidate.settings.data_parallel
    return degrees(base.candidate, base.devices // replicas if base.devices else MOST_DEVICES)


def _stored(base: Variants, axes: Sequence[str]) -> Sequence[tuple[str | None, Candidate]]:
    if "quantization" not in axes:
        return ((None, base.candidate),)
    return tuple((name, kind.candidate) for name, kind in quantised(base))


def quantised(base: Variants) -> Iterator[tuple[str, Variants]]:
    """The model as it is ("" as its name), then as checkpoints that weigh less, the least lossy first.

    One that is quantised already cannot be quantised while it loads.
    """
    yield "", base
    config = {key: value for key, value in base.deployment.model.config.items() if key != "quantization_config"}
    names = STORED if base.candidate.geometry.quantization else QUANTISATIONS
    for name in names if config else ():
        model = replace(base.deployment.model, config=_stored_as(config, name), tensors=())
        try:
            shape = geometry.of(model, quantization=name)
        except InputError:
            continue
        if _bytes(shape) < _bytes(base.candidate.geometry):
            server = replace(
                base.candidate, geometry=shape, known_pool=None, group_size=placement.group_size(model.config)
            )
            yield name, replace(base, candidate=server, deployment=replace(base.deployment, model=model))


def _stored_as(config: Mapping[str, object], name: str) -> Mapping[str, object]:
    return {**config, "quantization_config": STORED[name]} if name in STORED else config


def _bytes(shape: Geometry) -> float:
    return sum(part.bytes for part in shape.weights)


def runs(candidate: Candidate, base: Variants) -> bool:
    """Whether a card has a kernel for how the model is quantised; where that is not known, it is not excluded."""
    name, capability = candidate.geometry.quantization, candidate.card.compute_capability
    if not name or capability is None:
        return True
    return quantisations.support(name, capability, "vllm", base.deployment.version).runs != "no"


def loads(unquantised: Candidate, name: str | None) -> bool:
    """Whether the card that holds quantised weights also holds what they are made of while they load."""
    version = unquantised.settings.version
    if name != "fp8" or not version or version >= WHOLE_BEFORE:
        return True
    weights = next(term.size for term in unquantised.memory().terms if term.id == "weights")
    return weights.high <= unquantised.card.total_bytes.low


def cards() -> list[accelerators.Accelerator]:
    """Cards that are commonly served on and that vLLM's CUDA builds run on, the smallest first."""
    known = [card for card in accelerators.common() if card.vendor == "nvidia"]
    return sorted(known, key=lambda card: (card.memory.likely, card.name))
