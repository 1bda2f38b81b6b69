"""Tensors -> parts with their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llmedic.analysis.ledger.geometry.tensors import Layer, Tensor
from llmedic.model.geometry import Split, WeightPart


def parts(layers: Sequence[Layer], outside: Iterable[Tensor], bytes_each: int) -> tuple[WeightPart, ...]:
    """The weights of every layer and of what is outside, summed by part and split."""
    weighed: dict[int, list[tuple[str, Split, int, float]]] = {}
    result: list[WeightPart] = []
    for index, layer in enumerate(layers):
        sums = weighed.get(id(layer)) or weighed.setdefault(id(layer), _sums(layer.tensors, bytes_each))
        result.extend(
            WeightPart(name=name, parameters=parameters, bytes=size, split=split, layer=index)
            for name, split, parameters, size in sums
        )
    result.extend(
        WeightPart(name=name, parameters=parameters, bytes=size, split=split)
        for name, split, parameters, size in _sums(outside, bytes_each)
    )
    return tuple(result)


def _sums(tensors: Iterable[Tensor], bytes_each: int) -> list[tuple[str, Split, int, float]]:
    sums: dict[tuple[str, Split], tuple[int, float]] = {}
    for tensor in tensors:
        key = tensor.part, tensor.split
        parameters, size = sums.get(key, (0, 0.0))
        each = tensor.bytes_each or bytes_each
        sums[key] = (
            parameters + (tensor.elements if tensor.published else 0),
            size + (tensor.elements * each if tensor.on_device else 0.0),
        )
    return [(name, split, parameters, size) for (name, split), (parameters, size) in sums.items()]
