"""The tensors that a model is made of, before and after a quantisation decides how wide each is."""

from __future__ import annotations

from dataclasses import dataclass

from llmedic.model.geometry import CacheLayer, Split


@dataclass(frozen=True, slots=True)
class Tensor:
    """One weight, or `copies` equal ones (the experts of a layer).

    path       module path below the layer (or the model), as checkpoints and ignore lists spell it
    part       name of the `WeightPart` that it counts to
    columns    input width; 1 for a vector
    linear     a matrix of a linear layer, which a quantisation may narrow
    published  counted in the model's parameters (a copy that only the engine makes is not)
    on_device  loaded by the engine (a tensor that ships in the checkpoint and is dropped is not)
    bytes_each bytes of one number where they are not those of the model's dtype
    """

    path: str
    part: str
    rows: int
    columns: int
    split: Split = "none"
    copies: int = 1
    linear: bool = False
    published: bool = True
    on_device: bool = True
    bytes_each: float = 0.0

    @property
    def elements(self) -> int:
        """Numbers in all copies."""
        return self.rows * self.columns * self.copies


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer: what it caches, what it weighs; or one part of a layer that has two caches.

    continues  it is a further part of the layer before it
    """

    cache: CacheLayer | None
    tensors: tuple[Tensor, ...]
    continues: bool = False


def linear(
    path: str, part: str, columns: int, rows: int, split: Split = "tensor", *, bias: bool = False, copies: int = 1
) -> tuple[Tensor, ...]:
    """A linear layer from `columns` to `rows`, with its bias."""
    weight = Tensor(path, part, rows, columns, split, copies, linear=True)
    if not bias:
        return (weight,)
    return weight, Tensor(f"{path}.bias", part, rows, 1, split, copies)


def vector(path: str, part: str, size: int, split: Split = "none", *, bytes_each: float = 0.0) -> tuple[Tensor, ...]:
    """A vector: a norm's weight, a bias, a scale per head."""
    return (Tensor(path, part, size, 1, split, bytes_each=bytes_each),)


def norm(path: str, size: int, *, bias: bool = False) -> tuple[Tensor, ...]:
    """The weight of a normalisation over `size`, and its bias in a layer norm."""
    return vector(path, "norm", size * 2 if bias else size)
