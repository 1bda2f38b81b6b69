"""Files of a model, written byte by byte."""

from __future__ import annotations

import json
import math
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


class Builder:
    """Writes the files of a model into a folder; the data of a tensor is a hole in the file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def safetensors(self, tensors: Tensors, name: str = "model.safetensors") -> Path:
        header, data = header_of(tensors)
        return self.raw_safetensors(json.dumps(header).encode(), data, name)

    def raw_safetensors(self, header: bytes, data: int, name: str = "model.safetensors") -> Path:
        path = self.folder / name
        with path.open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + data)
        return path

    def json(self, name: str, value: object) -> Path:
        path = self.folder / name
        path.write_text(json.dumps(value))
        return path


@pytest.fixture
def model(tmp_path: Path) -> Builder:
    return Builder(tmp_path)
