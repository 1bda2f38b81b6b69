"""Every setting with the default of its release, card and model, and what no server can have."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.analysis.ledger.layouts import CHUNKED, FULL, LATENT, SPARSE, STATE, model
from tests.analysis.ledger.servers import deployment, variants

from llmedic.analysis.ledger.vllm import cache
from llmedic.analysis.ledger.vllm.settings import Settings, resolve
from llmedic.errors import UsageError
from llmedic.model.deployment import Deployment, Flag, FlagValue, HardwareFacts, ModelFacts
from llmedic.model.geometry import Geometry

MODEL = replace(model(*[FULL] * 4), positions=131072)
H100 = HardwareFacts(accelerator="H100")
A100 = HardwareFacts(accelerator="A100")
L4 = HardwareFacts(accelerator="L4")


def settings(
    version: str = "0.33.0",
    *,
    of: Geometry = MODEL,
    on: HardwareFacts = H100,
    environment: dict[str, str] | None = None,
    config: dict[str, object] | None = None,
    **values: FlagValue,
) -> Settings:
    deployment = Deployment(
        engine="vllm",
        version=version,
        flags=tuple(Flag(name=name, value=value) for name, value in values.items()),
        environment=environment or {},
        model=ModelFacts(config=config or {}),
        hardware=on,
    )
    return resolve(deployment, of)


@pytest.mark.parametrize(
    ("version", "on", "budget", "requests"),
    [
        ("0.33.0", H100, 8192, 1024),
        ("0.33.0", L4, 2048, 256),
        ("0.33.0", A100, 2048, 256),
        ("0.8.5", A100, 8192, 1024),
        ("0.27.0", HardwareFacts(accelerator="B200"), 8192, 1024),
        ("0.28.0", HardwareFacts(accelerator="B200"), 16384, 1024),
        ("0.32.0", HardwareFacts(accelerator="GB10"), 2048, 256),
        ("0.10.2", HardwareFacts(accelerator="Jetson AGX Thor"), 2048, 256),
        ("0.33.0", HardwareFacts(accelerator="GB10"), 2048, 256),
        ("0.33.0", HardwareFacts(memory_gib=80.0), 8192, 1024),
        ("0.33.0", HardwareFacts(accelerator="cpu"), 2048, 128),
        ("0.33.0", HardwareFacts(), 2048, 256),
        ("0.7.3", H100, 2048, 256),
    ],
)
def test_batch_defaults_follow_card_and_release(version: str, on: HardwareFacts, budget: int, requests: int) -> None:
    found = settings(version, on=on)

    assert (found.max_num_batched_tokens, found.max_num_seqs) == (budget, requests)


def test_the_batch_does_not_outgrow_what_the_requests_can_hold() -> None:
    assert settings(max_model_len=100, max_num_seqs=4).max_num_batched_tokens == 400
    assert settings(max_num_batched_tokens=512).max_num_seqs == 512
    assert settings(performance_mode="throughput").max_num_seqs == 2048
    assert settings(enable_chunked_prefill=False).max_num_batched_tokens == 131072


def test_the_first_engine_takes_a_whole_prompt_at_once_unless_it_is_long() -> None:
    assert settings("0.6.6", max_model_len=16384).max_num_batched_tokens == 16384
    assert settings("0.6.6", max_model_len=65536).max_num_batched_tokens == 2048


@pytest.mark.parametrize(
    ("version", "share"), [("0.19.1", 0.9), ("0.20.0", 0.92), ("recent", 0.92), ("", 0.92), (">=0.21", 0.92)]
)
def test_utilization_follows_the_release(version: str, share: float) -> None:
    assert settings(version).utilization == share


@pytest.mark.parametrize(("word", "numbers"), [("0.11.x", (0, 11)), ("~0.26", (0, 26)), (">=0.21", (0, 21))])
def test_a_release_may_be_an_inexact_word(word: str, numbers: tuple[int, ...]) -> None:
    found = settings(word)

    assert found.version == numbers
    assert not found.notes


def test_what_is_assumed_is_said() -> None:
    assert settings("recent").notes == ("no release was given: computed for a current one",)
    assert settings("0.20").notes[0].startswith("0.20.0 prints")
    assert settings(on=HardwareFacts()).notes == ("no card was given: batch defaults are those of a card below 70 GiB",)


@pytest.mark.parametrize(
    ("value", "tokens"), [(None, 131072), ("auto", 131072), (-1, 131072), (32768, 32768), ("32k", 32000), ("1K", 1024)]
)
def test_max_model_len(value: FlagValue, tokens: int) -> None:
    assert settings(max_model_len=value).max_model_len == tokens


def test_a_model_that_does_not_say_its_context_gets_what_vllm_assumes() -> None:
    found = settings(of=model(FULL))

    assert found.max_model_len == 2048
    assert "2048 tokens are assumed" in found.notes[0]


@pytest.mark.parametrize(
    ("version", "of", "on", "block"),
    [
        ("0.33.0", MODEL, H100, 16),
        ("0.33.0", MODEL, HardwareFacts(accelerator="cpu"), 128),
        ("0.8.5", model(LATENT), H100, 16),
        ("0.11.0", model(LATENT), H100, 64),
        ("0.11.0", model(LATENT), A100, 16),
        ("0.11.0", model(LATENT), HardwareFacts(accelerator="B200"), 128),
        ("0.16.0", model(LATENT), HardwareFacts(accelerator="B200"), 64),
        ("0.20.2", model(LATENT), HardwareFacts(accelerator="B200"), 32),
        ("0.20.2", model(LATENT), H100, 16),
        ("0.33.0", model(SPARSE), H100, 64),
    ],
)
def test_block_size_follows_the_attention_backend(version: str, of: Geometry, on: HardwareFacts, block: int) -> None:
    assert settings(version, of=of, on=on).block_tokens == block
    assert settings(version, of=of, on=on, block_size=256).block_tokens == 256


@pytest.mark.parametrize(
    ("version", "flags", "tokens"),
    [
        ("0.25.0", {}, 2048),
        ("0.26.0", {}, 4096),
        ("0.26.0", {"async_scheduling": False}, 2048),
        ("0.26.0", {"pipeline_parallel_size": 2, "async_scheduling": False}, 4096),
        ("0.26.0", {"pipeline_parallel_size": 2}, 4096),
    ],
)
def test_tokens_in_flight_count_the_batches_since_0_26(version: str, flags: dict[str, int], tokens: int) -> None:
    assert settings(version, max_num_batched_tokens=2048, **flags).in_flight_tokens == tokens


def test_a_cpu_runs_one_batch_at_a_time_and_needs_no_card() -> None:
    found = settings(on=HardwareFacts(accelerator="cpu"))

    assert found.in_flight_tokens == found.max_num_batched_tokens
    assert not found.notes


@pytest.mark.parametrize(
    ("word", "element", "scale", "latent"),
    [
        (None, 2.0, 0, 0),
        ("fp8", 1.0, 0, 0),
        ("fp8_e5m2", 1.0, 0, 0),
        ("nvfp4", 0.5625, 0, 0),
        ("int8_per_token_head", 1.0, 4, 0),
        ("fp8_ds_mla", 1.0, 0, 656),
    ],
)
def test_the_type_of_cached_numbers(word: FlagValue, element: float, scale: int, latent: int) -> None:
    found = settings(kv_cache_dtype=word)

    assert (found.cache_element_bytes, found.cache_scale_bytes, found.latent_token_bytes) == (element, scale, latent)


@pytest.mark.parametrize(
    ("version", "config", "element"),
    [
        ("0.11.2", {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}, 2.0),
        ("0.12.0", {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}, 1.0),
        ("0.12.0", {"quant_method": "modelopt", "quantization": {"kv_cache_quant_algo": "NVFP4"}}, 0.5625),
        (
            "0.33.0",
            {"quant_method": "modelopt", "kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": False}},
            1.0,
        ),
        ("0.33.0", {"quant_method": "modelopt", "kv_cache_scheme": {"num_bits": 8, "type": "int"}}, 2.0),
        ("0.21.0", {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, 2.0),
        ("0.22.0", {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, 1.0),
        ("0.33.0", {"quant_method": "compressed-tensors", "kv_cache_scheme": None}, 2.0),
        ("0.33.0", {"quant_method": "fp8"}, 2.0),
    ],
)
def test_a_checkpoint_may_choose_the_type_of_its_cache(version: str, config: object, element: float) -> None:
    assert settings(version, config={"quantization_config": config}).cache_element_bytes == element


def test_sparse_attention_packed_its_cache_by_default_until_0_14() -> None:
    assert settings("0.13.0", of=model(SPARSE)).latent_token_bytes == 656
    assert settings("0.14.0", of=model(SPARSE)).latent_token_bytes == 0
    assert settings("0.14.0", of=model(SPARSE), kv_cache_dtype="fp8").latent_token_bytes == 656
    assert settings("0.13.0", of=model(SPARSE), kv_cache_dtype="bfloat16").latent_token_bytes == 0


def test_speculation_is_read_from_json_and_from_flags() -> None:
    own = settings(speculative_config='{"method": "mtp", "num_speculative_tokens": 2}')
    ngram = settings(speculative_config='{"method": "ngram", "num_speculative_tokens": 5}')
    outside = settings(speculative_config='{"method": "eagle3", "model": "x/y", "num_speculative_tokens": 3}')

    assert (own.speculative_tokens, own.draft_layers) == (2, True)
    assert (ngram.speculative_tokens, ngram.draft_layers, ngram.notes) == (5, False, ())
    assert (outside.speculative_tokens, outside.draft_layers) == (3, False)
    assert "draft model" in outside.notes[0]
    assert settings(num_speculative_tokens=4).speculative_tokens == 4
    assert settings(speculative_config='{"method": "qwen3_next_mtp"}').speculative_tokens == 1


def test_a_draft_that_is_no_head_of_the_model_adds_no_layers() -> None:
    drafted = replace(model(FULL, draft=[FULL]), positions=4096)
    ngram = settings(of=drafted, speculative_config='{"method": "ngram", "num_speculative_tokens": 5}')
    own = settings(of=drafted, speculative_config='{"method": "mtp", "num_speculative_tokens": 1}')

    assert cache.plan(drafted, own).bytes_per_block == 2 * cache.plan(drafted, ngram).bytes_per_block


@pytest.mark.parametrize(
    ("version", "environment", "flags", "on"),
    [
        ("0.33.0", {}, {}, True),
        ("0.13.0", {}, {}, False),
        ("0.13.0", {"VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE": "1"}, {}, True),
        ("0.33.0", {"VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE": "0"}, {}, False),
        ("0.33.0", {}, {"disable_hybrid_kv_cache_manager": True}, False),
        ("0.21.0", {}, {"kv_transfer_config": "{}"}, False),
        ("0.22.0", {}, {"kv_transfer_config": "{}"}, True),
    ],
)
def test_the_hybrid_manager(version: str, environment: dict[str, str], flags: dict[str, FlagValue], on: bool) -> None:
    assert settings(version, of=model(FULL, CHUNKED), environment=environment, **flags).hybrid_manager is on


@pytest.mark.parametrize(
    ("version", "architecture", "flags", "mode"),
    [
        ("0.10.2", "X", {"enable_prefix_caching": True}, "none"),
        ("0.14.0", "X", {"enable_prefix_caching": True}, "none"),
        ("0.14.0", "BambaForCausalLM", {"enable_prefix_caching": True}, "all"),
        ("0.20.2", "X", {}, "none"),
        ("0.20.2", "X", {"enable_prefix_caching": True}, "align"),
        ("0.20.2", "BambaForCausalLM", {"enable_prefix_caching": True}, "all"),
        ("0.20.2", "BambaForCausalLM", {"enable_prefix_caching": True, "mamba_cache_mode": "align"}, "align"),
        ("0.26.0", "X", {}, "align"),
        ("0.26.0", "X", {"enable_prefix_caching": False}, "none"),
        ("0.28.0", "BambaForCausalLM", {}, "align"),
        ("0.28.0", "BambaForCausalLM", {"mamba_cache_mode": "all"}, "all"),
        ("0.33.0", "BambaForCausalLM", {"mamba_cache_mode": "all"}, "align"),
    ],
)
def test_how_states_are_kept(version: str, architecture: str, flags: dict[str, FlagValue], mode: str) -> None:
    hybrid = replace(model(FULL, STATE), architecture=architecture)

    assert settings(version, of=hybrid, **flags).state_mode == mode


@pytest.mark.parametrize(
    ("version", "architecture", "kept", "said"),
    [
        ("0.31.0", "BambaForCausalLM", 0, 0),
        ("0.32.0", "BambaForCausalLM", 1, 0),
        ("0.32.0", "JambaForCausalLM", 0, 0),
        ("0.33.0", "Qwen3NextForCausalLM", 0, 1),
    ],
)
def test_states_kept_inside_a_prefill(version: str, architecture: str, kept: int, said: int) -> None:
    found = settings(version, of=replace(model(FULL, STATE), architecture=architecture, positions=4096))

    assert (found.checkpoint_blocks, len(found.notes)) == (kept, said)


def test_prefix_caching_is_on_by_default_since_the_second_engine() -> None:
    assert settings().prefix_caching
    assert not settings("0.7.3").prefix_caching
    assert not settings(enable_prefix_caching=False).prefix_caching
    assert not settings(of=model(STATE)).prefix_caching


@pytest.mark.parametrize(
    ("version", "on", "environment", "first"),
    [
        ("0.7.3", H100, {}, True),
        ("0.7.3", H100, {"VLLM_USE_V1": "1"}, False),
        ("0.9.2", H100, {}, False),
        ("0.9.2", H100, {"VLLM_USE_V1": "0"}, True),
        ("0.9.2", HardwareFacts(accelerator="T4"), {}, True),
        ("0.11.0", HardwareFacts(accelerator="T4"), {"VLLM_USE_V1": "0"}, False),
    ],
)
def test_which_engine_runs(version: str, on: HardwareFacts, environment: dict[str, str], first: bool) -> None:
    assert settings(version, on=on, environment=environment).first_engine is first


def test_lora_slots_count_only_when_lora_is_on() -> None:
    assert (settings(max_loras=4).lora_slots, settings(max_loras=4, enable_lora=True).lora_slots) == (0, 4)
    assert (settings(enable_lora=True).lora_slots, settings(enable_lora=True).lora_rank) == (1, 16)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"tensor_parallel_size": 4, "decode_context_parallel_size": 3}, "does not divide"),
        ({"gpu_memory_utilization": 0}, "not a share"),
        ({"gpu_memory_utilization": 90}, "not a share"),
        ({"gpu_memory_utilization": "most"}, "not a number"),
        ({"max_num_seqs": 0}, "out of range"),
        ({"max_num_seqs": -3}, "out of range"),
        ({"max_num_seqs": "many"}, "not a number"),
        ({"max_num_seqs": True}, "not a number"),
        ({"max_num_seqs": 2.5}, "out of range"),
        ({"max_num_seqs": 10**12}, "out of range"),
        ({"max_model_len": "long"}, "not a number"),
        ({"max_model_len": float("inf")}, "out of range"),
        ({"max_model_len": float("nan")}, "out of range"),
        ({"block_size": -16}, "out of range"),
        ({"kv_cache_dtype": "fp3"}, "size of 'fp3' is not known"),
        ({"mamba_cache_mode": "some"}, "not a mode"),
        ({"mamba_ssm_cache_dtype": "int3"}, "not a type"),
        ({"speculative_config": "mtp"}, "not a JSON object"),
        ({"speculative_config": "[1]"}, "not a JSON object"),
        ({"speculative_config": '{"num_speculative_tokens": "two"}'}, "not a number"),
    ],
)
def test_what_no_server_can_have_is_one_line(values: dict[str, FlagValue], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        settings(**values)

    assert said in raised.value.message
    assert "\n" not in raised.value.message


@pytest.mark.parametrize(("value", "said"), [("0", False), ("1", True), ("", None), ("yes", None)])
def test_variables_of_the_environment_that_move_memory(value: str, said: bool | None) -> None:
    names = ("VLLM_USE_FLASHINFER_SAMPLER", "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")
    found = settings(environment=dict.fromkeys(names, value))
    assert (found.flashinfer_sampler, found.graphs_counted) == (said, said)


def test_changed_settings_are_replaced_ones() -> None:
    before = Settings(version=(0, 19, 0), max_num_seqs=64, notes=("one",))
    assert before.changed() == before
    assert before.changed(utilization=0.5, tensor_parallel=2) == replace(before, utilization=0.5, tensor_parallel=2)


def test_a_release_that_nobody_read_is_told_and_a_word_is_none() -> None:
    shape = variants(deployment("Qwen3-8B", "H100")).candidate.geometry
    later = resolve(deployment("Qwen3-8B", "H100", "99.9"), shape).notes
    assert "99.9 is a later release than any that is known, and computed as 0.33" in later
    assert resolve(deployment("Qwen3-8B", "H100", "0.33.1"), shape).notes == ()
    with pytest.raises(UsageError, match="abc: not a release of vLLM"):
        resolve(deployment("Qwen3-8B", "H100", "abc"), shape)


def test_devices_that_nobody_uses_are_told() -> None:
    whole = deployment("Qwen3-8B", "H100", count=2)
    shape = variants(whole).candidate.geometry
    said = "the machine has 2 devices, 1 is used: --tensor-parallel-size 2 would use them all"
    assert said in resolve(whole, shape).notes
    for values in ({"tensor_parallel_size": 2}, {"tensor_parallel_size": 1}, {"data_parallel_size": 2}):
        assert said not in resolve(deployment("Qwen3-8B", "H100", count=2, **values), shape).notes
