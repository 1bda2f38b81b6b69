"""The tensors of a checkpoint in any format, as one raw answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatch
from pathlib import Path

import msgspec

from llmedic.collect.modelfiles import gguf, safetensors, shards
from llmedic.collect.modelfiles.groups import Tally, rows
from llmedic.collect.modelfiles.opened import CHECK, opened
from llmedic.errors import InputError
from llmedic.model.raw import Raw

SOURCE = "model"
MAX_TOTAL_BYTES = 512 << 20
"""Headers of all shards together."""
ENDINGS = "*.safetensors, *.gguf and pytorch_model*.bin are read"
_PYTORCH = ("pytorch_model*.bin", "consolidated*.pth", "model*.pth")
_NOT_READ = {
    ".engine": "a TensorRT engine", ".plan": "a TensorRT engine", ".onnx": "an ONNX model",
    ".h5": "TensorFlow weights", ".msgpack": "Flax weights", ".tflite": "a TFLite model", ".pte": "an ExecuTorch model",
    ".mlmodel": "a Core ML model", ".npz": "NumPy arrays", ".ot": "Rust weights",
}  # fmt: skip
NOTHING_HINT = "give a Hugging Face folder, a config.json, or a .safetensors or .gguf file"


def in_folder(folder: Path, name: str, there: Collection[str]) -> tuple[Raw, ...]:
    """The weights that lie in a folder, the format that engines prefer first.

    Raises InputError: there are none, some are missing or damaged, or there are several models.
    """
    found = sorted(one for one in there if one.endswith(".safetensors") and not one.startswith("adapter_"))
    # Mistral ships its checkpoint twice, under its own names and under those of Hugging Face.
    own = [one for one in found if one.startswith("consolidated")]
    if found:
        paths = shards.complete(
            folder, "model.safetensors.index.json", [one for one in found if one not in own] or own, there
        )
        return (_safetensors(paths, name),)
    ggufs = sorted(one for one in there if one.endswith(".gguf") and not one.startswith("mmproj"))
    if ggufs:
        return of_gguf(folder / _only(folder, ggufs))
    pytorch = sorted(one for one in there if any(fnmatch(one, pattern) for pattern in _PYTORCH))
    if pytorch:
        return (_pytorch(shards.complete(folder, "pytorch_model.bin.index.json", pytorch, there), name),)
    for ending, what in _NOT_READ.items():
        if other := next((one for one in sorted(there) if one.endswith(ending)), ""):
            raise InputError(f"{folder}: {other} is {what}, which is not read", hint=ENDINGS)
    raise InputError(f"{folder}: holds no weights", hint=NOTHING_HINT)


def of_safetensors(path: Path) -> Raw:
    """The weights of one file and of the shards that its name announces."""
    names, there = shards.set_of(path.name), _names(path.parent)
    shards.check(names, there if len(names) > 1 else names, path.parent)
    return _safetensors([path.parent / name for name in names], shards.stem(path.name))


def of_gguf(path: Path, name: str = "") -> tuple[Raw, ...]:
    """The metadata and the weights of one file and of the parts that it was split into."""
    names = shards.set_of(path.name)
    if len(names) > 1:
        shards.check(names, _names(path.parent), path.parent)
    tally = Tally()
    headers = [gguf.add(path.parent / part, tally) for part in names]
    if headers[0].parts != len(names):
        raise InputError(
            f"{path}: one of {headers[0].parts} parts, whose names do not show the others",
            hint="keep the names NAME-00001-of-0000N.gguf",
        )
    first = headers[0].metadata
    if (kind := first.get("general.type")) not in (None, "model") or first.get("general.architecture") == "clip":
        what = "an image encoder" if kind in (None, "mmproj") else f"of type {kind}"
        raise InputError(f"{path}: {what}, not a language model", hint="give the .gguf file of the model itself")
    target = name or shards.stem(path.name)
    metadata = Raw(source=SOURCE, kind="gguf", target=target, body=msgspec.json.encode(first))
    return metadata, _raw(tally, target, "gguf", len(names))


def of_pytorch(path: Path) -> Raw:
    """The size of one file: what is in it would have to be unpickled, which runs code."""
    return _pytorch([path], shards.stem(path.name))


def _safetensors(paths: Sequence[Path], name: str) -> Raw:
    tally, left = Tally(), MAX_TOTAL_BYTES
    for path in paths:
        left -= safetensors.add(path, tally)
        if left < 0:
            raise InputError(f"{path.parent}: headers of more than {MAX_TOTAL_BYTES >> 20} MiB", hint=NOTHING_HINT)
    return _raw(tally, name, "safetensors", len(paths))


def _pytorch(paths: Sequence[Path], name: str) -> Raw:
    found = []
    for path in paths:
        with opened(path) as (_, size):
            found.append([path.name, None, "", 0, 0, size])
    body = msgspec.json.encode({"format": "pytorch", "files": len(found), "groups": found})
    return Raw(source=SOURCE, kind="tensors", target=name, body=body)


def _raw(tally: Tally, name: str, format_: str, files: int) -> Raw:
    body = msgspec.json.encode({"format": format_, "files": files, "groups": rows(tally.groups())})
    return Raw(source=SOURCE, kind="tensors", target=name, body=body)


def _only(folder: Path, ggufs: Sequence[str]) -> str:
    """The one model among the files; a split one counts once."""
    models = {shards.set_of(one)[0]: one for one in ggufs}
    if len(models) > 1:
        some = ", ".join(sorted(models.values())[:4])
        raise InputError(f"{folder}: {len(models)} models in it: {some}", hint="name one of the files")
    return next(iter(models.values()))


def _names(folder: Path) -> frozenset[str]:
    try:
        return frozenset(path.name for path in folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror}", hint=CHECK) from error
