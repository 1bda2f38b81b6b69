"""Headers of GGUF files, written by hand: whole, cut, and made up to hurt."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.collect.modelfiles import ggml, gguf
from llmedic.collect.modelfiles.groups import Tally
from llmedic.errors import InputError
from llmedic.model.deployment import TensorGroup

if TYPE_CHECKING:
    from tests.collect.modelfiles.conftest import Builder

LLAMA = {"general.architecture": "llama", "llama.block_count": 2, "general.name": "Tiny"}


def read(path: Path) -> tuple[gguf.Header, tuple[TensorGroup, ...]]:
    tally = Tally()
    header = gguf.add(path, tally)
    return header, tally.groups()


def string(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def one_value(kind: int, value: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + string(b"key") + struct.pack("<I", kind) + value


def one_tensor(kind: int = 0, shape: tuple[int, ...] = (4,), offset: int = 0, name: bytes = b"blk.0.w") -> bytes:
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    header += struct.pack("<IQ", kind, offset)
    return header + bytes(-len(header) % 32)


def test_metadata_and_tensors(model: Builder) -> None:
    values = {
        **LLAMA,
        "tokenizer.ggml.tokens": ["a", "b", "ü" * 300],
        "tokenizer.chat_template": "{{ x }}" * 100,
        "scale": 0.5,
        "heads": [8, 0, 8],
        "slides": [True, False],
        "scores": [0.0] * 5000,
    }
    tensors = {"token_embd.weight": ("Q4_K", [256, 3]), "blk.1.ffn_up.weight": ("Q8_0", [64, 8, 2]), "x": ("F32", [3])}
    header, groups = read(model.gguf(values, tensors))
    assert header.metadata == {
        **LLAMA,
        "tokenizer.ggml.tokens.length": 3,
        "tokenizer.chat_template": None,
        "scale": 0.5,
        "heads": [8, 0, 8],
        "slides": [True, False],
        "scores.length": 5000,
    }
    assert (header.parts, header.tensors) == (1, 3)
    assert groups == (
        TensorGroup(name="token_embd.weight", dtype="Q4_K", tensors=1, parameters=768, bytes=432),
        TensorGroup(name="blk.{}.ffn_up.weight", layer=1, dtype="Q8_0", tensors=1, parameters=1024, bytes=1088),
        TensorGroup(name="x", dtype="F32", tensors=1, parameters=3, bytes=12),
    )


def test_version_2_and_another_alignment(model: Builder, tmp_path: Path) -> None:
    content = b"GGUF" + struct.pack("<IQQ", 2, 0, 1) + string(b"general.alignment") + struct.pack("<II", 4, 64)
    path = tmp_path / "two.gguf"
    path.write_bytes(content)
    assert read(path)[0].metadata == {"general.alignment": 64}


@pytest.mark.parametrize(
    ("kind", "code"), [(0, "B"), (1, "b"), (2, "H"), (3, "h"), (5, "i"), (10, "Q"), (11, "q"), (12, "d")]
)
def test_every_kind_of_number(tmp_path: Path, kind: int, code: str) -> None:
    path = tmp_path / "number.gguf"
    path.write_bytes(one_value(kind, struct.pack(f"<{code}", 7)))
    assert read(path)[0].metadata == {"key": 7}


def test_numbers_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "nan.gguf"
    path.write_bytes(one_value(6, struct.pack("<f", float("nan"))))
    assert read(path)[0].metadata == {"key": None}


def test_a_vocabulary_is_skipped_and_counted(model: Builder) -> None:
    """Longer than what is read at once, so that reading on within a list is tested."""
    header, groups = read(model.gguf({"tokens": ["x" * 30] * 60_000, **LLAMA}, {"w": ("F16", [2])}))
    assert header.metadata == {"tokens.length": 60_000, **LLAMA}
    assert len(groups) == 1


@pytest.mark.parametrize("number", sorted(ggml.FORMATS))
def test_every_format_weighs_what_its_name_says(tmp_path: Path, number: int) -> None:
    """Bits per weight: the digit in the name, and not more than two bits of scales beside it."""
    format_ = ggml.FORMATS[number]
    path = tmp_path / "format.gguf"
    header = one_tensor(number, (format_.block, 2))
    path.write_bytes(header + bytes(2 * format_.bytes))
    (group,) = read(path)[1]
    assert (group.dtype, group.bytes) == (format_.name, 2 * format_.bytes)
    digits = int("".join(filter(str.isdigit, format_.name.split("_")[0])))
    assert digits <= format_.bytes * 8 / format_.block <= digits + 2


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "announces at least 4 bytes and has 0"),
        (b"GGML" + bytes(50), "not a GGUF file"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "GGUF version 1"),
        (b"GGUF" + struct.pack("<IQQ", 99, 0, 0), "GGUF version 99"),
        (b"GGUF" + struct.pack("<IQQ", 3, 10**12, 0), "announces 0 keys and 1,000,000,000,000 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**64 - 1), "more than a model has"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63), "cut off"),
        (one_value(9, struct.pack("<IQ", 8, 10**9)), "cut off"),
        (one_value(9, struct.pack("<IQ", 0, 2**64 - 1)), "cut off"),
        (one_value(9, struct.pack("<IQ", 9, 1)), "a value of kind 9"),
        (one_value(9, struct.pack("<IQ", 8, 1) + struct.pack("<Q", 2**64 - 1)), "cut off"),
        (one_value(8, struct.pack("<Q", 2**40)), "cut off"),
        (one_value(13, b""), "a value of kind 13"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + (string(b"k") + struct.pack("<IB", 0, 1)) * 2, "names a key twice"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + string(b"general.alignment") + struct.pack("<II", 4, 0), "0 bytes"),
        (one_tensor(kind=4), "a tensor of type 4"),
        (one_tensor(kind=12), "whose rows are no multiple of 256"),
        (one_tensor(shape=(1,) * 5), "shape that no tensor has"),
        (one_tensor(shape=(2**63, 2**63)), "cut off: its tensors take"),
        (one_tensor(offset=2**63) + bytes(16), "cut off: its tensors take"),
        (one_tensor() + bytes(15), "cut off: its tensors take 16 bytes and 15 are there"),
        (one_tensor(name=b"\x1b[31m") + bytes(16), "a name that no model has"),
        (one_tensor(name=b"x" * 300) + bytes(16), "a name that no model has"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
    ],
)
def test_a_file_that_is_cut_or_made_up(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        read(path)
    assert why in raised.value.message
    assert raised.value.message.startswith(f"{path}: ")
    assert len(raised.value.message) < 400
    assert raised.value.hint


def test_tensors_that_overlap(tmp_path: Path) -> None:
    header = b"GGUF" + struct.pack("<IQQ", 3, 2, 0)
    for name in (b"a", b"b"):
        header += string(name) + struct.pack("<IQIQ", 1, 4, 0, 0)
    path = tmp_path / "bad.gguf"
    path.write_bytes(header + bytes(-len(header) % 32) + bytes(64))
    with pytest.raises(InputError, match="two tensors overlap"):
        read(path)


def test_a_header_without_end_is_given_up(tmp_path: Path) -> None:
    """A file with a hole of a terabyte costs nothing to make."""
    path = tmp_path / "bad.gguf"
    with path.open("wb") as file:
        file.write(one_value(9, struct.pack("<IQ", 8, 2**36)))
        file.truncate(2**40)
    with pytest.raises(InputError, match="a header of more than 256 MiB"):
        read(path)


@given(st.binary(max_size=300), st.integers(0, 3), st.integers(0, 3))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, tail: bytes, tensors: int, keys: int) -> None:
    path = tmp_path_factory.getbasetemp() / "any.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, tensors, keys) + tail)
    with contextlib.suppress(InputError):
        assert all(group.bytes >= 0 for group in read(path)[1])
