"""How many bytes a quantised matrix takes: the numbers, and the scales and zero points beside them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A storage format.

    bits        of one number
    rows, columns  of the block that shares a scale; 0: all of them (0, 0 a scale for the tensor, 1, 0 one per row)
    scale_bytes of one scale, zero_bits of one zero point; fixed_bytes for each matrix
    column_bytes   for each column (the order of activations in GPTQ)
    multiple    rows and columns are padded to these before they are stored
    """

    bits: float
    rows: int = 1
    columns: int = 0
    scale_bytes: float = 2.0
    zero_bits: float = 0.0
    fixed_bytes: float = 0.0
    column_bytes: float = 0.0
    multiple: tuple[int, int] = (1, 1)

    def size(self, rows: int, columns: int) -> float:
        """Bytes of one matrix of `rows` by `columns`."""
        if not rows * columns:
            return 0.0
        rows = ceil(rows / self.multiple[0]) * self.multiple[0]
        columns = ceil(columns / self.multiple[1]) * self.multiple[1]
        scales = ceil(rows / (self.rows or rows)) * ceil(columns / (self.columns or columns))
        beside = scales * (self.scale_bytes + self.zero_bits / 8) + self.fixed_bytes + columns * self.column_bytes
        return rows * columns * self.bits / 8 + beside


FP8_TENSOR = Stored(bits=8, rows=0, scale_bytes=4)
FP8_CHANNEL = Stored(bits=8, scale_bytes=4)
INT8_CHANNEL = Stored(bits=8, scale_bytes=4)
NVFP4 = Stored(bits=4, columns=16, scale_bytes=1, fixed_bytes=8)
MXFP4 = Stored(bits=4, columns=32, scale_bytes=1)
MXFP8 = Stored(bits=8, columns=32, scale_bytes=1)
NF4 = Stored(bits=4, columns=64, scale_bytes=4)
"""bitsandbytes: one float32 maximum per 64 numbers once vLLM has undone the double quantisation."""


def fp8_block(rows: int, columns: int) -> Stored:
    """FP8 with a float32 scale per block."""
    return Stored(bits=8, rows=rows, columns=columns, scale_bytes=4)


def grouped(bits: float, group: int, *, zeros: bool = False, ordered: bool = False) -> Stored:
    """Integers with a 16-bit scale per row and `group` columns (0 or less: per row)."""
    return Stored(
        bits=bits, columns=max(group, 0), zero_bits=bits if zeros else 0.0, column_bytes=4.0 if ordered else 0.0
    )
