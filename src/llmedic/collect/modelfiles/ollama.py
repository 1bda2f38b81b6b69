"""Models as Ollama keeps them: a manifest that names layers, and a GGUF file under its hash.

Layout: https://github.com/ollama/ollama (manifest package; `manifests/HOST/NAMESPACE/MODEL/TAG`, `blobs/sha256-…`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from llmedic.collect.modelfiles import weights
from llmedic.collect.modelfiles.opened import text_of
from llmedic.errors import InputError
from llmedic.model.raw import Raw
from llmedic.wire import jsontext

MAX_MANIFEST_BYTES = 1 << 20
MAX_MANIFESTS = 1_000
_MODEL = "application/vnd.ollama.image.model"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_HINT = "ollama pull MODEL"


class _Layer(msgspec.Struct, rename="camel"):
    media_type: str
    digest: str


class _Manifest(msgspec.Struct):
    layers: list[_Layer]


def is_store(there: Collection[str]) -> bool:
    """Whether a folder with these names in it is Ollama's folder of models."""
    return "manifests" in there and "blobs" in there


def is_manifest(path: Path) -> bool:
    """Whether a file lies where Ollama keeps its manifests."""
    return _store(path) is not None


def of_store(store: Path) -> tuple[Raw, ...]:
    """The only model of a store. Raises InputError when there are several, or none."""
    found = list(islice(_manifests(store / "manifests"), MAX_MANIFESTS))
    if len(found) == 1:
        return of_manifest(found[0])
    if not found:
        raise InputError(f"{store}: no models in it", hint=_HINT)
    some = ", ".join(sorted(map(_name, found))[:4])
    raise InputError(f"{store}: {len(found)} models in it: {some}", hint=f"name one of the files in {store}/manifests")


def of_manifest(path: Path) -> tuple[Raw, ...]:
    """The model that a manifest names. Raises InputError when it names none that is there."""
    body = text_of(path, limit_bytes=MAX_MANIFEST_BYTES)
    try:
        layers = msgspec.json.decode(body, type=_Manifest).layers
    except jsontext.NOT_READABLE as error:
        raise InputError(f"{path}: is no manifest of Ollama: {str(error)[:100]}", hint=_HINT) from error
    models = [layer.digest for layer in layers if layer.media_type == _MODEL and _DIGEST.fullmatch(layer.digest)]
    store = _store(path)
    if len(models) != 1 or store is None:
        raise InputError(f"{path}: names {len(models)} models, and one was looked for", hint=_HINT)
    return weights.of_gguf(store / "blobs" / models[0].replace(":", "-"), _name(path))


def _manifests(folder: Path) -> Iterator[Path]:
    return (one for one in folder.glob("*/*/*/*") if one.is_file())


def _store(path: Path) -> Path | None:
    """The folder that holds a manifest's blobs."""
    parents = path.absolute().parents
    return parents[4] if len(parents) > 4 and parents[3].name == "manifests" else None


def _name(path: Path) -> str:
    """ "llama3.1:8b" of manifests/HOST/library/llama3.1/8b."""
    space, model, tag = path.absolute().parts[-3:]
    return f"{model}:{tag}" if space == "library" else f"{space}/{model}:{tag}"
