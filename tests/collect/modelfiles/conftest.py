"""Files of a model, written byte by byte."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

WIDTH = {"F32": 4.0, "BF16": 2.0, "F16": 2.0, "I32": 4.0, "F8_E4M3": 1.0, "U8": 1.0, "F4": 0.5}
Tensors = Mapping[str, tuple[str, Sequence[int]]]


def header_of(tensors: Tensors) -> tuple[dict[str, object], int]:
    """A safetensors header for these tensors, one after the other, and the bytes of their data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        first, end = end, end + int(math.prod(shape) * WIDTH[dtype])
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [first, end]}
    return header, end


def text(value: str) -> bytes:
    """A text as GGUF writes it."""
    body = value.encode()
    return struct.pack("<Q", len(body)) + body


def value_of(value: object) -> bytes:
    """A value of GGUF metadata: kind and bytes; whole numbers as uint32."""
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + text(value)
        case list():
            items = [value_of(item) for item in value]
            kind = items[0][:4] if items else struct.pack("<I", 4)
            return struct.pack("<I", 9) + kind + struct.pack("<Q", len(items)) + b"".join(one[4:] for one in items)
    raise TypeError(value)


GGML = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_K": (12, 256, 144), "Q8_0": (8, 32, 34)}


def gguf_of(metadata: Mapping[str, object], tensors: Tensors, *, version: int = 3) -> tuple[bytes, int]:
    """A GGUF header, padded, and the bytes of the data behind it; shapes as GGUF has them, fastest first."""
    header = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    header += b"".join(text(key) + value_of(value) for key, value in metadata.items())
    offset = 0
    for name, (dtype, shape) in tensors.items():
        kind, block, width = GGML[dtype]
        header += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", kind, offset)
        offset += -(-math.prod(shape) // block * width // 32) * 32
    return header + bytes(-len(header) % 32), offset


class Builder:
    """Writes the files of a model into a folder; the data of a tensor is a hole in the file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def safetensors(self, tensors: Tensors, name: str = "model.safetensors") -> Path:
        header, data = header_of(tensors)
        return self.raw_safetensors(json.dumps(header).encode(), data, name)

    def raw_safetensors(self, header: bytes, data: int, name: str = "model.safetensors") -> Path:
        return self.file(name, len(header).to_bytes(8, "little") + header, data)

    def gguf(self, metadata: Mapping[str, object], tensors: Tensors, name: str = "model.gguf") -> Path:
        header, data = gguf_of(metadata, tensors)
        return self.file(name, header, data)

    def file(self, name: str, content: bytes, hole: int = 0) -> Path:
        path = self.folder / name
        with path.open("wb") as file:
            file.write(content)
            file.truncate(len(content) + hole)
        return path

    def json(self, name: str, value: object) -> Path:
        path = self.folder / name
        path.write_text(json.dumps(value))
        return path


@pytest.fixture
def model(tmp_path: Path) -> Builder:
    return Builder(tmp_path)
