"""What SGLang makes of its flags: sizes of batches by card, parallel degrees, ratios of its pools."""

from __future__ import annotations

from dataclasses import dataclass

from llmedic.analysis.ledger.flagview import Flags
from llmedic.errors import InputError, UsageError
from llmedic.knowledge import releases
from llmedic.model.deployment import Deployment
from llmedic.model.geometry import Geometry

RESERVE, BATCHES, PIECEWISE, PHASES, WIDER = (0, 4, 8), (0, 5, 3), (0, 5, 10), (0, 5, 14), (0, 5, 20)
"""Releases in which the default share changed, as read in server_args.py and arg_groups/memory_hook.py: a reserve per
class of cards; a reserve from batch sizes; graphs of prefill counted; drafts no longer counted; larger batches."""
_CURRENT = (9, 9, 9)
_KIB = 1024
_KV_BYTES = {"fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "mxfp8": 33 / 32, "bf16": 2.0, "bfloat16": 2.0, "fp4_e2m1": 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the arithmetic needs.

    fraction          --mem-fraction-static as typed, None: the default of release and card
    chunk             --chunked-prefill-size, -1: prompts are not cut
    graph_batch       largest batch with a CUDA graph, 0 without graphs
    attention_ranks   ranks that divide the KV heads: fewer than tensor with --enable-dp-attention
    element_bytes     of one cached number
    """

    version: tuple[int, ...]
    fraction: float | None
    chunk: int
    prefill_tokens: int
    graph_batch: int
    prefill_graphs: bool
    tensor: int
    pipeline: int
    data: int
    data_attention: bool
    expert_parallel: bool
    speculation: str
    draft_tokens: int
    element_bytes: float
    fp8_cache: bool
    page: int
    context: int
    running: int
    token_limit: int
    window_ratio: float
    state_ratio: float
    state_slots: int
    prefix_caching: bool
    extra_state_slots: int
    state_element_bytes: float
    latent: bool

    @property
    def attention_ranks(self) -> int:
        """Ranks that divide the KV heads."""
        return max(1, self.tensor // self.data) if self.data_attention else self.tensor


def resolve(geometry: Geometry, deployment: Deployment, smi_mib: float | None) -> Settings:
    """The settings with the defaults of the release and a card of `smi_mib` MiB.

    Raises InputError for a value that SGLang would refuse, UsageError for degrees that do not fit together.
    """
    flags = Flags(deployment)
    version = releases.numbers(deployment.version) or _CURRENT
    tensor = flags.count("tensor_parallel_size", default=1, low=1)
    data = flags.count("data_parallel_size", default=1, low=1)
    data_attention = flags.switch("enable_dp_attention")
    if data_attention and tensor % data:
        raise UsageError(
            f"--enable-dp-attention needs --tp-size divisible by --dp-size, not {tensor} and {data}",
            hint=f"for example --dp-size {tensor}",
        )
    speculation = flags.word("speculative_algorithm")
    kind = flags.word("kv_cache_dtype", default="auto")
    chunk, batch = _batches(version, smi_mib, tensor)
    running = flags.count("max_num_seqs")
    batch = flags.count("max_cudagraph_capture_size", default=min(batch, running) if running else batch, low=1)
    return Settings(
        version=version,
        fraction=_fraction(flags),
        chunk=flags.count("chunked_prefill_size", default=chunk, low=-1),
        prefill_tokens=flags.count("max_prefill_tokens", default=16384, low=1),
        graph_batch=0 if flags.switch("enforce_eager") else batch,
        prefill_graphs=version >= PIECEWISE and not flags.switch("disable_piecewise_cuda_graph"),
        tensor=tensor,
        pipeline=flags.count("pipeline_parallel_size", default=1, low=1),
        data=data,
        data_attention=data_attention,
        expert_parallel=flags.count("expert_parallel_size", default=1, low=1) > 1,
        speculation=speculation,
        draft_tokens=flags.count("num_speculative_tokens") if speculation else 0,
        element_bytes=_element_bytes(kind, geometry),
        fp8_cache=kind.startswith("fp8"),
        page=flags.count("block_size", default=1, low=1),
        context=flags.count("max_model_len", default=geometry.positions or 0, low=0),
        running=running,
        token_limit=flags.count("max_batch_total_tokens"),
        window_ratio=flags.number("swa_full_tokens_ratio", default=0.8),
        state_ratio=flags.number("mamba_full_memory_ratio", default=0.9),
        state_slots=flags.count("max_mamba_cache_size"),
        prefix_caching=flags.switch("enable_prefix_caching", default=True),
        extra_state_slots=2 if flags.word("mamba_scheduler_strategy") == "extra_buffer" else 0,
        state_element_bytes=2.0 if flags.word("mamba_ssm_cache_dtype") in ("bfloat16", "float16") else 4.0,
        latent=any(layer is not None and layer.kind == "mla" for layer in geometry.layers),
    )


def _fraction(flags: Flags) -> float | None:
    if not flags.given("mem_fraction_static"):
        return None
    fraction = flags.number("mem_fraction_static")
    if not 0 < fraction < 1:
        raise InputError(f"mem_fraction_static: {fraction:g} is no share of the card", hint="for example 0.85")
    return fraction


def _element_bytes(kind: str, geometry: Geometry) -> float:
    if kind in ("auto", ""):
        return float(geometry.bytes_each)
    if kind not in _KV_BYTES:
        raise InputError(f"kv_cache_dtype: SGLang has no {kind!r}", hint="auto, " + ", ".join(_KV_BYTES))
    return _KV_BYTES[kind]


def _batches(version: tuple[int, ...], smi_mib: float | None, tensor: int) -> tuple[int, int]:
    """Default --chunked-prefill-size and --cuda-graph-max-bs of a card."""
    if smi_mib is None:
        return 4096, 160
    few = tensor < 4
    if version < RESERVE:
        return (2048, 8 if few else 80) if smi_mib < 25_000 else (8192, 160)
    if version < BATCHES:
        chunk = 2048 if smi_mib < 35 * _KIB else 8192 if smi_mib < 160 * _KIB else 16384
        return chunk, (8 if few else 80) if smi_mib < 35 * _KIB else 160
    if smi_mib < 20 * _KIB:
        return 2048, 8
    if smi_mib < 35 * _KIB:
        if version >= WIDER:
            return 4096, 48 if few else 160
        return 2048, (24 if version >= (0, 5, 5) else 16) if few else 80
    if smi_mib < 60 * _KIB:
        return 4096, 32 if few else 160
    if smi_mib < 160 * _KIB:
        return 8192, 256 if few else 512
    return 16384, 512
