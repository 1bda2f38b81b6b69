"""Encoders beside the decoder: the vision and audio towers of multimodal models, and what joins them to it.

Shapes follow the vision classes of transformers 5.19; vLLM 0.33 loads the same tensors. An encoder whose kind is not
known counts nothing, and the caller is told so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from llmedic.analysis.ledger.geometry.fields import MOST_HEADS, MOST_LAYERS, Fields
from llmedic.analysis.ledger.geometry.tensors import Tensor, linear, vector

Tensors = tuple[Tensor, ...]
VISION = "vision"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The repeated part of a transformer encoder. norms: numbers of hidden size in its norms and scales."""

    layers: int
    hidden: int
    width: int
    norms: int = 4
    bias: bool = True
    gated: bool = False
    extra: int = 0


def blocks(shape: Blocks, part: str = VISION) -> Tensors:
    """Attention and feed-forward of all layers; equal matrices of the layers are one tensor with copies."""
    hidden, width, bias, copies = shape.hidden, shape.width, shape.bias, shape.layers
    up = 2 if shape.gated else 1
    return (
        *linear("blocks.qkv", part, hidden, 3 * hidden, bias=bias, copies=copies),
        *linear("blocks.proj", part, hidden, hidden, bias=bias, copies=copies),
        *linear("blocks.fc1", part, hidden, up * width, bias=bias, copies=copies),
        *linear("blocks.fc2", part, width, hidden, bias=bias, copies=copies),
        Tensor("blocks.norms", part, shape.norms * hidden + shape.extra, 1, copies=copies),
    )


def _plain(*sizes: int, part: str = VISION) -> Tensors:
    return vector("embeddings", part, sum(sizes))


def _joint(columns: int, inner: int, rows: int, *, bias: bool = True) -> Tensors:
    """Two linear layers from the encoder's width to the decoder's."""
    return (
        *linear("projector.0", VISION, columns, inner, bias=bias),
        *linear("projector.1", VISION, inner, rows, bias=bias),
    )


def _side(fields: Fields, name: str, default: int | None = None) -> int:
    """An image or patch size, which may be a pair of equal numbers."""
    return fields.first(name, default=default)


