"""What the checkpoint's files really hold: their sizes win over those computed from the configuration.

Files fuse, split and name tensors in their own ways, so sizes are compared by category, over all layers; what the
files hold more or less than was computed is shared out over the parts of the category. What only the engine adds
(padding, unpacked copies) stays as computed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from llmedic.analysis.ledger.geometry.fields import fault
from llmedic.model.deployment import TensorGroup
from llmedic.model.geometry import WeightPart

CATEGORIES = tuple(
    (category, re.compile(pattern))
    for category, pattern in (
        ("draft", r"(^|\.)mtp\.|nextn|shared_head|eh_proj"),
        ("vision", r"visual|vision|vit\.|image|patch_embed|multi_modal|mm_proj|^v\.|^mm\."),
        ("audio", r"audio|speech|^a\."),
        ("router", r"(mlp|moe|mixer|feed_forward)\.gate\.|router|ffn_gate_inp|e_score|exp_probs|shared_expert_gate"),
        ("shared experts", r"shared_expert|shexp|shared_mlp"),
        ("experts", r"experts\.|_exps\."),
        ("norm", r"norm|(^|\.)ln_"),
        ("lm head", r"(^|\.)(lm_head|embed_out|output_layer|output)\."),
        ("embedding", r"embed|(^|\.)wte\.|(^|\.)wpe\.|token_embd"),
        ("mixer", r"attn|attention|mixer|mamba|ssm|conv|[qkvo]_proj|kv_|c_attn"),
        ("mlp", r"mlp|feed_forward|ffn|fc\d|(^|\.)w[123]\.|dense"),
    )
)
ENCODERS = ("vision", "audio")
MIXER = ("attention", "key-value", "state")
ELSEWHERE = {"shared experts": "mlp", "router": "experts", "norm": "mixer", "other": "mixer", "lm head": ""}
"""Where a category is counted when the model has no such part; "": nowhere, the head is the embedding."""
WIDE = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2}


class Files:
    """The sizes of a checkpoint's tensors by category, as the engine holds them.

    bytes_each  of an activation; 0: every tensor is held as the file has it (GGUF)
    layers      of the model; what the files number beyond is a draft. Raises `InputError` when they hold fewer.
    """

    def __init__(self, groups: Iterable[TensorGroup], bytes_each: int, layers: int) -> None:
        self._sizes = _by_category(groups, bytes_each, layers)
        self._draft = self._sizes.pop("draft", 0.0)

    def correct(self, parts: Sequence[WeightPart], stored: Sequence[WeightPart]) -> tuple[WeightPart, ...]:
        """`parts` as the engine holds them, with the files' sizes; `stored`: the same as the checkpoint would."""
        expected: dict[str, float] = defaultdict(float)
        for part in stored:
            expected[_category(part.name)] += part.bytes
        real = self._as_expected(expected)
        changed = [
            replace(part, bytes=part.bytes + (real[category] / expected[category] - 1) * plain.bytes)
            if (category := _category(part.name)) in real and expected[category]
            else part
            for part, plain in zip(parts, stored, strict=True)
        ]
        added = [
            WeightPart(name=category, parameters=0, bytes=size, split="tensor")
            for category, size in real.items()
            if not expected[category]
        ]
        return (*changed, *added)

    def correct_drafts(self, parts: Sequence[WeightPart]) -> tuple[WeightPart, ...]:
        """Draft parts with the size that the files have for them, when they have any."""
        total = sum(part.bytes for part in parts)
        factor = self._draft / total if self._draft and total else 1.0
        return tuple(replace(part, bytes=part.bytes * factor) for part in parts)

    def _as_expected(self, expected: Mapping[str, float]) -> dict[str, float]:
        """The sizes under the categories that the model has; an encoder's are kept even if nobody expected it."""
        real: dict[str, float] = defaultdict(float)
        for category, size in self._sizes.items():
            known = expected.get(category) or category in ENCODERS
            if target := category if known else ELSEWHERE.get(category, "mixer"):
                real[target] += size
        return real


def usable(groups: Sequence[TensorGroup]) -> bool:
    """The files' tensors are known by name and type (of PyTorch files only the size is)."""
    return bool(groups) and all(group.dtype for group in groups)


def _category(part: str) -> str:
    return "mixer" if part in MIXER else part


def _by_category(groups: Iterable[TensorGroup], bytes_each: int, layers: int) -> dict[str, float]:
    sizes: dict[str, float] = defaultdict(float)
    deepest = -1
    for group in groups:
        category = next((name for name, pattern in CATEGORIES if pattern.search(group.name)), "other")
        if group.layer is not None and category not in ("vision", "audio", "draft"):
            deepest = max(deepest, group.layer)
            category = "draft" if group.layer >= layers else category
        sizes[category] += group.bytes * (_served(group, bytes_each) if bytes_each else 1.0)
    if 0 <= deepest < layers - 1:
        raise fault(f"it has {layers} layers, the weights have {deepest + 1}: they are of two models")
    return sizes


def _served(group: TensorGroup, bytes_each: int) -> float:
    """How much wider the engine holds a tensor: unquantised ones are as wide as the model computes, scales stay."""
    width = WIDE.get(group.dtype)
    return bytes_each / width if width and "scale" not in group.name else 1.0
