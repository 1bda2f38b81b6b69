"""Finds the files of a model behind a path and keeps what describes it; weights are never read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

from llmedic.collect.modelfiles import configs, gguf, ollama, weights
from llmedic.collect.modelfiles.opened import CHECK, opened, text_of
from llmedic.collect.modelfiles.weights import NOTHING_HINT, SOURCE
from llmedic.errors import InputError
from llmedic.model.raw import Raw

MAX_ENTRIES = 100_000
_TEXTS = frozenset(
    {
        "tokenizer.json", "vocab.json", "vocab.txt", "merges.txt", "added_tokens.json", "special_tokens_map.json",
        "params.json", "chat_template.json", "modules.json",
    }
)  # fmt: skip
"""Files beside the weights that are called as a log might be."""
_CONFIG_GAP = "without it the layout of the caches is not known: give the folder with config.json"
_WEIGHTS_GAP = "the weights are computed from config.json; give the folder with all weight files to count them"


def capture(path: Path) -> tuple[Raw, ...]:
    """What the model behind a path says of itself: a folder as downloaded (also one of the Hugging Face cache or of
    Ollama), a config.json, a .safetensors, .gguf or PyTorch file.

    Where the configuration is there and the weights are not, or not whole, that is a Raw with an error.

    Raises:
        InputError: there is no model, or what is there contradicts itself.
    """
    try:
        return _folder(_inside(path)) if path.is_dir() else _file(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}", hint=CHECK) from error
    except RuntimeError as error:  # pathlib, from a loop of links
        raise InputError(f"{path}: cannot be read: a loop of links", hint=CHECK) from error


def is_model(names: Iterable[str]) -> bool:
    """Whether files of these names look like those of a model."""
    return any(name == "config.json" or name.endswith((".gguf", ".safetensors")) for name in names)


def belongs_to_model(name: str) -> bool:
    """Whether a file of this name beside a model is part of it, though it may look like a log."""
    return name in _TEXTS or name.endswith(("config.json", ".index.json"))


def _inside(folder: Path) -> Path:
    """Where the files are: the Hugging Face cache keeps them one level down, under the revision's name."""
    snapshots = folder / "snapshots"
    if not folder.name.startswith("models--") or not snapshots.is_dir():
        return folder
    there = sorted(one for one in snapshots.iterdir() if one.is_dir())
    main = folder / "refs" / "main"
    revision = text_of(main, limit_bytes=1 << 10).decode(errors="replace").strip() if main.is_file() else ""
    named = [one for one in there if one.name == revision] or there
    if len(named) != 1:
        raise InputError(f"{folder}: {len(there)} revisions in it", hint=f"name one of the folders in {snapshots}")
    return named[0]


def _name(folder: Path) -> str:
    """The model's name: "org/name" in the Hugging Face cache, else the folder's."""
    folder = folder.absolute()
    cached = next((part for part in folder.parts[-3:] if part.startswith("models--")), "")
    return cached.removeprefix("models--").replace("--", "/") if cached else folder.resolve().name


def _folder(folder: Path) -> tuple[Raw, ...]:
    there = frozenset(one.name for one in islice(folder.iterdir(), MAX_ENTRIES))
    if ollama.is_store(there):
        return ollama.of_store(folder)
    if not there:
        raise InputError(f"{folder}: an empty folder", hint=NOTHING_HINT)
    name = _name(folder)
    if "config.json" not in there:
        _refuse_others(folder, there)
        found = weights.in_folder(folder, name, there)
        return found if found[0].kind == "gguf" else (_no_config(name), *found)
    settings = tuple(_setting(folder / file, name) for file in configs.FILES if file in there)
    return (*settings, *_weights(folder, name, there))


def _weights(folder: Path, name: str, there: frozenset[str]) -> tuple[Raw, ...]:
    try:
        return tuple(replace(raw, target=name) for raw in weights.in_folder(folder, name, there))
    except InputError as error:
        hint = _WEIGHTS_GAP if error.hint == NOTHING_HINT else f"{error.hint}; until then {_WEIGHTS_GAP}"
        return (Raw(source=SOURCE, kind="tensors", target=name, error=error.message, hint=hint),)


def _refuse_others(folder: Path, there: frozenset[str]) -> None:
    if "adapter_config.json" in there:
        raise InputError(f"{folder}: a LoRA adapter, not a model", hint="give the folder of the base model")
    if "model_index.json" in there:
        raise InputError(f"{folder}: a diffusion pipeline, not a language model", hint=NOTHING_HINT)


def _setting(path: Path, name: str) -> Raw:
    """One of the JSON files. Raises InputError for config.json only: the others are a gap."""
    kind = configs.FILES.get(path.name, "config")
    try:
        return Raw(source=SOURCE, kind=kind, target=name, body=configs.captured(path), meta={"file": path.name})
    except InputError as error:
        if kind == "config":
            raise
        return Raw(source=SOURCE, kind=kind, target=name, error=error.message, hint=error.hint)


def _no_config(name: str) -> Raw:
    return Raw(source=SOURCE, kind="config", target=name, error="no config.json beside the weights", hint=_CONFIG_GAP)


def _file(path: Path) -> tuple[Raw, ...]:
    with opened(path) as (file, _):
        start = file.read(64)
    if start.startswith(gguf.MAGIC) or path.suffix == ".gguf":
        return weights.of_gguf(path)
    if path.suffix == ".safetensors":
        return _beside_config(path, weights.of_safetensors(path))
    if path.suffix in (".bin", ".pth", ".pt") and start.startswith(b"PK"):
        return _beside_config(path, weights.of_pytorch(path))
    if ollama.is_manifest(path):
        return ollama.of_manifest(path)
    if path.suffix == ".json" or start.lstrip().startswith(b"{"):
        return _config_alone(path)
    raise InputError(f"{path}: not a model's file", hint=NOTHING_HINT)


def _beside_config(path: Path, found: Raw) -> tuple[Raw, ...]:
    beside = path.parent / "config.json"
    if not beside.is_file():
        return _no_config(found.target), found
    name = _name(path.parent)
    return _setting(beside, name), replace(found, target=name)


def _config_alone(path: Path) -> tuple[Raw, ...]:
    name = _name(path.parent)
    alone = Raw(source=SOURCE, kind="tensors", target=name, error="config.json was given alone", hint=_WEIGHTS_GAP)
    return _setting(path, name), alone
