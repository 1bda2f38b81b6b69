"""The header of a safetensors file: eight bytes of length, JSON with every tensor, then data that is never read.

The checks are those of the format's own reader, so a file that passes is one that an engine can load.
Format: https://github.com/huggingface/safetensors (README, `safetensors/src/tensor.rs`).
"""

from __future__ import annotations

from math import prod
from pathlib import Path

import msgspec

from llmedic.collect.modelfiles.groups import Tally
from llmedic.collect.modelfiles.opened import DOWNLOAD_AGAIN, opened
from llmedic.errors import InputError
from llmedic.wire import jsontext

MAX_HEADER_BYTES = 100_000_000
"""The format's own limit."""
MAX_DIMENSIONS = 16
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
    "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
"""Bits of one number of each dtype (safetensors 0.8, `Dtype::bitsize`)."""
_NOT_SAFETENSORS = "is this a .safetensors file? download it again"


class _Entry(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


_HEADER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRY = msgspec.json.Decoder(_Entry)


def add(path: Path, tally: Tally) -> int:
    """Adds the file's tensors to the tally; returns the bytes of its header.

    Raises InputError when the file is none, was not fetched whole, or contradicts itself.
    """
    with opened(path) as (file, size):
        length = int.from_bytes(file.read(8), "little")
        if size < 10:
            raise InputError(f"{path}: too short to be a safetensors file ({size} bytes)", hint=DOWNLOAD_AGAIN)
        if length > MAX_HEADER_BYTES or length < 2:
            raise InputError(f"{path}: not a safetensors file: a header of {length:,} bytes", hint=_NOT_SAFETENSORS)
        if length > size - 8:
            raise InputError(
                f"{path}: cut off: its header has {length:,} bytes and the file {size:,}", hint=DOWNLOAD_AGAIN
            )
        header = file.read(length)
    try:
        end = _add_all(header, tally)
    except jsontext.NOT_READABLE as error:
        raise InputError(f"{path}: its header is not one of safetensors: {error}", hint=_NOT_SAFETENSORS) from error
    except (_RefusedError, InputError) as error:
        raise InputError(f"{path}: {error}", hint=_NOT_SAFETENSORS) from error
    if end > size - 8 - length:
        raise InputError(
            f"{path}: cut off: its tensors take {end:,} bytes and {size - 8 - length:,} are there", hint=DOWNLOAD_AGAIN
        )
    if end < size - 8 - length:
        raise InputError(f"{path}: {size - 8 - length - end:,} bytes too long for its tensors", hint=DOWNLOAD_AGAIN)
    return length


class _RefusedError(Exception):
    """Why the header is wrong, in words that follow the file's name."""


def _add_all(header: bytes, tally: Tally) -> int:
    """Where the data of the last tensor ends. Tensors lie one after the other, without gap or overlap."""
    spans: list[tuple[int, int]] = []
    for name, raw in _HEADER.decode(header).items():
        if name == "__metadata__":
            continue
        entry = _ENTRY.decode(raw)
        parameters, bytes_ = _size(entry)
        tally.add(name, entry.dtype, parameters, bytes_)
        spans.append(entry.data_offsets)
    end = 0
    for first, last in sorted(spans):
        if first != end:
            raise _RefusedError("two tensors overlap" if first < end else "bytes lie between two tensors")
        end = last
    return end


def _size(entry: _Entry) -> tuple[int, int]:
    """Numbers and bytes of a tensor, when its shape, its dtype and its place in the file agree."""
    bits = BITS.get(entry.dtype)
    if bits is None:
        raise _RefusedError(f"a tensor of dtype {entry.dtype[:20]!a}, which is not known")
    if len(entry.shape) > MAX_DIMENSIONS or not all(0 <= size < 2**48 for size in entry.shape):
        raise _RefusedError("a tensor has a shape that no tensor has")
    first, last = entry.data_offsets
    if not 0 <= first <= last < 2**63:
        raise _RefusedError("a tensor has a place that no file has")
    parameters = prod(entry.shape)
    if parameters * bits != (last - first) * 8:
        raise _RefusedError(f"a tensor of {parameters:,} numbers in {entry.dtype} cannot take {last - first:,} bytes")
    return parameters, last - first
