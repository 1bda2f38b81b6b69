"""Whether a model can be divided over the devices as planned: heads, groups, stages, links, kernels, and what could."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.analysis.ledger.vllm.stages import stages
from llmedic.knowledge import flags, quantisations
from llmedic.knowledge.accelerators import SMALL_SHARD_B, Accelerator
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import Problem

VOCABULARY_MULTIPLE = 64
"""Rows of the embedding are padded to it (vllm/model_executor/layers/vocab_parallel_embedding.py)."""
ROOM_FOR_CACHE = 0.6
"""Weights above this share of a device leave too little for the KV cache to advise fewer devices."""
MOST_DEVICES = 64
USUAL_HOST = 8
"""Devices of the usual large host; a smaller one can be had with as many."""

Options = Iterable[Mapping[str, int]]
"""Settings by their engine-neutral names, to be changed together; several such, the preferred first."""


class Answer(Protocol):
    """Finds the first of some options with which the server starts, as it is typed; "" when none does."""

    def __call__(self, options: Options, /, *, alone: bool = False) -> str:
        """alone: nothing else may have to be changed with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A model on devices as somebody means to start it.

    accelerator    None: an unknown one
    count          devices there are, 0: unknown
    group_size     numbers that share a scale along the input of a quantised layer, 0: no such group
    answer         what decides between options; without it the first one is taken
    """

    geometry: Geometry
    settings: Settings
    accelerator: Accelerator | None = None
    count: int = 0
    group_size: int = 0
    engine: str = "vllm"
    version: str = ""
    answer: Answer | None = None

    @property
    def per_node(self) -> int:
        """Devices of a host, as large as they come with this accelerator; 0: unknown."""
        return max(self.accelerator.per_node, USUAL_HOST) if self.accelerator else 0

    @property
    def degrees(self) -> tuple[int, ...]:
        """Tensor parallel degrees over which the model divides, as far as there are devices."""
        most = self.count or MOST_DEVICES
        return allowed_degrees(self.geometry, most, self.group_size, expert_parallel=self.settings.expert_parallel)

    def first(self, options: Options, *, alone: bool = False) -> str:
        """The change to advise, as it is typed for this engine and release; "" when there is none."""
        if self.answer is not None:
            return self.answer(options, alone=alone)
        names = (" ".join(self.typed(name, value) for name, value in values.items()) for values in options)
        return next(names, "")

    def typed(self, name: str, value: int) -> str:
        """A setting as it is typed for this engine and release."""
        return f"{flags.typed(name, self.engine, self.version) or name} {value}"


def problems(plan: Plan) -> tuple[Problem, ...]:
    """What stands against the plan, the gravest first; () when nothing does."""
    checks = (_devices, _shares, _stages, _kernel, _nodes, _links, _small)
    found = [problem for check in checks for problem in check(plan)]
    order = ("critical", "warning", "info")
    return tuple(sorted(found, key=lambda problem: order.index(problem.severity)))


def possible(plan: Plan) -> bool:
    """Whether nothing critical stands against the plan."""
    settings = plan.settings
    runs = plan.accelerator is None or not plan.geometry.quantization or _support(plan, plan.accelerator).runs != "no"
    return (
        runs
        and (not plan.count or needed(settings) <= plan.count)
        and settings.pipeline_parallel <= max(len(plan.geometry.layers), 1)
        and (settings.tensor_parallel < 2 or not any(_refusals(plan)))
    )


def needed(settings: Settings) -> int:
    """Devices that the plan takes."""
    return settings.tensor_parallel * settings.pipeline_parallel * settings.data_parallel


def _refusals(plan: Plan) -> Iterator[str]:
    settings = plan.settings
    return refusals(plan.geometry, settings.tensor_parallel, plan.group_size, expert_parallel=settings.expert_parallel)


def allowed_degrees(
    geometry: Geometry, most: int = MOST_DEVICES, group_size: int = 0, *, expert_parallel: bool = False
) -> tuple[int, ...]:
    """Tensor parallel degrees up to `most` over which every weight divides; 1 always does."""
    degrees = range(1, max(1, most) + 1)
    return tuple(
        degree
        for degree in degrees
        if degree == 1 or not any(refusals(geometry, degree, group_size, expert_parallel=expert_parallel))
    )


def refusals(geometry: Geometry, degree: int, group_size: int = 0, *, expert_parallel: bool = False) -> Iterator[str]:
    """Why a model does not divide over `degree` ranks, one sentence each (vllm/config/model.py, layers/linear.py)."""
    if geometry.query_heads % degree:
        yield f"{geometry.query_heads} attention heads do not divide by {degree}"
    for heads in _kv_heads(geometry):
        if max(heads, degree) % min(heads, degree):
            yield f"{heads} KV heads can be neither divided nor repeated over {degree} ranks"
    rows = padded_vocabulary(geometry.vocabulary)
    if rows % degree:
        yield f"the vocabulary, padded to {rows} rows, does not divide by {degree}"
    for name, width in _inputs(geometry, expert_parallel=expert_parallel):
        if width % degree:
            yield f"the {name} width {width} does not divide by {degree}"
        elif group_size > 0 and width // degree % group_size:
            yield f"the {name} width {width} / {degree} = {width // degree} is no multiple of the group of {group_size}"


def padded_vocabulary(vocabulary: int, multiple: int = VOCABULARY_MULTIPLE) -> int:
    """Rows of the embedding after padding."""
    return -(-vocabulary // multiple) * multiple


def group_size(config: Mapping[str, object]) -> int:
    """Numbers that share a scale along a layer's input, as config.json says (awq, gptq, compressed-tensors, fp8 block).

    0: none, or one scale per row or tensor.
    """
    found = config.get("quantization_config")
    if not isinstance(found, Mapping):
        return 0
    block = found.get("weight_block_size")
    if isinstance(block, list | tuple) and block:
        return _positive(block[-1])
    groups = found.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    inner = weights.get("group_size") if isinstance(weights, Mapping) else None
    return _positive(found.get("group_size")) or _positive(inner)


def _positive(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _kv_heads(geometry: Geometry) -> list[int]:
    """The different numbers of KV heads; the one latent of MLA is copied to every rank and divides by any."""
    layers = [layer for layer in geometry.layers if layer is not None]
    return sorted({layer.kv_heads for layer in layers if layer.kind != "mla" and layer.kv_heads > 0})


def _inputs(geometry: Geometry, *, expert_parallel: bool) -> Iterator[tuple[str, int]]:
    """Widths that are cut over the ranks as the input of a layer, whole groups to each rank."""
    if geometry.mlp_width:
        yield "MLP", geometry.mlp_width
    if geometry.expert_width and not expert_parallel:
        yield "expert", geometry.expert_width
    wide = {layer.value_dim or layer.head_dim for layer in geometry.layers if layer is not None and layer.kv_heads}
    for head_dim in sorted(wide - {0}):
        yield "attention", geometry.query_heads * head_dim


def _devices(plan: Plan) -> Iterator[Problem]:
    settings = plan.settings
    if not plan.count or needed(settings) <= plan.count:
        return
    yield Problem(
        severity="critical",
        starts="no",
        text=f"tensor {settings.tensor_parallel} x pipeline {settings.pipeline_parallel} x data "
        f"{settings.data_parallel} parallel take {needed(settings)} devices, the machine has {plan.count}",
        change=plan.first(_within(plan)),
    )


def _within(plan: Plan) -> Iterator[Mapping[str, int]]:
    """Degrees for which there are devices: the largest tensor parallel one, else fewer stages, else both."""
    settings = plan.settings
    stages_most = plan.count // (settings.tensor_parallel * settings.data_parallel)
    yield from (
        {"tensor_parallel_size": degree}
        for degree in reversed(plan.degrees)
        if degree * settings.pipeline_parallel * settings.data_parallel <= plan.count
    )
    if stages_most:
        yield {"pipeline_parallel_size": stages_most}
    yield from (
        {"tensor_parallel_size": degree, "pipeline_parallel_size": 1}
        for degree in reversed(plan.degrees)
        if settings.pipeline_parallel > 1 and degree * settings.data_parallel <= plan.count
    )


def _shares(plan: Plan) -> Iterator[Problem]:
    degree = plan.settings.tensor_parallel
    found = tuple(_refusals(plan)) if degree > 1 else ()
    if not found:
        return
    smaller = [one for one in reversed(plan.degrees) if one < degree]
    larger = [one for one in plan.degrees if one > degree]
    change = plan.first({"tensor_parallel_size": one} for one in (*smaller, *larger))
    for text in found:
        yield Problem(severity="critical", starts="no", cause="tp-degree-not-divisible", text=text, change=change)


def _stages(plan: Plan) -> Iterator[Problem]:
    count, layers = plan.settings.pipeline_parallel, len(plan.geometry.layers)
    if count < 2:
        return
    if count > layers:
        text = f"{layers} layers cannot be divided over {count} pipeline stages"
        change = plan.first({"pipeline_parallel_size": fewer} for fewer in range(max(layers, 1), 0, -1))
        yield Problem(severity="critical", starts="no", text=text, change=change)
    elif layers % count:
        sizes = ", ".join(str(len(stage)) for stage in stages(layers, 0, plan.settings))
        text = f"{layers} layers over {count} stages are {sizes}: the longest stage sets the pace and the memory"
        yield Problem(severity="info", text=text)


def _support(plan: Plan, card: Accelerator) -> quantisations.Support:
    arch = "" if card.vendor == "nvidia" else card.arch
    return quantisations.support(plan.geometry.quantization, card.capability, plan.engine, plan.version, arch)


def _kernel(plan: Plan) -> Iterator[Problem]:
    card = plan.accelerator
    if card is None or not plan.geometry.quantization:
        return
    found = _support(plan, card)
    if found.runs == "no":
        text = f"{found.why} ({card.name})"
        yield Problem(severity="critical", starts="no", cause="quant-unsupported-on-gpu", text=text)
    elif found.runs in ("weight-only", "emulated"):
        yield Problem(severity="info", text=found.why)


def _nodes(plan: Plan) -> Iterator[Problem]:
    """Tensor parallel over hosts: within a host, and pipeline stages over the hosts, asks far less of the network."""
    degree, node, stages_now = plan.settings.tensor_parallel, plan.per_node, plan.settings.pipeline_parallel
    if not node or degree <= node:
        return
    options = (
        {"tensor_parallel_size": inside, "pipeline_parallel_size": stages_now * degree // inside}
        for inside in reversed(plan.degrees)
        if inside <= node and degree % inside == 0
    )
    text = f"tensor parallel {degree} spans hosts of {node} devices: every layer waits for the network twice"
    yield Problem(severity="warning", cause="tp-across-nodes", text=text, change=plan.first(options))


def _links(plan: Plan) -> Iterator[Problem]:
    card, degree = plan.accelerator, plan.settings.tensor_parallel
    if card is None or degree < 2 or card.peer_to_peer or card.interconnect.startswith("none"):
        return
    text = f"tensor parallel {degree} goes over {card.interconnect}: {card.name} has no faster links between devices"
    yield Problem(severity="info", text=text)


def _small(plan: Plan) -> Iterator[Problem]:
    """A model cut thinner than it needs to be."""
    degree, card = plan.settings.tensor_parallel, plan.accelerator
    total = sum(part.parameters for part in plan.geometry.weights) / 1e9
    if degree < 2 or card is None or not 0 < total / degree < SMALL_SHARD_B:
        return
    need = sum(part.bytes for part in plan.geometry.weights) / plan.settings.pipeline_parallel
    most = ROOM_FOR_CACHE * card.memory.likely
    fewer = [one for one in plan.degrees if one < degree and degree % one == 0 and need / one <= most]
    change = plan.first(({"tensor_parallel_size": one} for one in fewer), alone=True)
    if not change:
        return
    yield Problem(
        severity="info",
        cause="tp-oversplit-small-model",
        text=f"{total:.1f} billion parameters over {degree} devices are {total / degree:.1f} billion each: "
        "collectives cost about as much as the work they share",
        change=change,
    )
