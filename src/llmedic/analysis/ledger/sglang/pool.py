"""SGLang's pools: tokens from bytes, the split between full and sliding layers, and slots of recurrent state.

model_executor/model_runner.py (profile_max_num_token) up to 0.5.9, model_executor/pool_configurator.py and
mem_cache/kv_cache_configurator.py since.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from llmedic.analysis.ledger.sglang.settings import Settings
from llmedic.model.geometry import CacheLayer, Geometry

_GIB = 2**30
_STATES_PER_REQUEST = 3
"""Slots of state for every running request while prefixes are cached (MAMBA_CACHE_SIZE_MAX_RUNNING_REQUESTS_RATIO)."""
_WITHOUT_LIMIT = 512
"""Slots where neither prefixes are cached nor a number of requests is given."""
_SCALES = 128
"""An indexer key in fp8 has one fp32 scale per so many numbers (DSATokenToKVPool.quant_block_size)."""
_ROTARY = 64
"""Numbers of a latent that carry the position (qk_rope_head_dim of every DeepSeek model)."""
_SPLIT_SINCE: dict[str, tuple[int, ...]] = {
    "llama4": (0, 5, 2),
    "gptoss": (0, 5, 2),
    "mimov2": (0, 5, 9),
    "step3p5": (0, 5, 9),
    "gemma4": (0, 5, 20),
    "laguna": (0, 5, 23),
    "graniteswa": (0, 5, 23),
    "mellum": (0, 5, 23),
}
"""Architectures whose sliding layers have a pool of their own, since when (model_config.py is_hybrid_swa_model).
Sliding layers of all others keep every token."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Bytes of one token of one rank: in the layers that keep everything, and in those with a pool of their own."""

    full: float
    sliding: float
    full_keys: float
    sliding_keys: float

    def per_token(self, ratio: float) -> float:
        """Of one token of the full pool, its share of the sliding pool included."""
        return self.full + self.sliding * (ratio if self.full else 1.0)


@dataclass(frozen=True, slots=True)
class Pool:
    """Tokens of the full pool and of the sliding pool (0: there is none)."""

    tokens: int
    sliding_tokens: int


def cells(geometry: Geometry, settings: Settings) -> Cells:
    """What one token takes on one rank; of the pipeline stage with the most layers."""
    full = sliding = full_keys = sliding_keys = 0.0
    for layer in (*geometry.layers, *(geometry.draft_layers if settings.speculation else ())):
        if layer is None or layer.kind == "state":
            continue
        keys, values = _row(layer, settings)
        if layer.kind in ("sliding", "chunked") and splits(geometry, settings):
            sliding, sliding_keys = sliding + keys + values, sliding_keys + keys
        else:
            full, full_keys = full + keys + values, full_keys + keys
    share = 1 / settings.pipeline
    return Cells(full * share, sliding * share, full_keys * share, sliding_keys * share)


def splits(geometry: Geometry, settings: Settings) -> bool:
    """Whether layers with a window get a pool of their own."""
    name = geometry.architecture.lower().replace("_", "").replace("-", "")
    return any(name.startswith(prefix) and settings.version >= since for prefix, since in _SPLIT_SINCE.items())


def pool(one: Cells, available: float, settings: Settings) -> Pool:
    """How many tokens the bytes hold, in whole pages."""
    each = one.per_token(settings.window_ratio)
    if each <= 0 or available <= 0:
        return Pool(0, 0)
    tokens = floor(available / each)
    if settings.token_limit:
        tokens = min(tokens, settings.token_limit)
    tokens = tokens // settings.page * settings.page
    if not one.sliding:
        return Pool(tokens, 0)
    sliding = floor(tokens * settings.window_ratio) if one.full else tokens
    return Pool(tokens, sliding // settings.page * settings.page)


def printed_gib(one: Cells, tokens: int, settings: Settings, *, sliding: bool = False) -> tuple[float, float]:
    """K size and V size as the log prints them: one page more than the tokens, for writes of padded batches."""
    rows = tokens + settings.page
    keys = one.sliding_keys if sliding else one.full_keys
    whole = one.sliding if sliding else one.full
    return rows * keys / _GIB, rows * (whole - keys) / _GIB


def state_bytes(geometry: Geometry, settings: Settings) -> float:
    """One slot of all recurrent layers on one rank: convolutions as wide as the model, states as --mamba-ssm-dtype."""
    found = 0.0
    for layer in geometry.layers:
        for tensor in layer.state if layer is not None else ():
            plain = settings.state_element_bytes if tensor.name != "conv" else geometry.bytes_each
            found += tensor.elements * (tensor.bytes_each or plain)
    return found / settings.attention_ranks / settings.pipeline


def state_slots(geometry: Geometry, settings: Settings, rest: float) -> int:
    """Slots of recurrent state out of `rest` bytes (_handle_max_mamba_cache); one more is allocated for padding."""
    each = state_bytes(geometry, settings)
    if not each:
        return 0
    if settings.state_slots:
        return settings.state_slots
    if not settings.prefix_caching:
        return settings.running or _WITHOUT_LIMIT
    budget = max(0.0, rest) * settings.state_ratio / (1 + settings.state_ratio)
    return max(0, floor((budget - each) / each))


def running_limit(settings: Settings, tokens: int, slots: int) -> int:
    """max_running_requests as the engine ends up with (resolve_max_num_reqs)."""
    usual = min(max(int(tokens / max(settings.context, 1) * 512), 2048), 4096)
    limit = min(settings.running or usual, max(tokens // 2, 1))
    if not slots:
        return limit
    per_request = _STATES_PER_REQUEST + settings.extra_state_slots if settings.prefix_caching else 1
    return min(limit, slots // per_request)


def _row(layer: CacheLayer, settings: Settings) -> tuple[float, float]:
    """Bytes of keys and of values of one token in one layer on one rank."""
    if layer.kind == "mla":
        index = layer.index_dim + layer.index_dim // _SCALES * 4 if layer.index_dim else 0
        return _latent(layer, settings) + index, 0.0
    heads = max(1, layer.kv_heads // settings.attention_ranks)
    each = heads * settings.element_bytes
    return each * layer.head_dim, each * (layer.value_dim or layer.head_dim)


def _latent(layer: CacheLayer, settings: Settings) -> float:
    """Sparse attention keeps an fp8 latent with scales and its rotary part in bf16 (calculate_mla_kv_cache_dim)."""
    if layer.index_dim and settings.fp8_cache:
        rank = layer.latent_dim - _ROTARY
        return rank + rank // _SCALES * 4 + _ROTARY * 2
    return layer.latent_dim * settings.element_bytes
