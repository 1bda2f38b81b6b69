"""The settings that decide the memory of a vLLM server, each with the default of its release, card and model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter

from llmedic.analysis.ledger.vllm import defaults
from llmedic.analysis.ledger.vllm.cachetype import cache_type
from llmedic.analysis.ledger.vllm.defaults import Device, since
from llmedic.analysis.ledger.vllm.flagvalues import ABSURD, FlagValues, whole
from llmedic.errors import UsageError
from llmedic.knowledge import flags, memory, releases
from llmedic.model.deployment import Deployment
from llmedic.model.geometry import Geometry

NEWEST = (0, 33)
"""The newest release whose defaults and formulae were read."""
CURRENT = ("latest", "main", "nightly", "recent")
"""Words for a current release that has no number."""
DEFAULT_POSITIONS = 2048
"""What vLLM assumes of a model that does not say how long its context is."""
PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
"""The settings that divide a model over devices, or copy it to them."""
OWN_HEADS = ("", "mtp")
"""Methods of speculation whose draft is a head in the model's own checkpoint ("deepseek_mtp" and its like too)."""
EXTERNAL_DRAFTS = ("eagle", "eagle3", "medusa", "mlp_speculator", "draft_model", "dflash", "dspark")
PREFIX_CACHED_STATES = frozenset((
    "BambaForCausalLM", "FalconH1ForCausalLM", "GraniteMoeHybridForCausalLM", "JambaForCausalLM", "MambaForCausalLM",
    "Mamba2ForCausalLM", "NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "Zamba2ForCausalLM",
))  # fmt: skip
"""Architectures whose states could be cached at every block (SupportsMambaPrefixCaching, 0.11.1 to 0.31)."""
CHECKPOINTED_STATES = PREFIX_CACHED_STATES - {"JambaForCausalLM", "MambaForCausalLM"}
"""Architectures of Mamba 2 layers (vllm/model_executor/layers/mamba/mamba_mixer2.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the arithmetic needs to know, resolved: nothing is None that the release decides by itself.

    version                    release as numbers, () for a current one
    utilization                share of the card; cache_bytes: --kv-cache-memory-bytes, which bypasses it (0: not given)
    blocks_override            --num-gpu-blocks-override (0: not given)
    fits_length                --max-model-len auto: max_model_len comes down to what the pool holds for one request
    max_num_seqs, max_model_len, max_num_batched_tokens    requests, tokens, tokens
    in_flight_tokens           tokens that may be computed and not yet freed: the token budget, times the batches
                               in flight with asynchronous scheduling in the releases that count them
    block_tokens               --block-size, or the platform's default
    cache_element_bytes        bytes of one cached number (fp8: 1)
    speculative_tokens         draft tokens per step, 0 without speculation
    draft_layers               the draft is a head of the model itself, whose layers are cached
    hybrid_manager             layers of different kinds get groups of their own (else all are treated as full)
    state_mode                 "none", "all" or "align": how the state of recurrent layers is kept for prefix caching
    eager                      no CUDA graphs
    first_engine               the engine of the first releases (V0): one block table, all layers keep all tokens
    cache_scale_bytes          bytes of the scale beside each cached head of a token (int8_per_token_head: 4)
    latent_token_bytes         MLA: bytes of a token in a layout that packs values and scales (0: numbers x their bytes)
    kernel_block_tokens        the attention kernel reads the cache in blocks of this size; hybrids align to it
    state_chunk_tokens         chunk of the state's kernel, to which state_mode "all" aligns
    checkpoint_blocks          states kept beside the running one for prefix caching inside a prefill
    flashinfer_sampler         VLLM_USE_FLASHINFER_SAMPLER; None: nobody set it
    graphs_counted             VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS; None: nobody set it
    retained_tokens            tokens kept below a sliding window for draft modules that run again
    """

    version: tuple[int, ...] = ()
    utilization: float = 0.9
    cache_bytes: int = 0
    blocks_override: int = 0
    max_num_seqs: int = 256
    max_model_len: int = 0
    max_num_batched_tokens: int = 2048
    in_flight_tokens: int = 2048
    block_tokens: int = 16
    cache_element_bytes: float = 2.0
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    context_parallel: int = 1
    expert_parallel: bool = False
    speculative_tokens: int = 0
    draft_layers: bool = True
    hybrid_manager: bool = True
    prefix_caching: bool = True
    state_mode: str = "none"
    state_element_bytes: float = 0.0
    eager: bool = False
    lora_slots: int = 0
    lora_rank: int = 0
    first_engine: bool = False
    cache_scale_bytes: int = 0
    latent_token_bytes: int = 0
    kernel_block_tokens: int = 16
    state_chunk_tokens: int = 2048
    checkpoint_blocks: int = 0
    flashinfer_sampler: bool | None = None
    graphs_counted: bool | None = None
    retained_tokens: int = 0
    fits_length: bool = False
    notes: tuple[str, ...] = ()

    @property
    def checked_length(self) -> int:
        """Tokens of the one request without whose room the engine does not start."""
        return 1 if self.fits_length else self.max_model_len

    def changed(self, **values: object) -> Settings:
        """The same with other values, in half the time of `dataclasses.replace`: a search does little else."""
        return Settings(**{**dict(zip(_NAMES, _values(self), strict=True)), **values})


