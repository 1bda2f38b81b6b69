"""Recurrent layers: what each keeps per request, and what it weighs.

State shapes and types follow vLLM 0.33 `model_executor/layers/mamba/mamba_utils.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

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


def _convolution(width: int, kernel: int, *, name: str = "conv", shares: int = 0) -> StateTensor:
    """The last `kernel - 1` columns of a convolution, and one more for each draft token."""
    return StateTensor(name=name, elements=width * (kernel - 1), elements_per_draft=width, shares=shares)


def _layer(state: tuple[StateTensor, ...], tensors: tuple[Tensor, ...]) -> Layer:
    return Layer(CacheLayer(kind="state", state=state), tensors)


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
        _convolution(mixed, kernel),
        StateTensor(name="ssm", elements=values * key_dim, bytes_each=state_bytes(fields)),
    )
    return _layer(
        state,
        (
            *linear("linear_attn.in_proj_qkv", "state", hidden, mixed),
            *linear("linear_attn.in_proj_z", "state", hidden, values),
            *linear("linear_attn.in_proj_b", "state", hidden, value_heads),
            *linear("linear_attn.in_proj_a", "state", hidden, value_heads),
            Tensor("linear_attn.conv1d", "state", mixed, kernel, "tensor"),
            *vector("linear_attn.dt_bias", "state", value_heads, "tensor"),
            *vector("linear_attn.A_log", "state", value_heads, "tensor", bytes_each=4),
            *norm("linear_attn.norm", value_dim),
            *linear("linear_attn.out_proj", "state", values, hidden),
        ),
    )


def kimi_delta(shape: Shape) -> Layer:
    """Kimi delta attention (Kimi Linear); its recurrent state is float32."""
    fields, hidden = shape.fields, shape.hidden
    nested = fields.section("linear_attn_config") or fields
    heads = nested.count("linear_num_heads", "num_heads", most=MOST_HEADS)
    dim = nested.count("linear_head_dim", "head_dim", most=MOST_HEADS)
    kernel = nested.count("short_conv_kernel_size", "linear_conv_kernel_dim", default=4, most=MOST_HEADS)
    width = heads * dim
    state = (_convolution(3 * width, kernel), StateTensor(name="ssm", elements=width * dim, bytes_each=4))
    gate = (
        *linear("self_attn.g_a_proj", "state", hidden, dim, "none"),
        *linear("self_attn.g_b_proj", "state", dim, width),
    )
    if nested.flag("use_full_rank_gate"):
        gate = linear("self_attn.g_proj", "state", hidden, width)
    projections = tuple(tensor for name in "qkv" for tensor in linear(f"self_attn.{name}_proj", "state", hidden, width))
    return _layer(
        state,
        (
            *projections,
            Tensor("self_attn.conv1d", "state", 3 * width, kernel, "tensor"),
            *vector("self_attn.dt_bias", "state", width, "tensor"),
            *vector("self_attn.A_log", "state", heads, "tensor", bytes_each=4),
            *linear("self_attn.f_a_proj", "state", hidden, dim, "none"),
            *linear("self_attn.f_b_proj", "state", dim, width),
            *linear("self_attn.b_proj", "state", hidden, heads),
            *gate,
            *norm("self_attn.o_norm", dim),
            *linear("self_attn.o_proj", "state", width, hidden),
        ),
    )


def lightning(shape: Shape) -> Layer:
    """Lightning attention (MiniMax Text 01)."""
    heads, dim, hidden = shape.heads, shape.head_dim, shape.hidden
    width = heads * dim
    state = (StateTensor(name="kv", elements=width * dim),)
    return _layer(
        state,
        (
            *linear("self_attn.qkv_proj", "state", hidden, 3 * width),
            *linear("self_attn.output_gate", "state", hidden, width),
            *linear("self_attn.out_proj", "state", width, hidden),
            *norm("self_attn.norm", width),
        ),
    )


def short_convolution(shape: Shape) -> Layer:
    """Short convolution (LFM2)."""
    hidden, kernel = shape.hidden, shape.fields.count("conv_L_cache", most=MOST_HEADS)
    bias = shape.fields.flag("conv_bias")
    return _layer(
        (_convolution(hidden, kernel),),
        (
            *linear("conv.in_proj", "state", hidden, 3 * hidden, bias=bias),
            Tensor("conv.conv", "state", hidden, kernel + bias, "tensor"),
            *linear("conv.out_proj", "state", hidden, hidden, bias=bias),
        ),
    )


def mamba1(fields: Fields, hidden: int, path: str, *, norms: bool) -> Layer:
    """Mamba 1 (Mamba, Falcon Mamba, Jamba); `norms`: the step and both projections of the state are normalised."""
    inner = fields.count("mamba_expand", "expand", default=2) * hidden
    size = fields.count("mamba_d_state", "state_size", default=16, most=MOST_HEADS)
    kernel = fields.count("mamba_d_conv", "conv_kernel", default=4, most=MOST_HEADS)
    rank = -(-hidden // 16) if fields.get("mamba_dt_rank", "time_step_rank") == "auto" else 0
    rank = rank or fields.count("mamba_dt_rank", "time_step_rank", default=-(-hidden // 16))
    bias = fields.flag("mamba_proj_bias", default=fields.flag("use_bias"))
    conv_bias = fields.flag("mamba_conv_bias", default=fields.flag("use_conv_bias", default=True))
    state = (
        _convolution(inner, kernel),
        StateTensor(name="ssm", elements=inner * size, bytes_each=state_bytes(fields)),
    )
    return _layer(
        state,
        (
            *linear(f"{path}.in_proj", "state", hidden, 2 * inner, bias=bias),
            Tensor(f"{path}.conv1d", "state", inner, kernel + conv_bias, "tensor"),
            *linear(f"{path}.x_proj", "state", inner, rank + 2 * size),
            *linear(f"{path}.dt_proj", "state", rank, inner, bias=True),
            Tensor(f"{path}.A_log", "state", inner, size, "tensor", bytes_each=4),
            *vector(f"{path}.D", "state", inner, "tensor"),
            *linear(f"{path}.out_proj", "state", inner, hidden, bias=bias),
            *(norm(f"{path}.norms", rank + 2 * size) if norms else ()),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """The measures of a Mamba 2 mixer."""

    inner: int
    heads: int
    groups: int
    size: int
    kernel: int
    conv_bias: bool
    bias: bool
    normed: bool = True


def mamba2_of(fields: Fields, hidden: int) -> Mamba2:
    """The measures in `fields`, whatever the family calls them; `InputError` when they do not fit together."""
    heads = fields.count("mamba_n_heads", "mamba_num_heads", "n_mamba_heads", "num_heads", most=MOST_HEADS)
    named = fields.get("mamba_d_head", "mamba_head_dim", "mamba_headdim")
    dim = None if named == "auto" else fields.optional("mamba_d_head", "mamba_head_dim", "mamba_headdim")
    inner = fields.optional("mamba_d_ssm") or (
        heads * dim if dim else fields.count("mamba_expand", "expand", default=2) * hidden
    )
    divided(inner, heads, "width per head of the state space layer")
    groups = fields.count("mamba_n_groups", "mamba_ngroups", "n_groups", default=1, most=MOST_HEADS)
    return Mamba2(
        inner=inner,
        heads=heads,
        groups=groups,
        size=fields.count("mamba_d_state", "ssm_state_size", "state_size", most=MOST_HEADS),
        kernel=fields.count("mamba_d_conv", "conv_kernel", default=4, most=MOST_HEADS),
        conv_bias=fields.flag("mamba_conv_bias", default=fields.flag("use_conv_bias", default=True)),
        bias=fields.flag("mamba_proj_bias", default=fields.flag("add_bias_linear", default=fields.flag("use_bias"))),
        normed=fields.flag("mamba_rms_norm", default=True),
    )


def mamba2(dims: Mamba2, hidden: int, path: str, ssm_bytes: float) -> Layer:
    """Mamba 2. Its groups are repeated when there are fewer than ranks (`extra_groups_for_head_shards`)."""
    inner, groups, size, kernel = dims.inner, dims.groups, dims.size, dims.kernel
    mixed = inner + 2 * groups * size
    state = (
        _convolution(inner, kernel),
        _convolution(2 * groups * size, kernel, name="conv groups", shares=groups),
        StateTensor(name="ssm", elements=inner * size, bytes_each=ssm_bytes),
    )
    return _layer(
        state,
        (
            *linear(f"{path}.in_proj", "state", hidden, inner + mixed + dims.heads, bias=dims.bias),
            Tensor(f"{path}.conv1d", "state", mixed, kernel + dims.conv_bias, "tensor"),
            *vector(f"{path}.A_log", "state", dims.heads, "tensor", bytes_each=4),
            *vector(f"{path}.D", "state", 2 * dims.heads, "tensor"),
            *(vector(f"{path}.norm", "norm", inner, "tensor") if dims.normed else ()),
            *linear(f"{path}.out_proj", "state", inner, hidden, bias=dims.bias),
        ),
    )
