"""What the model families do differently where config.json does not say it: the conventions of their model classes.

Read from the configuration and model classes of transformers 5.19 and vLLM 0.33 (`model_executor/models`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llmedic.analysis.ledger.geometry.fields import Switch

Mixer = Literal["gqa", "mla", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Conventions of a model type.

    mixer               grouped-query attention, multi-head latent attention, or no attention at all
    tied                the output head is the embedding when the configuration does not say
    qkv_bias, o_bias    attention projections have biases; gate: the query projection is twice as wide (output gate)
    qk_norm             "head": a norm of head_dim each for queries and keys; "width": one over all heads;
                        qk_norm_if: field that must be true for it
    sinks               one learned sink per query head
    norms               norms of the hidden size in a layer; norm_bias: they are layer norms with a bias
    embedding_norm      a layer norm after the embedding
    gated               gate, up and down projection (else up and down); mlp_bias: those have biases
    mlp_factor          intermediate size as a multiple of the hidden size when it is absent
    full_every          without layer_types, one layer in so many is full and the others slide; 0: all alike
    window              sliding_window when absent; window_extra: tokens that the layer keeps beside it
    head_bias           the output head has a bias; positions: learned positions, so many more than the context
    router_bias         a bias per expert in the router; expert_bias: the expert matrices have biases
    encoder             it attends in both directions and caches nothing
    shared_gate         the shared expert has a gate of one row
    """

    mixer: Mixer = "gqa"
    tied: bool = False
    qkv_bias: Switch = False
    o_bias: Switch = False
    gate: Switch = False
    qk_norm: Literal["", "head", "width"] = ""
    qk_norm_if: str = ""
    sinks: bool = False
    norms: int = 2
    norm_bias: bool = False
    final_norm: bool = True
    embedding_norm: bool = False
    gated: bool = True
    mlp_bias: Switch = False
    mlp_factor: int = 0
    full_every: int = 0
    window: int = 0
    window_extra: int = 0
    head_bias: Switch = False
    positions: int | None = None
    router_bias: Switch = False
    expert_bias: bool = False
    shared_gate: bool = False
    head_dim: int = 0
    encoder: bool = False


_ATTENTION = ("attention_bias", False)
_MLP = ("mlp_bias", False)
_LLAMA = Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, mlp_bias=_MLP)
_GPT = Family(
    tied=True, qkv_bias=True, o_bias=True, mlp_bias=True, norm_bias=True, gated=False, mlp_factor=4, positions=0
)
_BERT = Family(
    tied=True,
    qkv_bias=True,
    o_bias=True,
    mlp_bias=True,
    norm_bias=True,
    final_norm=False,
    embedding_norm=True,
    gated=False,
    positions=0,
    encoder=True,
)
_QWEN3 = Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, qk_norm="head")
_DEEPSEEK = Family(mixer="mla", qkv_bias=_ATTENTION, o_bias=_ATTENTION, router_bias=True)