def _patches(fields: Fields, image: int | None = None, patch: int | None = None) -> tuple[int, int]:
    """Patches of a whole image, and numbers in one patch."""
    side, size = _side(fields, "patch_size", patch), _side(fields, "image_size", image)
    return (size // side) ** 2, 3 * side * side


def _base(fields: Fields, hidden: int, layers: int, width: int) -> Blocks:
    return Blocks(
        layers=fields.count("num_hidden_layers", "depth", default=layers, most=MOST_LAYERS),
        hidden=fields.count("hidden_size", default=hidden),
        width=fields.count("intermediate_size", default=width),
    )


def _clip(fields: Fields, config: Fields, decoder: int) -> Tensors:
    """CLIP with the two-layer projector of LLaVA."""
    shape = _base(fields, 768, 12, 3072)
    hidden = shape.hidden
    positions, patch = _patches(fields, 224, 32)
    newline = decoder if config.text("model_type") != "llava" else 0
    embeddings = _plain(hidden, patch * hidden, (positions + 1) * hidden, 4 * hidden, newline)
    return (*blocks(shape), *embeddings, *_joint(hidden, decoder, decoder))


def _siglip(fields: Fields, config: Fields, decoder: int) -> Tensors:
    """SigLIP; Gemma 3 joins it by one matrix, others by LLaVA's two layers."""
    shape = _base(fields, 768, 12, 3072)
    hidden = shape.hidden
    positions, patch = _patches(fields, 224, 16)
    embeddings = _plain((patch + 1) * hidden, positions * hidden, 2 * hidden)
    if config.text("model_type") in ("gemma3", "paligemma"):
        joint = (Tensor("projector", VISION, hidden, decoder), *_plain(hidden))
    else:
        joint = _joint(hidden, decoder, decoder)
    return (*blocks(shape), *embeddings, *joint)


def _intern(fields: Fields, config: Fields, decoder: int) -> Tensors:
    """InternViT; four patches become one before the projector."""
    del config
    base = _base(fields, 1024, 24, 4096)
    bias = fields.flag("qkv_bias", default=fields.flag("attention_bias", default=True))
    shape = replace(base, norms=6 if bias else 3)
    positions, patch = _patches(fields, 448, 14)
    hidden = shape.hidden
    embeddings = _plain(hidden, (positions + 1) * hidden, (patch + 1) * hidden, 8 * hidden)
    return (*blocks(shape), *embeddings, *_joint(4 * hidden, decoder, decoder))


def _pixtral(fields: Fields, config: Fields, decoder: int) -> Tensors:
    """Pixtral, with the patch merger of Mistral Small 3."""
    shape = replace(_base(fields, 1024, 24, 4096), norms=2, bias=False, gated=True)
    hidden = shape.hidden
    side = _side(fields, "patch_size", 16)
    bias = config.flag("multimodal_projector_bias", default=config.text("model_type") == "llava")
    merged = config.optional("spatial_merge_size", most=64)
    merger = linear("projector.merge", VISION, hidden * merged**2, hidden) if merged else ()
    embeddings = _plain(3 * side * side * hidden, hidden, hidden if merged else 0)
    return (*blocks(shape), *embeddings, *merger, *_joint(hidden, decoder, decoder, bias=bias))


def _qwen2(fields: Fields, config: Fields, decoder: int) -> Tensors:
    """Qwen2-VL and Qwen2.5-VL (whose norms have no bias and whose feed-forward is gated)."""
    later = config.text("model_type") != "qwen2_vl"
    hidden = fields.count("hidden_size" if later else "embed_dim", default=1280)
    width = fields.count("intermediate_size", default=3420) if later else hidden * fields.count("mlp_ratio", default=4)
    shape = Blocks(
        layers=fields.count("depth", default=32, most=MOST_LAYERS),
        hidden=hidden,
        width=width,
        norms=2 if later else 4,
        gated=later,
    )
    side, frames = _side(fields, "patch_size", 14), fields.count("temporal_patch_size", default=2, most=64)
    merged = hidden * fields.count("spatial_merge_size", default=2, most=64) ** 2
    embeddings = _plain(3 * frames * side * side * hidden, hidden if later else 2 * hidden)
    return (*blocks(shape), *embeddings, *_joint(merged, merged, decoder))


def _qwen3(fields: Fields, config: Fields, decoder: int) -> Tensors:
    """Qwen3-VL and Qwen3.5; a merger more for every layer that also feeds the decoder."""
    del config
    shape = _base(fields, 1152, 27, 4304)
    hidden = shape.hidden
    side, frames = _side(fields, "patch_size", 16), fields.count("temporal_patch_size", default=2, most=64)
    positions = fields.count("num_position_embeddings", default=2304)
    merged = hidden * fields.count("spatial_merge_size", default=2, most=64) ** 2
    deep = len(fields.counts("deepstack_visual_indexes", most=MOST_LAYERS) or ())
    out = fields.count("out_hidden_size", default=decoder)
    embeddings = _plain((3 * frames * side * side + 1 + positions + 2) * hidden)
    first = _joint(merged, merged, out)
    deeper = tuple(replace(tensor, copies=deep) for tensor in first) if deep else ()
    return (*blocks(shape), *embeddings, *first, *deeper, *_plain(2 * merged * deep))


def _llama4(fields: Fields, config: Fields, decoder: int) -> Tensors:
    del config
    shape = _base(fields, 768, 34, 5632)
    hidden = shape.hidden
    positions, patch = _patches(fields, 448, 14)
    ratio = fields.get("pixel_shuffle_ratio")
    shuffled = hidden * 4 if ratio in (None, 0.5) else hidden
    inner = fields.count("projector_input_dim", default=4096)
    joined = fields.count("projector_output_dim", default=4096)
    out = fields.count("vision_output_dim", default=7680)
    adapter = (
        Tensor("adapter.fc1", VISION, inner, max(shuffled, shape.width), "tensor", linear=True),
        Tensor("adapter.fc2", VISION, joined, inner, "tensor", linear=True),
        *linear("projector", VISION, out, decoder, "none"),
    )
    return (*blocks(shape), *_plain((2 + positions + patch + 4) * hidden), *adapter)


def _gemma4(fields: Fields, config: Fields, decoder: int) -> Tensors:
    del config
    base = _base(fields, 768, 16, 3072)
    dim = fields.count("head_dim", default=64, most=MOST_HEADS)
    shape = replace(base, norms=4, bias=False, gated=True, extra=2 * dim)
    hidden, side = shape.hidden, _side(fields, "patch_size", 16)
    positions = fields.count("position_embedding_size", default=10240)
    return (
        *blocks(shape),
        *_plain(2 * positions * hidden, 3 * side * side * hidden),
        *linear("embedding_projection", VISION, hidden, decoder, "none"),
    )


def _moon(fields: Fields, config: Fields, decoder: int) -> Tensors:
    """MoonViT of Kimi."""
    del config
    shape = Blocks(
        layers=fields.count("num_hidden_layers", "vt_num_hidden_layers", default=27, most=MOST_LAYERS),
        hidden=fields.count("hidden_size", "vt_hidden_size", default=1152),
        width=fields.count("intermediate_size", "vt_intermediate_size", default=4304),
    )
    hidden, side = shape.hidden, _side(fields, "patch_size", 14)
    height = fields.count("init_pos_emb_height", default=64, most=MOST_HEADS)
    width = fields.count("init_pos_emb_width", default=64, most=MOST_HEADS)
    embeddings = _plain((3 * side * side + 1 + height * width + 4) * hidden)
    return (*blocks(shape), *embeddings, *_joint(4 * hidden, 4 * hidden, decoder))


def _gemma4_audio(fields: Fields, config: Fields, decoder: int) -> Tensors:
    """The conformer of Gemma 4."""
    del config
    hidden = fields.count("hidden_size", default=1024)
    copies = fields.count("num_hidden_layers", default=12, most=MOST_LAYERS)
    heads = fields.count("num_attention_heads", default=8, most=MOST_HEADS)
    kernel = fields.count("conv_kernel_size", default=5, most=MOST_HEADS)
    out = fields.count("output_proj_dims", default=1536)
    return (
        *linear("audio.feed_forward.up", "audio", hidden, 4 * hidden, copies=2 * copies),
        *linear("audio.feed_forward.down", "audio", 4 * hidden, hidden, copies=2 * copies),
        *linear("audio.attention", "audio", hidden, hidden, copies=8 * copies),
        Tensor("audio.rest", "audio", (9 + kernel) * hidden + hidden // heads, 1, copies=copies),
        *_plain(128 * 9 + 128 + 32 * 128 * 9 + 32 + hidden * 1024 + out * (hidden + 1) + out * decoder, part="audio"),
    )


def _whisper(fields: Fields, config: Fields, decoder: int) -> Tensors:
    """The encoder of Whisper, as Qwen2-Audio and Voxtral have it; keys have no bias."""
    hidden = fields.count("d_model", "hidden_size", default=1280)
    shape = Blocks(
        layers=fields.count("encoder_layers", "num_hidden_layers", default=32, most=MOST_LAYERS),
        hidden=hidden,
        width=fields.count("encoder_ffn_dim", "intermediate_size", default=4 * hidden),
        norms=4,
    )
    del config
    mels = fields.count("num_mel_bins", default=128)
    positions = fields.count("max_source_positions", default=1500)
    embeddings = _plain((3 * mels + 1 + 3 * hidden + 1 + positions + 2) * hidden, part="audio")
    joint = linear("audio.projector", "audio", hidden, decoder, bias=True) if decoder else ()
    return (*blocks(shape, "audio"), *embeddings, *joint)


Builder = Callable[[Fields, Fields, int], Tensors]
VISION_TYPES: dict[str, Builder] = {
    "clip_vision_model": _clip,
    "siglip_vision_model": _siglip,
    "intern_vit_6b": _intern,
    "internvl_vision": _intern,
    "pixtral": _pixtral,
    "llama4_vision_model": _llama4,
    "gemma4_vision": _gemma4,
    "moonvit": _moon,
    "kimi_k25_vision": _moon,
    "qwen2_5_omni_vision_encoder": _qwen2,
    "qwen3_omni_moe_vision_encoder": _qwen3,
}
"""By the model type of the vision section."""
MODEL_TYPES: dict[str, Builder] = {
    "qwen2_vl": _qwen2,
    "qwen2_5_vl": _qwen2,
    "qwen3_vl": _qwen3,
    "qwen3_vl_moe": _qwen3,
    "qwen3_5": _qwen3,
    "qwen3_5_moe": _qwen3,
    "internvl_chat": _intern,
    "kimi_k25": _moon,
    "kimi_vl": _moon,
}
"""By the model type of the whole."""
AUDIO_TYPES: dict[str, Builder] = {
    "gemma4_audio": _gemma4_audio,
    "qwen2_audio_encoder": _whisper,
    "voxtral_encoder": _whisper,
    "qwen2_5_omni_audio_encoder": _whisper,
}
ELSEWHERE = (
    "vision_encoder",
    "visual",
    "encoder_config",
    "audio_encoder_config",
    "img_processor",
    "audio_processor",
    "mm_vision_tower",
    "vision_tower",
    "embd_layer",
)
"""Where other models describe an encoder; its shape is not read from there."""


def towers(config: Fields, decoder: int) -> tuple[Tensors, tuple[str, ...]]:
    """The encoders' tensors, and a line for each encoder that could not be counted."""
    tensors: list[Tensor] = []
    unsure: list[str] = []
    kind = config.text("model_type")
    if kind == "whisper":
        return _whisper(config, config, 0), ("the cache of the audio's keys and values is counted as one state",)
    for name, types in (("vision_config", VISION_TYPES), ("audio_config", AUDIO_TYPES)):
        section = config.section(name)
        if section is None or not section.values:
            continue
        build = MODEL_TYPES.get(kind) if name == "vision_config" else None
        build = build or types.get(section.text("model_type"))
        if build is None:
            unsure.append(
                f"the {name.split('_', maxsplit=1)[0]} encoder is not one that is known; its weights are missing"
            )
        else:
            tensors.extend(build(section, config, decoder))
    if any(config.has(name) for name in ELSEWHERE):
        unsure.append("the encoder for images or audio is not one that is known; its weights are missing")
    return tuple(tensors), tuple(unsure)


def multimodal(config: Fields) -> bool:
    """The configuration describes an encoder beside the decoder."""
    return config.text("model_type") == "whisper" or any(
        config.has(name) for name in ("vision_config", "audio_config", *ELSEWHERE)
    )