_NAMES = tuple(field.name for field in fields(Settings))
_values = attrgetter(*_NAMES)


def resolve(deployment: Deployment, geometry: Geometry) -> Settings:
    """The settings of a deployment, with everything that its release decides by itself.

    Raises UsageError for a value that the engine would not take or that no server can have.
    """
    return _Resolver(deployment, geometry).settings()


class _Resolver:
    """Reads the flags of one deployment; every note is a sentence about what was assumed."""

    def __init__(self, deployment: Deployment, geometry: Geometry) -> None:
        self.flags = FlagValues(deployment)
        self.environment = deployment.environment
        self.config = deployment.model.config
        self.geometry = geometry
        self.release = deployment.version
        self.version = releases.numbers(deployment.version)
        self.device = Device.of(deployment.hardware)
        self.count = deployment.hardware.count
        self.notes: list[str] = []

    def settings(self) -> Settings:
        """All of them."""
        self._remember_release()
        tensor, pipeline, data, context = self._parallel()
        self._remember_idle(tensor * pipeline * data)
        length = self._max_model_len()
        first = defaults.first_engine(self.version, self.device, self.environment.get("VLLM_USE_V1", ""))
        drafts, own_head = self._speculation()
        prefix = self._prefix_caching(first)
        mode = self._state_mode(prefix)
        requests, budget = self._batch(length, tensor * pipeline, first)
        block = self.flags.count("block_size") or defaults.block_tokens(self.version, self.device, self.geometry)
        kind = cache_type(self.flags.word("kv_cache_dtype"), self.geometry, self.version, self.config)
        return Settings(
            version=self.version,
            utilization=self._utilization(),
            cache_bytes=self.flags.count("kv_cache_memory_bytes", most=2**50),
            blocks_override=self.flags.count("num_gpu_blocks_override"),
            max_num_seqs=requests,
            max_model_len=length,
            max_num_batched_tokens=budget,
            in_flight_tokens=budget * self._batches_in_flight(pipeline),
            block_tokens=block,
            cache_element_bytes=kind.element_bytes,
            cache_scale_bytes=kind.scale_bytes,
            latent_token_bytes=kind.latent_token_bytes,
            tensor_parallel=tensor,
            pipeline_parallel=pipeline,
            data_parallel=data,
            context_parallel=context,
            expert_parallel=self.flags.switch("enable_expert_parallel"),
            speculative_tokens=drafts,
            draft_layers=own_head,
            hybrid_manager=self._hybrid_manager(),
            prefix_caching=prefix,
            state_mode=mode,
            checkpoint_blocks=self._checkpoints(mode),
            state_element_bytes=self._state_bytes(),
            state_chunk_tokens=self._state_chunk(),
            kernel_block_tokens=defaults.kernel_block_tokens(self.version, self.device, self.geometry, block),
            eager=self.flags.switch("enforce_eager"),
            lora_slots=(self.flags.count("max_loras") or 1) if self.flags.switch("enable_lora") else 0,
            lora_rank=(self.flags.count("max_lora_rank") or 16) if self.flags.switch("enable_lora") else 0,
            first_engine=first,
            fits_length=self._fits_length(),
            flashinfer_sampler=self._switched("VLLM_USE_FLASHINFER_SAMPLER"),
            graphs_counted=self._switched("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"),
            notes=tuple(self.notes),
        )

    def _remember_release(self) -> None:
        if self.release and not self.version and self.release.lower() not in CURRENT:
            raise UsageError(f"{self.release[:40]}: not a release of vLLM", hint="write it like 0.19.0")
        if not self.version:
            self.notes.append("no release was given: computed for a current one")
        elif self.version[:2] > NEWEST:
            newest = ".".join(map(str, NEWEST))
            self.notes.append(f"{self.release} is a later release than any that is known, and computed as {newest}")
        elif self.version == (0, 20):
            self.notes.append("0.20.0 prints the size of the cache otherwise than 0.20.1 does: give the whole release")
        if not self.device.memory_bytes and self.device.platform != "cpu":
            self.notes.append("no card was given: batch defaults are those of a card below 70 GiB")

    def _switched(self, variable: str) -> bool | None:
        """A variable of the environment that is 0 or 1; None when nobody set it."""
        value = self.environment.get(variable, "").strip()
        return {"0": False, "1": True}.get(value)

    def _remember_idle(self, used: int) -> None:
        """Devices of the machine that nobody divided the model over."""
        there = self.count or 1
        if there > used and not any(self.flags.given(name) for name in PARALLEL):
            typed = flags.typed("tensor_parallel_size", "vllm", self.release)
            self.notes.append(f"the machine has {there} devices, {used} is used: {typed} {there} would use them all")

    def _parallel(self) -> tuple[int, int, int, int]:
        tensor = self.flags.count("tensor_parallel_size") or 1
        pipeline = self.flags.count("pipeline_parallel_size") or 1
        context = self.flags.count("decode_context_parallel_size") or 1
        if tensor % context:
            raise UsageError(
                f"decode_context_parallel_size {context} does not divide tensor_parallel_size {tensor}",
                hint="context parallel ranks are tensor parallel ranks",
            )
        return tensor, pipeline, self.flags.count("data_parallel_size") or 1, context

    def _utilization(self) -> float:
        usual = flags.default("gpu_memory_utilization", "vllm", self.release)
        return self.flags.share("gpu_memory_utilization") or (usual if isinstance(usual, float) else 0.92)

    def _max_model_len(self) -> int:
        own = self.geometry.positions or DEFAULT_POSITIONS
        if self._fits_length():
            return own
        given = self.flags.count("max_model_len")
        if given and given > own > DEFAULT_POSITIONS:
            self.notes.append(f"max_model_len {given} is longer than the model's {own} tokens")
        if not given and not self.geometry.positions:
            self.notes.append(f"the model does not say how long its context is: {own} tokens are assumed")
        return given or own

    def _fits_length(self) -> bool:
        """Whether the length comes down to what fits (_auto_fit_max_model_len in vllm/v1/core/kv_cache_utils.py)."""
        word = self.flags.word("max_model_len")
        if word not in ("auto", "-1", "-1.0"):
            return False
        if not since(self.version, 0, 14):
            raise UsageError(f"max_model_len: {word} is of vLLM 0.14 and later", hint="give a number of tokens")
        return True

    def _batch(self, length: int, devices: int, first: bool) -> tuple[int, int]:
        """max_num_seqs and max_num_batched_tokens."""
        requests, budget = self.flags.count("max_num_seqs"), self.flags.count("max_num_batched_tokens")
        if first:
            split = self.flags.given("enable_chunked_prefill")
            chunked = self.flags.switch("enable_chunked_prefill") if split else length > defaults.LONG_CONTEXT_TOKENS
            return requests or 256, budget or (2048 if chunked else max(length, 2048))
        tokens, most = defaults.batch(self.version, self.device, devices)
        if self.flags.word("performance_mode") == "throughput":
            tokens, most = tokens * 2, most * 2
        if not budget:
            chunked = not self.flags.given("enable_chunked_prefill") or self.flags.switch("enable_chunked_prefill")
            budget = tokens if chunked else max(tokens, length)
            budget = min(budget, (requests or most) * length)
            if (
                self.geometry.multimodal
                and self.geometry.architecture.startswith("Gemma4")
                and since(self.version, 0, 22)
            ):
                self.notes.append("Gemma 4 raises max_num_batched_tokens until one image or video fits a step")
        return requests or (min(most, budget) if since(self.version, 0, 10) else most), budget

    def _batches_in_flight(self, pipeline: int) -> int:
        """Batches whose tokens may not be freed yet (VllmConfig.max_in_flight_tokens, 0.26 and later)."""
        if not since(self.version, 0, 26):
            return 1
        second = memory.second_runner(self.geometry.architecture, self.release)
        given = self.flags.given("async_scheduling")
        overlap = self.flags.switch("async_scheduling") if given else second or pipeline == 1
        if not overlap or self.device.platform == "cpu":
            return pipeline
        return pipeline + 1 if second else 2 if pipeline == 1 else pipeline

    def _speculation(self) -> tuple[int, bool]:
        """Draft tokens per step, and whether the draft is a head of the model itself."""
        config = self.flags.mapping("speculative_config")
        method = str(config.get("method") or self.flags.word("speculative_algorithm")).lower()
        outside = config.get("model") or self.flags.word("speculative_model")
        tokens = whole("num_speculative_tokens", config.get("num_speculative_tokens"))
        tokens = tokens or self.flags.count("num_speculative_tokens")
        if not (config or method or outside or tokens):
            return 0, True
        tokens = tokens or max(len(self.geometry.draft_layers), 1)
        own = (method in OWN_HEADS or method.endswith("_mtp")) and not outside
        if not own and (outside or method in EXTERNAL_DRAFTS):
            self.notes.append("the cache of the draft model comes on top and is not counted")
        return tokens, own

    def _hybrid_manager(self) -> bool:
        """Whether layers of different kinds get groups of their own (vllm/config/vllm.py)."""
        if self.flags.given("disable_hybrid_kv_cache_manager"):
            return not self.flags.switch("disable_hybrid_kv_cache_manager")
        if any(layer is not None and layer.kind == "chunked" for layer in self.geometry.layers):
            usual = "1" if since(self.version, 0, 14) else "0"
            if self.environment.get("VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE", usual) == "0":
                return False
        if self.flags.given("kv_transfer_config"):
            if not since(self.version, 0, 22):
                return False
            self.notes.append("some KV connectors switch the hybrid cache manager off: computed with it")
        return True

    def _prefix_caching(self, first: bool) -> bool:
        states = self._states()
        if states and not since(self.version, 0, 11, 1):
            return False
        if self.flags.given("enable_prefix_caching"):
            return self.flags.switch("enable_prefix_caching")
        if states:
            return since(self.version, 0, 26) and any(layer and layer.kind != "state" for layer in self.geometry.layers)
        return not first

    def _state_mode(self, prefix: bool) -> str:
        """How states are kept (vllm/model_executor/models/config.py, MambaModelConfig)."""
        asked = self.flags.word("mamba_cache_mode")
        if asked not in ("", "none", "all", "align"):
            raise UsageError(f"mamba_cache_mode: {asked!r} is not a mode", hint="modes are none, align and all")
        if not prefix or not self._states():
            return "none"
        able = self.geometry.architecture in PREFIX_CACHED_STATES and not since(self.version, 0, 31)
        if not since(self.version, 0, 15):
            return "all" if able else "none"
        if asked == "all" or (asked in ("", "none") and not since(self.version, 0, 28)):
            return "all" if able else "align"
        return "align"

    def _checkpoints(self, mode: str) -> int:
        """States that are kept beside the running one: Mamba 2 since 0.32, delta nets by their kernel since 0.33."""
        if mode != "align" or not since(self.version, 0, 32):
            return 0
        if self.geometry.architecture in CHECKPOINTED_STATES:
            return 1
        if since(self.version, 0, 33) and self.device.platform == "cuda":
            self.notes.append("a FlashInfer kernel of a delta net keeps one state more per request: it is not counted")
        return 0

    def _states(self) -> bool:
        return any(layer is not None and layer.kind == "state" for layer in self.geometry.layers)

    def _state_bytes(self) -> float:
        known = {"": 0.0, "auto": 0.0, "float32": 4.0, "float16": 2.0, "bfloat16": 2.0}
        word = self.flags.word("mamba_ssm_cache_dtype")
        if word not in known:
            raise UsageError(
                f"mamba_ssm_cache_dtype: {word!r} is not a type", hint="types are float32, float16, bfloat16"
            )
        return known[word]

    def _state_chunk(self) -> int:
        text = self.config.get("text_config")
        places = (self.config, text) if isinstance(text, Mapping) else (self.config,)
        found = [place.get(key) for key in ("mamba_chunk_size", "chunk_size") for place in places]
        return next((value for value in found if isinstance(value, int) and 0 < value < ABSURD), 2048)
