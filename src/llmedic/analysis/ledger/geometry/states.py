"""Recurrent layers: what each keeps per request, and what it weighs.

State shapes and types follow vLLM 0.33 `model_executor/layers/mamba/mamba_utils.py`.
"""

from __future__ import annotations

from llmedic.analysis.ledger.geometry.fields import MOST_HEADS, Fields, divided, fault, shown
from llmedic.analysis.ledger.geometry.shape import Shape
from llmedic.analysis.ledger.geometry.tensors import Layer, Tensor, linear, norm, vector
from llmedic.model.geometry import CacheLayer, StateTensor

_TYPES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "auto": 0.0}


def state_bytes(fields: Fields, default: float = 0.0) -> float:
    """Bytes of one number of the recurrent state; 0: as wide as the model computes."""
    name = fields.text("mamba_ssm_dtype", "mamba_ssm_cache_dtype").removeprefix("torch.")
    if not name:
        return default
    if name not in _TYPES:
        raise fault(f"{fields.path}mamba_ssm_dtype is not a type that a state can have: {shown(name)}")
    return _TYPES[name]


def convolution(width: int, kernel: int, *, name: str = "conv", groups: int = 0) -> StateTensor:
    """The last `kernel - 1` columns of a convolution, and one more for each draft token."""
    return StateTensor(name=name, elements=width * (kernel - 1), elements_per_draft=width)


def delta_net(shape: Shape) -> Layer:
    """Gated delta net (Qwen3-Next, Qwen3.5)."""
    fields, hidden = shape.fields, shape.hidden
    key_heads = fields.count("linear_num_key_heads", most=MOST_HEADS)
    value_heads = fields.count("linear_num_value_heads", most=MOST_HEADS)
    key_dim = fields.count("linear_key_head_dim", most=MOST_HEADS)
    value_dim = fields.count("linear_value_head_dim", most=MOST_HEADS)
    kernel = fields.count("linear_conv_kernel_dim", most=MOST_HEADS)
    divided(value_heads, key_heads, "value heads per key head of the linear attention")
    keys, values = key_heads * key_dim, value_heads * value_dim
    mixed = 2 * keys + values
    state = (
        convolution(mixed, kernel),
        StateTensor(name="ssm", elements=values * key_dim, bytes_each=state_bytes(fields)),
    )
    tensors = (
        *linear("linear_attn.in_proj_qkv", "state", hidden, mixed),
        *linear("linear_attn.in_proj_z", "state", hidden, values),
        *linear("linear_attn.in_proj_b", "state", hidden, value_heads),
        *linear("linear_attn.in_proj_a", "state", hidden, value_heads),
        Tensor("linear_attn.conv1d", "state", mixed, kernel, "tensor"),
        *vector("linear_attn.dt_bias", "state", value_heads, "tensor"),
        *vector("linear_attn.A_log", "state", value_heads, "tensor", bytes_each=4),
        *norm("linear_attn.norm", value_dim),
        *linear("linear_attn.out_proj", "state", values, hidden),
    )
    return Layer(CacheLayer(kind="state", state=state), tensors)
