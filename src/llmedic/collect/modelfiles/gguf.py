"""The header of a GGUF file: metadata and the list of tensors, versions 2 and 3. The data is never read.

Every number is a stranger's: a length is believed only as far as the file reaches, and no further than a header goes.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, prod
from pathlib import Path
from typing import BinaryIO

from llmedic.collect.modelfiles import ggml
from llmedic.collect.modelfiles.groups import Tally
from llmedic.collect.modelfiles.opened import DOWNLOAD_AGAIN, opened
from llmedic.errors import InputError

MAGIC = b"GGUF"
MAX_HEADER_BYTES = 256 << 20
"""Vocabularies of 300,000 tokens with their merges take 15 MB."""
MAX_KEYS = 65_536
MAX_TENSORS = 1_000_000
MAX_DIMENSIONS = 4
KEPT_ELEMENTS = 4_096
KEPT_TEXT = 200
_FIRST_BYTES = 1 << 20
_HINT = "is this a .gguf file? download it again"

Value = str | int | float | bool | list[int | float | bool] | None
Metadata = Mapping[str, Value]
"""Keys and values; a long text is None, and a list of texts or a long list is there as `KEY.length`."""

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


class _RefusedError(Exception):
    """Why the header is wrong, in words that follow the file's name."""


class _CutOffError(_RefusedError):
    """The file ends before what it announces."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself. parts: files that the model was split into; tensors: how many are in this one."""

    metadata: Metadata
    parts: int
    tensors: int


def add(path: Path, tally: Tally) -> Header:
    """Adds the file's tensors to the tally. Raises InputError when it is none, was cut off or contradicts itself."""
    with opened(path) as (file, size):
        try:
            return _add(_Cursor(file, size), size, tally)
        except _CutOffError as error:
            raise InputError(f"{path}: cut off: {error}", hint=DOWNLOAD_AGAIN) from error
        except (_RefusedError, InputError) as error:
            raise InputError(f"{path}: {error}", hint=_HINT) from error


def _add(cursor: _Cursor, size: int, tally: Tally) -> Header:
    if cursor.take(4) != MAGIC:
        raise _RefusedError("not a GGUF file")
    version = cursor.number("I")
    if version not in (2, 3):
        if version & 0xFFFF == 0:
            raise _RefusedError("a big-endian GGUF file, which the engines here do not load")
        raise _RefusedError(f"GGUF version {version}, and versions 2 and 3 are read")
    tensors, keys = cursor.number("Q"), cursor.number("Q")
    if keys > MAX_KEYS or tensors > MAX_TENSORS:
        raise _RefusedError(f"announces {keys:,} keys and {tensors:,} tensors, more than a model has")
    metadata = _metadata(cursor, keys)
    spans = [_tensor(cursor, tally) for _ in range(tensors)]
    alignment = _whole(metadata, "general.alignment", 32)
    if alignment < 1:
        raise _RefusedError("its data is aligned to 0 bytes")
    start = -(-cursor.at // alignment) * alignment
    _check(spans, max(0, size - start))
    return Header(metadata=metadata, parts=max(1, _whole(metadata, "split.count", 1)), tensors=tensors)


def _metadata(cursor: _Cursor, keys: int) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for _ in range(keys):
        key, kind = cursor.text(), cursor.number("I")
        if key in found:
            raise _RefusedError("names a key twice")
        if kind == _ARRAY:
            found.update(_array(cursor, key))
        elif kind == _STRING:
            text = cursor.text()
            found[key] = text if len(text) <= KEPT_TEXT else None
        else:
            found[key] = _finite(cursor.number(_code(kind)))
    return found


def _array(cursor: _Cursor, key: str) -> dict[str, Value]:
    kind, length = cursor.number("I"), cursor.number("Q")
    if kind == _STRING:
        cursor.skip_texts(length)
        return {f"{key}.length": length}
    code = _code(kind)
    data = cursor.take(struct.calcsize(f"<{code}") * length)
    if length > KEPT_ELEMENTS:
        return {f"{key}.length": length}
    return {key: [number for number in struct.unpack(f"<{length}{code}", data) if isfinite(number)]}


def _code(kind: int) -> str:
    if kind not in _NUMBERS:
        raise _RefusedError(f"a value of kind {kind}, which is not known")
    return _NUMBERS[kind]


def _finite(number: float) -> float | None:
    return number if isfinite(number) else None


def _whole(metadata: Metadata, key: str, otherwise: int) -> int:
    found = metadata.get(key)
    return found if isinstance(found, int) else otherwise


def _tensor(cursor: _Cursor, tally: Tally) -> tuple[int, int]:
    """Counts the next tensor; returns where its data begins and ends."""
    name, dimensions = cursor.text(), cursor.number("I")
    if dimensions > MAX_DIMENSIONS:
        raise _RefusedError("a tensor has a shape that no tensor has")
    shape = [cursor.number("Q") for _ in range(dimensions)]
    kind, offset = cursor.number("I"), cursor.number("Q")
    if kind not in ggml.FORMATS:
        raise _RefusedError(f"a tensor of type {kind}, which is not known")
    format_ = ggml.FORMATS[kind]
    if (shape[0] if shape else 1) % format_.block:
        raise _RefusedError(f"a tensor in {format_.name} whose rows are no multiple of {format_.block}")
    parameters = prod(shape)
    bytes_ = parameters // format_.block * format_.bytes
    tally.add(name, format_.name, parameters, bytes_)
    return offset, offset + bytes_


def _check(spans: list[tuple[int, int]], there: int) -> None:
    """The tensors lie beside each other within the file."""
    end = 0
    for first, last in sorted(spans):
        if first < end:
            raise _RefusedError("two tensors overlap")
        end = last
    if end > there:
        raise _CutOffError(f"its tensors take {end:,} bytes and {there:,} are there")


class _Cursor:
    """Reads forward, no further than the file and a header reach."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._data = bytearray()
        self.at = 0

    def take(self, length: int) -> bytes:
        """The next bytes."""
        self._need(self.at + length)
        self.at += length
        return bytes(self._data[self.at - length : self.at])

    def number(self, code: str) -> int:
        """The next number, of this kind of `struct`."""
        kind = f"<{code}"
        width = struct.calcsize(kind)
        self._need(self.at + width)
        found: int = struct.unpack_from(kind, self._data, self.at)[0]
        self.at += width
        return found

    def text(self) -> str:
        """The next text."""
        return self.take(self.number("Q")).decode("utf-8", "replace")

    def skip_texts(self, count: int) -> None:
        """Moves over that many texts, each at least as long as its own length."""
        self._need(self.at + 8 * count)
        at, have, data, length_at = self.at, len(self._data), self._data, struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at + 8 > have:
                self._need(at + 8)
                have = len(data)
            at += 8 + length_at(data, at)[0]
        self._need(at)
        self.at = at

    def _need(self, end: int) -> None:
        """Reads on until there are `end` bytes."""
        have = len(self._data)
        if end <= have:
            return
        if end > self._size:
            raise _CutOffError(f"it announces at least {end:,} bytes and has {self._size:,}")
        if end > MAX_HEADER_BYTES:
            raise _RefusedError(f"a header of more than {MAX_HEADER_BYTES >> 20} MiB")
        self._data += self._file.read(max(end - have, have, _FIRST_BYTES))
        if len(self._data) < end:
            raise _CutOffError("it became shorter while it was read")
