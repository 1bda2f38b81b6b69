"""Combinations of settings, cards and quantisations, tried from the most modest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from llmedic.analysis.ledger import geometry
from llmedic.analysis.ledger.candidate import MOST_DEVICES, Candidate, Load, degrees
from llmedic.analysis.ledger.vllm import Card
from llmedic.errors import InputError
from llmedic.knowledge import accelerators, flags, quantisations
from llmedic.model.deployment import ModelFacts

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
SHARES = (0.8, 0.85, 0.9, 0.92, 0.95)
CAPS = (16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A server as it would be started, the load that has to fit, and what a change may use.

    model    to weigh it again with another quantisation
    devices  cards in the machine; None where nobody said
    """

    base: Candidate
    load: Load
    model: ModelFacts
    engine: str = "vllm"
    version: str = ""
    devices: int | None = None

    def typed(self, name: str, value: object) -> str:
        """A setting as it is typed for this engine and release."""
        return f"{flags.typed(name, self.engine, self.version) or name} {value}"


@dataclass(frozen=True, slots=True)
class Combination:
    """One combination of values; None where its axis is not varied."""

    server: Candidate
    degree: int | None
    quantization: str | None
    card: accelerators.Accelerator | None
    share: float | None
    cap: int | None

    def typed(self, question: Question) -> str:
        """What is typed and bought for it."""
        words = (
            question.typed("tensor_parallel_size", self.degree) if self.degree else "",
            question.typed("quantization", self.quantization) if self.quantization else "",
            self.card.name if self.card else "",
            question.typed("gpu_memory_utilization", f"{self.share:.2f}") if self.share else "",
            question.typed("max_num_seqs", self.cap) if self.cap else "",
        )
        return ", ".join(word for word in words if word)


def combinations(question: Question, axes: Sequence[str]) -> Iterator[Combination]:
    """Every combination on some of `AXES`: fewest devices first, then least loss, then the smallest card."""
    base, wanted = question.base, question.load.concurrency
    shares = SHARES if "gpu-memory-utilization" in axes else (None,)
    caps = (wanted, *(cap for cap in CAPS if cap > wanted)) if "max-num-seqs" in axes else (None,)
    for degree, name, placed in _placements(question, axes):
        for card in cards() if "gpu" in axes else (None,):
            capability = card.capability if card else base.card.compute_capability
            if not runs(placed, capability, question):
                continue
            on_card = replace(placed, card=on(card), known_pool=None) if card else placed
            for cap, share in product(caps, shares):
                changes: dict[str, float] = {"max_num_seqs": cap or max(wanted, base.settings.max_num_seqs)}
                if share is not None:
                    changes["utilization"] = share
                yield Combination(on_card.changed(**changes), degree, name, card, share, cap)


def _placements(question: Question, axes: Sequence[str]) -> Iterator[tuple[int | None, str | None, Candidate]]:
    """The degrees and the quantisations, each with the server as it would be divided and stored."""
    base = question.base
    kinds = tuple(quantised(question)) if "quantization" in axes else ((None, base),)
    varied = "tensor-parallel-size" in axes
    for degree in degrees(base, question.devices or MOST_DEVICES) if varied else (None,):
        for name, shaped in kinds:
            yield degree, name, shaped.changed(tensor_parallel=degree) if degree else shaped


def quantised(question: Question) -> Iterator[tuple[str, Candidate]]:
    """The model as it is, then under every quantisation that it can be weighed with; a quantised one stays as it is."""
    yield "", question.base
    if question.base.geometry.quantization:
        return
    for name in QUANTISATIONS:
        stored = STORED.get(name)
        config = {**question.model.config, "quantization_config": stored} if stored else question.model.config
        try:
            shape = geometry.of(replace(question.model, config=config, tensors=()), quantization=name)
        except InputError:
            continue
        yield name, replace(question.base, geometry=shape, known_pool=None)


def runs(candidate: Candidate, capability: float | None, question: Question) -> bool:
    """Whether a card has a kernel for how the model is quantised; where that is not known, it is not excluded."""
    name = candidate.geometry.quantization
    if not name or capability is None:
        return True
    return quantisations.support(name, capability, question.engine, question.version).runs != "no"


def cards() -> list[accelerators.Accelerator]:
    """Cards with memory of their own that vLLM's CUDA builds run on, the smallest first."""
    known = [card for card in accelerators.accelerators().values() if card.vendor == "nvidia" and not card.unified]
    return sorted(known, key=lambda card: (card.memory.likely, card.name))


def on(card: accelerators.Accelerator) -> Card:
    """The card as the arithmetic needs it."""
    return Card(total_bytes=card.memory, compute_capability=card.capability, unified=card.unified)
