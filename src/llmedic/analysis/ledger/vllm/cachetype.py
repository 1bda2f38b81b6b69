"""The type of cached numbers: what --kv-cache-dtype and a checkpoint's own choice mean in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llmedic.errors import UsageError
from llmedic.model.geometry import Geometry

NVFP4_BYTES = 0.5 + 1 / 16
"""Four bits and one byte of scale per 16 numbers (vllm/utils/torch_utils.py, nvfp4_kv_cache_full_dim)."""
SCALE_BYTES = 4
PACKED_LATENT_BYTES = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 352}
"""A token of MLA with its scales (vllm/model_executor/layers/attention/mla_attention.py)."""
_BYTES = {
    "float32": 4.0,
    "float16": 2.0,
    "half": 2.0,
    "bfloat16": 2.0,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
    "fp8_inc": 1.0,
    "int8": 1.0,
    "fp8_ds_mla": 1.0,
    "nvfp4_ds_mla": NVFP4_BYTES,
    "nvfp4": NVFP4_BYTES,
    "nvfp4_4over6": NVFP4_BYTES,
    "int8_per_token_head": 1.0,
    "fp8_per_token_head": 1.0,
    "int4_per_token_head": 0.5,
}


@dataclass(frozen=True, slots=True)
class CacheType:
    """Bytes of one cached number, of the scale beside each head of a token, and of a token of packed MLA (0: none)."""

    element_bytes: float
    scale_bytes: int = 0
    latent_token_bytes: int = 0


def cache_type(word: str, geometry: Geometry, version: tuple[int, ...], config: Mapping[str, object]) -> CacheType:
    """The type that a word asks for; "auto" is the checkpoint's own choice, else the model's type.

    Raises UsageError for a type whose size is not known.
    """
    name = _checkpoint(config, version) if word in ("", "auto") else word
    sparse = any(layer is not None and layer.index_dim for layer in geometry.layers)
    if sparse and (name.startswith("fp8") or (name == "auto" and (0, 11) <= version < (0, 14))):
        name = "fp8_ds_mla"
    if name == "auto":
        return CacheType(float(geometry.bytes_each))
    if name not in _BYTES:
        known = ", ".join(sorted(_BYTES))
        raise UsageError(f"kv cache dtype: the size of {name!r} is not known", hint=f"known are auto, {known}")
    scale = SCALE_BYTES if name.endswith("_per_token_head") else 0
    return CacheType(_BYTES[name], scale, PACKED_LATENT_BYTES.get(name, 0))


def _checkpoint(config: Mapping[str, object], version: tuple[int, ...]) -> str:
    """What the checkpoint says about its cache, in the releases that listen.

    ModelOpt since 0.12 (vllm/utils/torch_utils.py, get_kv_cache_quant_algo_string), compressed-tensors since 0.22
    (vllm/model_executor/layers/attention/attention.py).
    """
    quantization = config.get("quantization_config")
    if not isinstance(quantization, Mapping):
        return "auto"
    inner = quantization.get("quantization", quantization)
    scheme = quantization.get("kv_cache_scheme")
    if str(quantization.get("quant_method", "")).startswith("modelopt"):
        if version and version < (0, 12):
            return "auto"
        named = inner.get("kv_cache_quant_algo") if isinstance(inner, Mapping) else None
        return _scheme(scheme or named)
    return "fp8" if isinstance(scheme, Mapping) and (not version or version >= (0, 22)) else "auto"


def _scheme(scheme: object) -> str:
    if isinstance(scheme, Mapping):
        bits, kind = scheme.get("num_bits"), scheme.get("type")
        if kind == "float" and bits == 8 and scheme.get("dynamic") is False:
            return "fp8"
        return "nvfp4" if kind == "float" and bits == 4 else "auto"
    word = str(scheme or "").lower()
    return word if word in ("fp8", "nvfp4") else "auto"
