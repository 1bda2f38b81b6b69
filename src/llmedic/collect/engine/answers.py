"""What a server's API says about itself: which engine, which version, which model, which settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from llmedic.collect.engine import raws
from llmedic.knowledge import flags, metrics
from llmedic.model.deployment import Flag, FlagValue
from llmedic.model.raw import Raw
from llmedic.wire import jsontext

_OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "library": "ollama"}
_NOT_SETTINGS = frozenset({"model", "host", "port", "api_key", "hf_token", "served_model_name"})
"""Known by other means, or secret."""
_VLLM_SETTINGS = {
    "model_config": ("max_model_len", "dtype", "quantization", "enforce_eager"),
    "cache_config": ("block_size", "gpu_memory_utilization", "enable_prefix_caching", "num_gpu_blocks_override"),
    "scheduler_config": (
        "max_num_seqs",
        "max_num_batched_tokens",
        "enable_chunked_prefill",
        "max_num_partial_prefills",
    ),
    "parallel_config": ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"),
}
_LONGEST_NAME = 500
_TGI_SETTINGS = ("max_concurrent_requests", "max_input_tokens", "max_total_tokens", "max_batch_total_tokens")


@dataclass(slots=True)
class Said:
    """What the answers of one server add up to; values are vocabulary names with numbers."""

    engine: str = ""
    version: str = ""
    model: str = ""
    flags: list[Flag] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)


def said(answers: Iterable[Raw]) -> Said:
    """Read every usable answer of one server; what cannot be read is skipped."""
    found = Said()
    for raw in answers:
        if raw.status != 200 or raw.error or raw.kind not in _READERS:
            continue
        try:
            body = msgspec.json.decode(raw.body)
        except jsontext.NOT_READABLE:
            continue
        _READERS[raw.kind](body, found)
    return found


def flags_of_info(labels: Mapping[str, str], metric: metrics.Metric, engine: str) -> Iterator[Flag]:
    """The settings in the labels of an info metric (vLLM's cache_config_info)."""
    for label, name in metric.flags.items():
        if label in labels:
            yield Flag(name=name, value=typed(labels[label]), spelled=flags.spelling(name, engine), origin="metrics")


def values_of_info(labels: Mapping[str, str], metric: metrics.Metric) -> dict[str, float]:
    """The vocabulary values in the labels of an info metric; the pool in tokens follows from its blocks."""
    values: dict[str, float] = {}
    for label, name in metric.observes.items():
        value = typed(labels.get(label, ""))
        if isinstance(value, float) and value > 0:
            values[name] = value
    size = typed(labels.get("block_size", ""))
    if "kv_cache_tokens" not in values and "kv_blocks_count" in values and isinstance(size, float):
        values["kv_cache_tokens"] = values["kv_blocks_count"] * size
    return values


def typed(text: str) -> FlagValue:
    """A label's text as what it stands for: True, None, a number, or the text itself."""
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered in ("", "none", "null"):
        return None
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", lowered):
        return float(lowered)
    return text


def _models(body: object, found: Said) -> None:
    cards = _list(_get(body, "data"))
    if not cards:
        return
    card = cards[0]
    found.engine = found.engine or _OWNERS.get(str(_get(card, "owned_by")), "")
    found.model = found.model or _text(card, "root") or _text(card, "id")
    _add(found, "max_model_len", _get(card, "max_model_len"), "models-api")


def _version(body: object, found: Said) -> None:
    found.version = found.version or _text(body, "version")


def _api_version(body: object, found: Said) -> None:
    if _get(body, "version"):
        found.engine = "ollama"
        _version(body, found)


def _server_info(body: object, found: Said) -> None:
    config = _get(body, "vllm_config")
    if isinstance(config, dict):
        found.engine = "vllm"
        for section, names in _VLLM_SETTINGS.items():
            for name in names:
                _add(found, name, _get(_get(config, section), name), "server-info")
        return
    arguments = body if _get(body, "model_path") else _get(body, "server_args")
    if not _get(arguments, "model_path"):
        return
    found.engine = "sglang"
    found.version = _text(body, "version") or found.version
    found.model = _text(arguments, "model_path")
    for own, value in arguments.items() if isinstance(arguments, dict) else ():
        if f"--{own.replace('_', '-')}" in flags.by_spelling("sglang"):
            _add(found, own, value, "server-info")
    tokens = _get(body, "max_total_num_tokens")
    if isinstance(tokens, int) and tokens > 0:
        found.values["kv_cache_tokens"] = float(tokens)


def _props(body: object, found: Said) -> None:
    slots = _get(body, "total_slots")
    if slots is None and _get(body, "default_generation_settings") is None:
        return
    found.engine = "llama.cpp"
    found.version = found.version or _text(body, "build_info")
    found.model = _text(body, "model_path") or found.model
    _add(found, "parallel", slots, "server-info")
    context = _get(_get(body, "default_generation_settings"), "n_ctx")
    if isinstance(context, int) and context > 0:
        found.values["context_per_slot_tokens"] = float(context)


def _slots(body: object, found: Said) -> None:
    slots = [slot for slot in _list(body) if _get(slot, "n_ctx") is not None]
    if not slots:
        return
    found.engine = "llama.cpp"
    busy = sum(1 for slot in slots if _get(slot, "is_processing") is True or _get(slot, "state") == 1)
    found.values["requests_running"] = float(busy)
    context = _get(slots[0], "n_ctx")
    if isinstance(context, int) and context > 0:
        found.values.setdefault("context_per_slot_tokens", float(context))


def _ps(body: object, found: Said) -> None:
    models = _list(_get(body, "models"))
    if not models:
        return
    found.engine = found.engine or "ollama"
    found.model = _text(models[0], "name") or found.model
    _add(found, "num_ctx", _get(models[0], "context_length"), "server-info")


def _info(body: object, found: Said) -> None:
    if not _get(body, "model_id"):
        return
    found.engine = found.engine or "tgi"
    found.version = found.version or _text(body, "version")
    found.model = _text(body, "model_id")
    for name in _TGI_SETTINGS:
        _add(found, name, _get(body, name), "server-info")


def _add(found: Said, own: str, value: object, origin: str) -> None:
    """One setting under its neutral name; `own` is what the engine calls it."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, (bool, float, str)):
        return
    table = flags.by_spelling(found.engine)
    spec, is_positive = next(
        (table[spelled] for spelled in (f"--{own.replace('_', '-')}", own) if spelled in table), (None, True)
    )
    name = spec.name if spec else own
    if name in _NOT_SETTINGS:
        return
    if isinstance(value, bool) and not is_positive:
        value = not value  # disable_radix_cache: false means that prefix caching is on
    spelled = flags.spelling(name, found.engine)
    found.flags.append(Flag(name=name, value=value, spelled=spelled, origin=origin))


def _get(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _text(value: object, key: str) -> str:
    """A name or a version; "" for what is none, and for a page of text."""
    found = _get(value, key)
    return found if isinstance(found, str) and len(found) <= _LONGEST_NAME else ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


_READERS = {
    raws.MODELS: _models,
    raws.VERSION: _version,
    raws.API_VERSION: _api_version,
    raws.SERVER_INFO: _server_info,
    raws.PROPS: _props,
    raws.SLOTS: _slots,
    raws.PS: _ps,
    raws.INFO: _info,
}
