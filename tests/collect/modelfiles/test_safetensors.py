"""Headers of safetensors files: real ones, cut ones, and ones that were made up to hurt."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.collect.modelfiles import safetensors
from llmedic.collect.modelfiles.groups import MAX_GROUPS, Tally
from llmedic.errors import InputError
from llmedic.model.deployment import TensorGroup

if TYPE_CHECKING:
    from tests.collect.modelfiles.conftest import Builder


def groups(path: Path) -> tuple[TensorGroup, ...]:
    tally = Tally()
    safetensors.add(path, tally)
    return tally.groups()


def entry(dtype: str = "F16", shape: object = (2,), offsets: object = (0, 4)) -> bytes:
    return json.dumps({"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}).encode()


def test_tensors_that_differ_in_numbers_only_are_one_group(model: Builder) -> None:
    experts = {
        f"model.layers.{layer}.mlp.experts.{number}.up_proj.weight": ("F8_E4M3", [4, 8])
        for layer in (0, 1)
        for number in range(3)
    }
    found = groups(model.safetensors({"model.embed_tokens.weight": ("BF16", [10, 8]), **experts, "scale": ("F32", [])}))
    up = "model.layers.{}.mlp.experts.{}.up_proj.weight"
    assert found == (
        TensorGroup(name="model.embed_tokens.weight", dtype="BF16", tensors=1, parameters=80, bytes=160),
        TensorGroup(name=up, layer=0, dtype="F8_E4M3", tensors=3, parameters=96, bytes=96),
        TensorGroup(name=up, layer=1, dtype="F8_E4M3", tensors=3, parameters=96, bytes=96),
        TensorGroup(name="scale", dtype="F32", tensors=1, parameters=1, bytes=4),
    )


@pytest.mark.parametrize(
    ("name", "pattern", "layer"),
    [
        ("transformer.h.11.attn.c_attn.weight", "transformer.h.{}.attn.c_attn.weight", 11),
        ("blk.7.ffn_up_exps.weight", "blk.{}.ffn_up_exps.weight", 7),
        ("model.visual.merger.mlp.0.weight", "model.visual.merger.mlp.{}.weight", None),
        ("layers.3", "layers.{}", 3),
        ("0.weight", "{}.weight", None),
        ("model.layers.1.w1.weight", "model.layers.{}.w1.weight", 1),
        ("model.layers.9999999999.w", "model.layers.9999999999.w", None),
        ("model.layers.².w", "model.layers.².w", None),
        ("", "", None),
    ],
)
def test_the_layer_of_a_name(model: Builder, name: str, pattern: str, layer: int | None) -> None:
    (found,) = groups(model.safetensors({name: ("F16", [1])}))
    assert (found.name, found.layer) == (pattern, layer)


def test_a_file_without_tensors_is_one(model: Builder) -> None:
    assert groups(model.safetensors({})) == ()
    assert groups(model.safetensors({"nothing": ("F32", [0, 5]), "half a byte": ("F4", [3, 2])}))[1].bytes == 3


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (b"[]", "Expected `object`"),
        (b"<html></html>", "malformed"),
        (b"\xff\xfe\x00", "malformed"),
        (b"[" * 5000, "not one of safetensors"),
        (b'{"a":{"dtype":"F16","shape":[NaN],"data_offsets":[0,4]}}', "malformed"),
        (b'{"\\ud800":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}', "malformed"),
        (b'{"a":[]}', "Expected `object`"),
        (b'{"a":{"dtype":"F16","shape":[2]}}', "data_offsets"),
        (entry(dtype="F17"), "dtype 'F17', which is not known"),
        (entry(dtype="\x1b[31m"), r"dtype '\x1b[31m', which"),
        (entry(shape=[-2]), "shape that no tensor has"),
        (entry(shape=[2**60, 2**60]), "shape that no tensor has"),
        (entry(shape=[2**40, 2**40]), "cannot take 4 bytes"),
        (entry(shape=[1] * 100), "shape that no tensor has"),
        (b'{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,%d]}}' % 10**4000, "place that no file has"),
        (entry(offsets=[4, 0]), "place that no file has"),
        (entry(offsets=[0, 6]), "cannot take 6 bytes"),
        (entry(offsets=[2, 6]), "bytes lie between"),
        (b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}',
         "overlap"),
        (b'{"a\\u001b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', "a name that no model has"),
        (json.dumps({"a" * 300: {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}).encode(), "a name that no"),
    ],
)  # fmt: skip
def test_a_header_that_contradicts_itself(model: Builder, header: bytes, why: str) -> None:
    with pytest.raises(InputError, match="safetensors") as raised:
        groups(model.raw_safetensors(header, 4))
    assert why in raised.value.message
    assert len(raised.value.message) < 400
    assert raised.value.hint


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "too short"),
        (b"\x00" * 9, "too short"),
        (b"\x00" * 20, "a header of 0 bytes"),
        (b"\xff" * 20, "a header of 18,446,744,073,709,551,615 bytes"),
        ((1 << 30).to_bytes(8, "little") + b"{}", "a header of 1,073,741,824 bytes"),
        ((1000).to_bytes(8, "little") + b"{}", "cut off: its header has 1,000 bytes"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "Git LFS pointer"),
        (len(entry()).to_bytes(8, "little") + entry() + b"123", "cut off: its tensors take 4 bytes and 3 are there"),
        (len(entry()).to_bytes(8, "little") + entry() + b"123456", "2 bytes too long"),
    ],
)
def test_a_file_that_is_cut_or_something_else(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"model\.safetensors: ") as raised:
        groups(path)
    assert why in raised.value.message


def test_names_without_end(model: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmedic.collect.modelfiles.groups.MAX_GROUPS", 10)
    path = model.safetensors({f"tensor_{number}": ("F16", [1]) for number in range(11)})
    with pytest.raises(InputError, match="more than 10 tensors with nothing in common"):
        groups(path)
    assert MAX_GROUPS > 10_000


@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda body: len(body).to_bytes(8, "little") + body))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        assert all(group.bytes >= 0 for group in groups(path))
