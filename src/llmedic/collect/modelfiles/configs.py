"""The JSON files beside the weights: config.json and those that complete it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from llmedic.collect.modelfiles.opened import DOWNLOAD_AGAIN, text_of
from llmedic.collect.redact import is_secret_name
from llmedic.errors import InputError

MAX_BYTES = 16 << 20
FILES = {
    "config.json": "config",
    "generation_config.json": "generation_config",
    "tokenizer_config.json": "tokenizer_config",
    "quantize_config.json": "quantization",
    "quant_config.json": "quantization",
    "hf_quant_config.json": "quantization",
}
"""File name → kind of the raw answer that holds it."""
_METHODS = {"quantize_config.json": "gptq", "quant_config.json": "awq", "hf_quant_config.json": "modelopt"}
_TOKENIZER_KEYS = (
    "eos_token", "bos_token", "pad_token", "eos_token_id", "bos_token_id", "add_bos_token", "add_eos_token",
    "model_max_length", "tokenizer_class",
)  # fmt: skip
_NAMES_A_MODEL = frozenset(
    {
        "model_type",
        "architectures",
        "text_config",
        "num_hidden_layers",
        "n_layer",
        "n_layers",
        "num_layers",
        "hidden_size",
    }
)
_HINT = "give the config.json that came with the weights, unchanged"

Words = dict[str, object]


class _RefusedError(Exception):
    """Why a file is no configuration, in words that follow its name."""


def captured(path: Path) -> bytes:
    """The file as it is kept: config files whole, of a tokenizer only what is not prompt or vocabulary.

    Raises InputError when it cannot be read as what its name says.
    """
    body = text_of(path, limit_bytes=MAX_BYTES)
    try:
        found = _mapping(body)
        if FILES.get(path.name) == "tokenizer_config":
            return json.dumps(_tokenizer(found, path.parent)).encode()
        if FILES.get(path.name, "config") == "config":
            _check_model(found)
    except _RefusedError as error:
        hint = DOWNLOAD_AGAIN if str(error) == "is empty" else _HINT
        raise InputError(f"{path}: {error}", hint=hint) from error
    return body


def words(body: bytes) -> Words:
    """The keys and values of such a file. Raises InputError when it is none."""
    try:
        return _mapping(body)
    except _RefusedError as error:
        raise InputError(str(error), hint=_HINT) from error


def quantization(body: bytes, file: str) -> Words:
    """A quantisation's own file as `quantization_config` says it (the engines read them as one)."""
    found = words(body)
    inner = found.get("quantization")
    method = str(found.get("quant_method") or _METHODS.get(file, ""))
    return {"quant_method": method, **(inner if isinstance(inner, dict) else found)}


def _mapping(body: bytes) -> Words:
    text = _text(body)
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except RecursionError as error:
        raise _RefusedError("is nested without end") from error
    except ValueError as error:
        raise _RefusedError(f"is not JSON: {_short(error)}") from error
    if not isinstance(found, dict):
        raise _RefusedError("holds no JSON object")
    return found


def _text(body: bytes) -> str:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _RefusedError("is not UTF-8 text") from error
    if not text.strip():
        raise _RefusedError("is empty")
    if text.lstrip().startswith("<"):
        raise _RefusedError("is a web page, not JSON: what was saved is an error or a login page")
    return text


def _object(pairs: list[tuple[str, object]]) -> Words:
    """An object without its secrets; a key that stands there twice may not contradict itself."""
    found = dict(pairs)
    if len(found) < len(pairs):
        for key, value in pairs:
            if found[key] != value:
                raise _RefusedError(f"names {key[:60]!a} twice, with different values")
    return {key: value for key, value in found.items() if not (isinstance(value, str) and is_secret_name(key))}


def _constant(name: str) -> float:
    """Infinity stands in real files (the time step limits of Mamba 2), NaN in none."""
    if name == "NaN":
        raise _RefusedError("holds NaN where a number should be")
    return float(name)


def _check_model(found: Mapping[str, object]) -> None:
    if "build_config" in found and "pretrained_config" in found:
        raise _RefusedError("describes a TensorRT-LLM engine: give the folder that it was built from")
    if not found.keys() & _NAMES_A_MODEL:
        raise _RefusedError("names no model_type, so it is no model's configuration")


def _tokenizer(found: Mapping[str, object], folder: Path) -> Words:
    kept: Words = {}
    for key in _TOKENIZER_KEYS:
        value = found.get(key)
        value = value.get("content") if isinstance(value, dict) else value  # an added token with its settings
        if isinstance(value, str | int | float):
            kept[key] = value[:200] if isinstance(value, str) else value
    kept["chat_template"] = bool(found.get("chat_template")) or (folder / "chat_template.jinja").is_file()
    return kept


def _short(error: ValueError) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in str(error))[:100]