FAMILIES: dict[str, Family] = {
    "llama": _LLAMA,
    "mistral": Family(window=4096),
    "ministral3": Family(),
    "arcee": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, mlp_bias=_MLP, gated=False),
    "granite": _LLAMA,
    "internlm2": Family(qkv_bias=("bias", False), o_bias=("bias", False)),
    "internlm3": Family(qkv_bias=("qkv_bias", False), o_bias=("bias", False), mlp_bias=("bias", False)),
    "exaone": Family(),
    "aquila": Family(),
    "seed_oss": Family(qkv_bias=("attention_bias", True), o_bias=("attention_out_bias", False), mlp_bias=_MLP),
    "smollm3": Family(tied=True, qkv_bias=_ATTENTION, o_bias=_ATTENTION, mlp_bias=_MLP),
    "ernie4_5": Family(
        tied=True, qkv_bias=("use_bias", False), o_bias=("use_bias", False), mlp_bias=("use_bias", False)
    ),
    "qwen2": Family(qkv_bias=True),
    "qwen3": _QWEN3,
    "mimo": Family(qkv_bias=("attention_bias", True)),
    "phi3": Family(),
    "gemma": Family(tied=True, head_dim=256),
    "gemma2": Family(tied=True, norms=4, full_every=2, window=4096, head_dim=256),
    "gemma3_text": Family(tied=True, norms=4, qk_norm="head", full_every=6, window=4096, head_dim=256),
    "olmo": Family(norms=0, final_norm=False, qkv_bias=_ATTENTION, o_bias=_ATTENTION),
    "olmo2": Family(qk_norm="width", qkv_bias=_ATTENTION, o_bias=_ATTENTION),
    "olmo3": Family(qk_norm="width", qkv_bias=_ATTENTION, o_bias=_ATTENTION, full_every=4, window=4096),
    "exaone4": Family(qk_norm="head", full_every=4, window=4096),
    "glm": Family(qkv_bias=("attention_bias", True), head_dim=128),
    "glm4": Family(norms=4, qkv_bias=("attention_bias", True), head_dim=128),
    "cohere": Family(
        tied=True, norms=1, qkv_bias=_ATTENTION, o_bias=_ATTENTION, qk_norm="head", qk_norm_if="use_qk_norm"
    ),
    "cohere2": Family(
        tied=True,
        norms=1,
        qkv_bias=_ATTENTION,
        o_bias=_ATTENTION,
        full_every=4,
        window=4096,
        window_extra=1,
        head_dim=128,
    ),
    "hunyuan_v1_dense": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, qk_norm="head"),
    "apertus": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, qk_norm="head", gated=False),
    "nemotron": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, mlp_bias=_MLP, gated=False, norm_bias=True),
    "stablelm": Family(qkv_bias=("use_qkv_bias", False), norm_bias=True),
    "starcoder2": Family(
        tied=True,
        qkv_bias=("use_bias", True),
        o_bias=("use_bias", True),
        mlp_bias=("use_bias", True),
        norm_bias=True,
        gated=False,
    ),
    "phi": Family(qkv_bias=True, o_bias=True, mlp_bias=True, norms=1, norm_bias=True, gated=False, head_bias=True),
    "gpt2": _GPT,
    "gpt_bigcode": _GPT,
    "gpt_neox": Family(qkv_bias=True, o_bias=True, mlp_bias=True, norm_bias=True, gated=False, mlp_factor=4),
    "gptj": Family(mlp_bias=True, norms=1, norm_bias=True, gated=False, mlp_factor=4, head_bias=True),
    "opt": Family(
        tied=True,
        qkv_bias=("enable_bias", True),
        o_bias=("enable_bias", True),
        mlp_bias=("enable_bias", True),
        norm_bias=True,
        gated=False,
        positions=2,
    ),
    "bloom": Family(
        tied=True,
        qkv_bias=True,
        o_bias=True,
        mlp_bias=True,
        norm_bias=True,
        gated=False,
        mlp_factor=4,
        embedding_norm=True,
    ),
    "falcon": Family(
        tied=True,
        qkv_bias=("bias", False),
        o_bias=("bias", False),
        mlp_bias=("bias", False),
        norm_bias=True,
        gated=False,
        mlp_factor=4,
    ),
    "mpt": Family(tied=True, gated=False, mlp_factor=4),
    "chatglm": Family(qkv_bias=("add_qkv_bias", False), o_bias=("add_bias_linear", False)),
    "dbrx": Family(),
    "mixtral": Family(),
    "phimoe": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, norm_bias=True, head_bias=("lm_head_bias", False)),
    "qwen2_moe": Family(qkv_bias=("qkv_bias", True), shared_gate=True),
    "qwen3_moe": _QWEN3,
    "olmoe": Family(qk_norm="width", qkv_bias=_ATTENTION, o_bias=_ATTENTION),
    "granitemoe": _LLAMA,
    "granitemoeshared": _LLAMA,
    "glm4_moe": Family(qkv_bias=_ATTENTION, qk_norm="head", qk_norm_if="use_qk_norm", router_bias=True),
    "dots1": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, qk_norm="head", router_bias=True),
    "minimax_m2": Family(qk_norm="width", router_bias=True),
    "ernie4_5_moe": Family(
        tied=True,
        qkv_bias=("use_bias", False),
        o_bias=("use_bias", False),
        mlp_bias=("use_bias", False),
        router_bias=True,
    ),
    "hunyuan_v1_moe": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, qk_norm="head"),
    "gpt_oss": Family(
        qkv_bias=("attention_bias", True),
        o_bias=("attention_bias", True),
        sinks=True,
        full_every=2,
        window=128,
        router_bias=True,
        expert_bias=True,
        head_dim=64,
    ),
    "llama4_text": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, head_dim=128),
    "qwen3_next": Family(gate=True, qk_norm="head", qkv_bias=_ATTENTION, o_bias=_ATTENTION, shared_gate=True),
    "qwen3_5_text": Family(gate=True, qk_norm="head", qkv_bias=_ATTENTION, o_bias=_ATTENTION),
    "qwen3_5_moe_text": Family(gate=True, qk_norm="head", qkv_bias=_ATTENTION, o_bias=_ATTENTION, shared_gate=True),
    "deepseek_v2": Family(mixer="mla", qkv_bias=_ATTENTION, o_bias=_ATTENTION),
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
    "glm_moe_dsa": _DEEPSEEK,
    "glm4_moe_lite": _DEEPSEEK,
    "kimi_linear": _DEEPSEEK,
    "gemma3n_text": Family(tied=True, norms=4, qk_norm="head", full_every=5, window=512, head_dim=256),
    "gemma4_text": Family(tied=True, norms=4, qk_norm="head", full_every=6, window=512, head_dim=256),
    "jamba": Family(),
    "bamba": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, mlp_bias=_MLP),
    "granitemoehybrid": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION),
    "falcon_h1": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, mlp_bias=_MLP),
    "nemotron_h": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION, mlp_bias=_MLP, gated=False),
    "zamba2": Family(tied=True),
    "lfm2": Family(tied=True, qk_norm="head"),
    "lfm2_moe": Family(tied=True, qk_norm="head", router_bias=("use_expert_bias", True)),
    "minimax": Family(),
    "minimax_text_01": Family(),
    "mamba": Family(tied=True, mixer="none"),
    "falcon_mamba": Family(tied=True, mixer="none"),
    "mamba2": Family(mixer="none"),
    "longcat_flash": Family(mixer="mla"),
    "mimo_v2_flash": Family(router_bias=True),
    "mimo_v2": Family(router_bias=True),
    "nemotron-nas": _LLAMA,
    "deepseek": Family(qkv_bias=_ATTENTION, o_bias=_ATTENTION),
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "modernbert": Family(tied=True, norm_bias=False, encoder=True),
    "nomic_bert": Family(tied=True, norm_bias=True, encoder=True),
    "whisper": Family(
        tied=True, qkv_bias=True, o_bias=True, mlp_bias=True, norm_bias=True, norms=3, gated=False, positions=0
    ),
    "minimax_m3": Family(qk_norm="head", router_bias=True),
    "step3p5": Family(qk_norm="head", qkv_bias=_ATTENTION, router_bias=True),
    "solar_open": Family(qkv_bias=_ATTENTION, qk_norm="head", qk_norm_if="use_qk_norm", router_bias=True),
}

ALIASES: dict[str, str] = {
    "aquila3": "llama",
    "cwm": "llama",
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "llama4": "llama4_text",
    "qwen2_vl": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen2_5_omni_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "qwen3_omni_moe_text": "qwen3_moe",
    "qwen3_omni_moe_thinker": "qwen3_moe",
    "deepseek_vl_v2": "deepseek_v2",
    "minimax_m1": "minimax_text_01",
    "minimax_m3_vl": "minimax_m3",
    "minimax_m3_vl_text": "minimax_m3",
    "minimax_m3_sparse": "minimax_m3",
    "step3p5_text": "step3p5",
    "step3p7": "step3p5",
    "step3p7_text": "step3p5",
    "step3p7_flash": "step3p5",
    "phi4mm": "phi3",
    "RefinedWeb": "falcon",
    "RefinedWebModel": "falcon",
    "glm4v_text": "glm4",
    "glm4v_moe_text": "glm4_moe",
    "ernie4_5_vl_moe_text": "ernie4_5_moe",
    "hunyuan": "hunyuan_v1_moe",
}
"""Model types that lay a decoder out as another does."""
