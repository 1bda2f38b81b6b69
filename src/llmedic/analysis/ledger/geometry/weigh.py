"""Tensors -> parts with their bytes on the device."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from llmedic.analysis.ledger.geometry.quantised import Scheme
from llmedic.analysis.ledger.geometry.tensors import Layer, Tensor
from llmedic.model.geometry import Split, WeightPart

Sums = list[tuple[str, Split, int, float]]
SizeOf = Callable[[Tensor, Scheme, int | None, int], float]


def parts(
    layers: Sequence[Layer], outside: Iterable[Tensor], scheme: Scheme, bytes_each: int, *, stored: bool = False
) -> tuple[WeightPart, ...]:
    """The weights of every layer and of what is outside, summed by part and split.

    stored  as the checkpoint holds them, not as the engine does
    """
    size_of = stored_bytes if stored else device_bytes
    known: dict[Hashable, Sums] = {}
    result: list[WeightPart] = []
    number = -1
    for index, layer in enumerate(layers):
        number += not layer.continues
        key = id(layer), scheme.signature(number)
        if key not in known:
            known[key] = _sums(layer.tensors, size_of, scheme, number, bytes_each)
        result.extend(_part(entry, index) for entry in known[key])
    around = _sums(outside, size_of, scheme, None, bytes_each)
    return (*result, *(_part(entry, None) for entry in around))


def draft_parts(layers: Sequence[Layer], scheme: Scheme, bytes_each: int, *, first: int) -> tuple[WeightPart, ...]:
    """The weights of draft layers, which checkpoints number on from the model's (`first`)."""
    scheme = scheme.for_drafts
    found = (
        entry
        for index, layer in enumerate(layers, first)
        for entry in _sums(layer.tensors, device_bytes, scheme, index, bytes_each)
    )
    return tuple(_part(("draft", *entry[1:]), None) for entry in found)


def _part(entry: tuple[str, Split, int, float], layer: int | None) -> WeightPart:
    name, split, parameters, size = entry
    return WeightPart(name=name, parameters=parameters, bytes=size, split=split, layer=layer)


def _sums(tensors: Iterable[Tensor], size_of: SizeOf, scheme: Scheme, layer: int | None, bytes_each: int) -> Sums:
    sums: dict[tuple[str, Split], tuple[int, float]] = {}
    for tensor in tensors:
        parameters, size = sums.get((tensor.part, tensor.split), (0, 0.0))
        sums[tensor.part, tensor.split] = (
            parameters + (tensor.elements if tensor.published else 0),
            size + size_of(tensor, scheme, layer, bytes_each),
        )
    return [(name, split, parameters, size) for (name, split), (parameters, size) in sums.items()]


def stored_bytes(tensor: Tensor, scheme: Scheme, layer: int | None, bytes_each: int) -> float:
    """Bytes of a tensor and its copies in the checkpoint."""
    stored = scheme.stored(tensor, layer)
    if not tensor.published:
        return 0.0
    if stored is None:
        return tensor.elements * (tensor.bytes_each or bytes_each)
    return replace(stored, multiple=(1, 1)).size(tensor.rows, tensor.columns) * tensor.copies


def device_bytes(tensor: Tensor, scheme: Scheme, layer: int | None, bytes_each: int) -> float:
    """Bytes of a tensor and its copies once loaded.

    A quantised `kv_b_proj` is also kept unpacked for the absorbed multiplication (vLLM `MLAAttention`, 0.33).
    """
    if not tensor.on_device:
        return 0.0
    stored = scheme.stored(tensor, layer)
    if stored is None:
        return tensor.elements * (tensor.bytes_each or bytes_each)
    size = stored.size(tensor.rows, tensor.columns) * tensor.copies
    return size + tensor.elements * bytes_each if tensor.path.endswith("kv_b_proj") else size
