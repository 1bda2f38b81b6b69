"""The shape of a model that memory follows from: what each layer caches, what each part weighs, how wide a step is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CacheKind = Literal["full", "sliding", "chunked", "mla", "state"]
"""What a layer keeps of the past.

    full      keys and values of every token
    sliding   of the last `window_tokens` tokens
    chunked   of the running chunk of `window_tokens` tokens (chunked local attention)
    mla       one latent vector per token, the same on every tensor-parallel rank
    state     a state of fixed size per request (Mamba, linear attention, short convolution)
"""

Split = Literal["tensor", "key-value", "expert", "vocabulary", "none"]
"""How a weight is divided over ranks.

    tensor      evenly over the tensor-parallel ranks
    key-value   over the ranks, but a KV head is never cut: with fewer heads than ranks, heads are repeated
    expert      over the ranks by width, or whole experts per rank with expert parallelism
    vocabulary  by rows over the ranks, the rows padded to a multiple (vLLM: 64)
    none        a copy on every rank
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTensor:
    """One tensor of a layer's per-request state, before it is divided over the tensor-parallel ranks.

    elements              numbers in it without speculation
    elements_per_draft    more of them for every speculative token (a convolution keeps one more column)
    bytes_each            bytes of one number; 0: as wide as the model computes
    shares                ranks that it divides over at most, beyond that it is repeated; 0: any number
    """

    name: str
    elements: int
    elements_per_draft: int = 0
    bytes_each: float = 0.0
    shares: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLayer:
    """What one layer caches. Equal layers compare equal; sizes are of the whole model, not of one rank.

    value_dim   width of a value head where it is not that of a key head (0: the same)
    latent_dim  MLA: numbers per token, kv_lora_rank + qk_rope_head_dim
    index_dim   sparse attention (DeepSeek V3.2): width of the indexer's key, cached per token beside the latent
    draft       the layer belongs to a draft head (MTP, EAGLE) and is there only while speculation is on
    """

    kind: CacheKind
    kv_heads: int = 0
    head_dim: int = 0
    value_dim: int = 0
    window_tokens: int = 0
    latent_dim: int = 0
    index_dim: int = 0
    state: tuple[StateTensor, ...] = ()
    draft: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPart:
    """Weights of one kind in one layer, or outside the layers.

    name        "embedding", "attention", "key-value", "mlp", "experts", "shared experts", "router", "state",
                "norm", "lm head", "vision", "audio", "draft", "other"
    layer       0-based decoder layer, None outside the layers
    parameters  numbers before quantisation
    bytes       bytes on the device over all ranks, scales and zero points of a quantisation included, each byte
                counted once however often a `split` repeats it
    """

    name: str
    parameters: int
    bytes: float
    split: Split
    layer: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """A model as far as memory is concerned.

    layers             one entry per decoder layer in order; None: it caches nothing of its own (no attention, or
                       it reads the cache of an earlier layer)
    draft_layers       cache of the draft head (MTP, EAGLE), counted only while speculation is on
    weights            every part once; draft_weights only while speculation is on
    mlp_width          widest intermediate size that one token meets in a dense layer (0: no dense layer)
    experts            routed experts of a mixture layer; 0: a dense model
    expert_width       intermediate size of one expert
    query_heads        query heads of an attention layer
    positions          longest context that the model was made for, 0: unknown
    bytes_each         bytes of one activation (2 for fp16 and bf16)
    quantization       how the checkpoint is quantised ("", "fp8", "awq", "gptq", "nvfp4", "mxfp4", "bitsandbytes",
                       "compressed-tensors", "gguf", …)
    multimodal         it takes images, audio or video, so start-up profiles an encoder too
    rotary_numbers     numbers in the tables of positions that an engine builds while loading, on every rank
    encoder_numbers    image encoder: numbers held for one patch at its widest moment (0: none, or not known)
    encoder_patches    patches behind one token of it; encoder_item_tokens: of the largest image (0: not known)
    familiar           False: nobody here knows this kind of model, so what its layers cache is a guess
    width_known        False: the weights may be stored narrower than told here, nobody said how narrow
    unsure             what the configuration did not say and was therefore assumed, one line each; when it is not
                       empty, sizes computed from this are not to be told as certain
    """

    architecture: str
    layers: tuple[CacheLayer | None, ...]
    weights: tuple[WeightPart, ...]
    hidden_size: int
    vocabulary: int
    query_heads: int
    mlp_width: int = 0
    experts: int = 0
    experts_per_token: int = 0
    expert_width: int = 0
    positions: int = 0
    bytes_each: int = 2
    quantization: str = ""
    multimodal: bool = False
    rotary_numbers: int = 0
    encoder_numbers: int = 0
    encoder_patches: int = 0
    encoder_item_tokens: int = 0
    draft_layers: tuple[CacheLayer, ...] = ()
    draft_weights: tuple[WeightPart, ...] = ()
    familiar: bool = True
    width_known: bool = True
    unsure: tuple[str, ...] = ()
