"""Fields that announce a layout: a model that has one which its type does not explain is not computed at all."""

from __future__ import annotations

import re

from llmedic.analysis.ledger.geometry.families import FAMILIES
from llmedic.analysis.ledger.geometry.fields import Fields
from llmedic.errors import InputError

CONCEPTS = {
    "latent": r"(kv|q|o)_lora_rank",
    "indexed": r"index_(topk|head_dim|n_heads)|indexer_types|sparse_attention_config|index_topk_blocks",
    "compressed": r"compress_(ratios|rates)|hc_mult|attn_res_block_size|routed_expert_hidden_size",
    "recurrent": r"mamba_.+|ssm_(state_size|cfg)|state_size|linear_(num|key|value|conv|attn).*|conv_L_cache|block_types"
    r"|lru_width|rwkv.*|retention.*|n_mamba_heads|kda_.+|attn_type_list|full_attention_interval|short_conv.*",
    "patterned": r"hybrid_(layer|override)_pattern|layers_block_type|block_configs|swa_(num|head|v_head).*"
    r"|num_sliding_attention_heads|attention_other_setting|attn_layer_(period|offset|indices)",
    "crossed": r"cross_attention_layers|num_kv_shared_layers|cla_share_factor|use_cla|num_global_key_value_heads",
    "enriched": r"ngram_.+|ple_.+|altup_.+|hidden_size_per_layer_input|zero_expert_num|num_loops|total_ut_steps",
}
_PATTERNS = {concept: re.compile(pattern) for concept, pattern in CONCEPTS.items()}

_RECURRENT = ("recurrent", "patterned")
READS: dict[str, tuple[str, ...]] = {
    "deepseek_v2": ("latent",),
    "deepseek_v3": ("latent",),
    "kimi_k2": ("latent",),
    "glm4_moe_lite": ("latent",),
    "deepseek_v32": ("latent", "indexed"),
    "glm_moe_dsa": ("latent", "indexed"),
    "longcat_flash": ("latent", "enriched"),
    "kimi_linear": ("latent", "recurrent", "compressed"),
    "minimax_m2": ("recurrent",),
    "qwen3_next": ("recurrent",),
    "qwen3_5_text": ("recurrent",),
    "qwen3_5_moe_text": ("recurrent",),
    "jamba": _RECURRENT,
    "bamba": _RECURRENT,
    "granitemoehybrid": _RECURRENT,
    "falcon_h1": _RECURRENT,
    "nemotron_h": _RECURRENT,
    "zamba2": _RECURRENT,
    "lfm2": _RECURRENT,
    "lfm2_moe": _RECURRENT,
    "minimax": _RECURRENT,
    "minimax_text_01": _RECURRENT,
    "mamba": _RECURRENT,
    "mamba2": _RECURRENT,
    "falcon_mamba": _RECURRENT,
    "minimax_m3": ("indexed",),
    "step3p5": ("patterned",),
    "mimo_v2": ("patterned",),
    "mimo_v2_flash": ("patterned",),
    "nemotron-nas": ("patterned",),
    "gemma3n_text": ("crossed", "enriched"),
    "gemma4_text": ("crossed", "enriched"),
    "hunyuan_v1_moe": ("crossed",),
}
"""What the recipe of a model type takes into account."""


def refuse_unexplained(fields: Fields, kind: str) -> None:
    """Raise `InputError` when the configuration has a layout that this model type is not known to have."""
    read = READS.get(kind, ())
    for name, value in fields.values.items():
        if not value or not isinstance(name, str):
            continue
        for concept, pattern in _PATTERNS.items():
            if concept not in read and pattern.fullmatch(name):
                _refuse(name, kind)


def _refuse(name: str, kind: str) -> None:
    known = kind in FAMILIES
    why = "which that type is not known to have" if known else "and how that type uses it is not known"
    raise InputError(
        f"the model type {kind[:60]!r} has {name[:60]}, {why}: what its layers cache cannot be told",
        hint="give the engine's start-up log (--log), which prints the sizes",
    )
