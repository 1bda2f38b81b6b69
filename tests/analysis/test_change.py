"""The one change: a number only where the evidence gives it, never what is already in force."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules import build

from llmedic.analysis import change
from llmedic.analysis.view import View
from llmedic.knowledge import causes, flags
from llmedic.knowledge.schema import Advice, CauseText, Text
from llmedic.model.deployment import Flag
from llmedic.model.evidence import Evidence
from llmedic.model.ledger import Problem
from llmedic.model.observation import Observation


def pool(tokens: float, each: float = 3300) -> dict[str, float]:
    return {"kv_cache_tokens": tokens, "prompt_tokens_mean": each * 0.9, "output_tokens_mean": each * 0.1}


def at_the_cap(usage: float) -> dict[str, object]:
    return {
        "flags": {"max_num_seqs": 64},
        "observations": {"requests_running": 64, "kv_cache_usage_ratio": usage},
    }


def slots(context: float) -> dict[str, object]:
    return {"flags": {"max_num_seqs": 4, "ctx_size": context}, "observations": {"prompt_tokens_max": 6000}}


def computed(name: str, **case: object) -> str:
    return change.VALUES[name](build.view(case))


def advice(variable: str, value: str = "") -> Advice:
    return Advice(variable=variable, expected=Text(en="better", zh="更好"), verify="llmedic diagnose", value=value)


@pytest.mark.parametrize(
    ("name", "case", "expected"),
    [
        ("seqs_from_pool", {"observations": pool(100_000)}, "30"),
        ("seqs_from_pool", {"observations": pool(100)}, "1"),
        ("seqs_from_pool", {"observations": {"kv_cache_tokens": 100_000, "prompt_tokens_mean": 3000}}, ""),
        ("seqs_from_pool", {"observations": pool(100, each=0)}, ""),
        ("seqs_raise", {"flags": {"max_num_seqs": 64}}, "128"),
        ("seqs_raise", at_the_cap(0.6), "96"),
        ("seqs_raise", at_the_cap(0.0), "128"),
        ("seqs_raise", at_the_cap(0.95), ""),
        ("seqs_raise", {"observations": {"requests_running": 32}}, "64"),
        ("seqs_raise", {}, ""),
        ("model_len_from_pool", {"observations": {"kv_cache_tokens": 20_000}}, "19968"),
        ("model_len_from_pool", {"observations": {"servable_tokens": 20_000}}, "19968"),
        ("model_len_from_pool", {"observations": {"kv_cache_tokens": 200}}, ""),
        ("model_len_from_pool", {}, ""),
        ("seqs_halved", {"flags": {"max_num_seqs": 1024}}, "512"),
        ("seqs_halved", {"flags": {"max_num_seqs": 1}}, ""),
        ("seqs_halved", {}, ""),
        ("utilization_lower", {"flags": {"gpu_memory_utilization": 0.9}}, "0.85"),
        ("utilization_lower", {}, ""),
        ("tensor_parallel_raise", {"flags": {"tensor_parallel_size": 2}}, "4"),
        ("tensor_parallel_raise", {}, ""),
        ("token_budget_raise", {"flags": {"max_num_batched_tokens": 512}}, "2048"),
        ("token_budget_raise", {"flags": {"max_num_batched_tokens": 4096}}, "8192"),
        ("token_budget_raise", {}, ""),
        ("token_budget_lower", {"flags": {"max_num_batched_tokens": 8192}}, "4096"),
        ("token_budget_lower", {"flags": {"max_num_batched_tokens": 600}}, "512"),
        ("token_budget_lower", {"flags": {"max_num_batched_tokens": 512}}, ""),
        ("token_budget_lower", {}, ""),
        ("timeout_from_ttft", {"observations": {"ttft_s": {"p99": 57.2}}}, "115 s"),
        ("timeout_from_ttft", {"observations": {"ttft_s": {"max": 30}}}, "60 s"),
        ("timeout_from_ttft", {}, ""),
        ("keepalive_from_idle", {"observations": {"proxy_idle_s": 60, "server_keepalive_s": 5}}, "65 s"),
        ("keepalive_from_idle", {}, ""),
        ("ctx_from_slots", slots(8192), "24000"),
        ("ctx_from_slots", {"flags": {"max_num_seqs": 4, "max_model_len": 4096}}, "16384"),
        ("ctx_from_slots", {}, ""),
        ("threads_from_quota", {"observations": {"cpu_quota_cores": 4.5}}, "4"),
        ("threads_from_quota", {"observations": {"cpu_quota_cores": 0.5}}, "1"),
        ("threads_from_quota", {}, ""),
        ("dtype_bfloat16", {}, "bfloat16"),
        ("concurrency_from_pool", {"flags": {"max_num_seqs": 128}, "observations": {"requests_running": 100}}, "128"),
        ("concurrency_from_pool", {"flags": {"max_num_seqs": 64}, "observations": {"requests_running": 64}}, "128"),
        ("concurrency_from_pool", {}, "256"),
    ],
)  # fmt: skip
def test_a_value_is_computed_or_left_out(name: str, case: dict[str, object], expected: str) -> None:
    assert computed(name, **case) == expected


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("seqs_from_pool", {"flags": {"max_num_seqs": 30}, "observations": pool(100_000)}),
        ("model_len_from_pool", {"flags": {"max_model_len": 19968}, "observations": {"kv_cache_tokens": 20_000}}),
        ("model_len_from_pool", {"flags": {"max_model_len": 4096}, "observations": {"kv_cache_tokens": 20_000}}),
        ("timeout_from_ttft", {"observations": {"ttft_s": {"p99": 20}, "gateway_timeout_s": 60}}),
        ("keepalive_from_idle", {"observations": {"proxy_idle_s": 60, "server_keepalive_s": 75}}),
        ("ctx_from_slots", slots(32768)),
    ],
)  # fmt: skip
def test_a_limit_is_never_moved_the_wrong_way(name: str, case: dict[str, object]) -> None:
    assert computed(name, **case) == ""


def test_every_value_is_named_by_a_cause_and_every_name_is_one() -> None:
    named = {cause.change.value for cause in causes.causes().values()} - {""}

    assert named == set(change.VALUES)


@pytest.mark.parametrize(
    ("variable", "now", "value"),
    [
        ("dtype", "bfloat16", "dtype_bfloat16"),
        ("threads", 4, "threads_from_quota"),
        ("enable_prefix_caching", True, ""),
        ("enable_chunked_prefill", True, ""),
        ("enforce_eager", False, ""),
        ("trust_remote_code", False, ""),
    ],
)
def test_what_is_already_set_is_never_advised(variable: str, now: str | float | bool, value: str) -> None:
    case: build.Case = {"flags": {variable: now}, "observations": {"cpu_quota_cores": 4}}

    assert change.of(advice(variable, value), build.view(case), "en").to == ""


def test_a_switch_is_turned() -> None:
    def turned(variable: str, **flags: object) -> tuple[str, str]:
        found = change.of(advice(variable), build.view({"flags": flags}), "en")
        return found.from_, found.to

    assert turned("enable_prefix_caching", enable_prefix_caching=False) == ("false", "true")
    assert turned("enable_chunked_prefill", port=8000) == ("", "true")
    assert turned("enforce_eager", enforce_eager=True) == ("true", "false")
    assert turned("max_num_seqs", max_num_seqs=4) == ("4", "")
    assert turned("gpu_memory_utilization", gpu_memory_utilization=0.9) == ("0.9", "")


def test_the_present_value_is_shown_only_where_it_is_known() -> None:
    view = build.view({"observations": {"requests_running": 32}})

    found = change.of(advice("max_num_seqs", "seqs_raise"), view, "zh")

    assert (found.from_, found.to, found.expected, found.verify) == ("", "64", "更好", "llmedic diagnose")


@pytest.mark.parametrize(
    ("engine", "version", "variable", "value", "add", "drop"),
    [
        ("vLLM", "0.11.0", "max_num_seqs", "seqs_raise", "--max-num-seqs 8", ""),
        ("SGLang", "0.5.2", "max_num_seqs", "seqs_raise", "--max-running-requests 8", ""),
        ("Ollama", "", "max_num_seqs", "seqs_raise", "OLLAMA_NUM_PARALLEL=8", ""),
        ("vLLM", "0.33.0", "enable_prefix_caching", "", "--enable-prefix-caching", ""),
        ("SGLang", "0.5.2", "enable_prefix_caching", "", "", "--disable-radix-cache"),
        ("vLLM", "0.9.2", "enforce_eager", "", "--no-enforce-eager", ""),
        ("vLLM", "0.8.5", "enforce_eager", "", "", "--enforce-eager"),
        ("vLLM", "0.10.2", "guided_decoding_backend", "", "--guided-decoding-backend", ""),
        ("vLLM", "0.12.0", "guided_decoding_backend", "", "--structured-outputs-config.backend", ""),
        ("vLLM", "0.11.0", "num_speculative_tokens", "", "--speculative-config.num_speculative_tokens", ""),
        ("vLLM", "0.11.0", "gateway read timeout", "", "", ""),
        ("", "", "max_num_seqs", "seqs_raise", "", ""),
    ],
)
def test_a_change_is_typed_as_the_release_spells_it(
    engine: str, version: str, variable: str, value: str, add: str, drop: str
) -> None:
    set_ = {"max_num_seqs": 4, "enable_prefix_caching": False, "enforce_eager": True}
    view = build.view({"engine": {"name": engine, "version": version}, "flags": set_})

    found = change.of(advice(variable, value), view, "en")

    assert (found.add, found.drop, found.exists) == (add, drop, True)


def test_the_number_of_another_setting_is_not_claimed() -> None:
    case: build.Case = {"engine": {"name": "SGLang", "version": "0.5.2"}, "flags": {"gpu_memory_utilization": 0.9}}

    found = change.of(advice("gpu_memory_utilization", "utilization_lower"), build.view(case), "en")

    assert (found.add, found.from_, found.to) == ("--mem-fraction-static", "", "")


@pytest.mark.parametrize(
    ("variable", "value", "version"),
    [("max_concurrent_requests", "concurrency_from_pool", "0.11.0"), ("attention_backend", "", "0.10.2")],
)
def test_what_a_release_does_not_have_is_not_advised(variable: str, value: str, version: str) -> None:
    view = build.view({"engine": {"name": "vLLM", "version": version}, "flags": {"max_num_seqs": 4}})

    found = change.of(advice(variable, value), view, "en")

    assert not found.exists
    assert (found.from_, found.to, found.add, found.drop) == ("", "", "", "")


@pytest.mark.parametrize("version", ["0.6.6", "0.8.5", "0.9.2", "0.11.2", "0.12.0", "0.24.0", "0.33.0"])
@pytest.mark.parametrize("cause", causes.causes().values(), ids=lambda cause: cause.id)
def test_no_cause_advises_a_flag_that_is_gone(cause: CauseText, version: str) -> None:
    view = build.view({"engine": {"name": "vLLM", "version": version}, "flags": {"max_num_seqs": 4}})

    found = change.of(cause.change, view, "en")

    for typed in filter(None, (found.add, found.drop)):
        spec = flags.by_spelling("vllm")[typed.split()[0]][0]
        assert flags.exists(spec.name, "vllm", version)


def problem(change_: str) -> Problem:
    return Problem(severity="critical", cause="sampler-buffers-oom", text="1 GiB", change=change_, starts="no")


@pytest.mark.parametrize(
    ("typed", "variable", "present", "value"),
    [
        ("--max-num-seqs 128", "max_num_seqs", "1024", "128"),
        ("--max-model-len 8192 --gpu-memory-utilization 0.91", "max_model_len", "", "8192"),
        ("--enforce-eager", "enforce_eager", "false", "true"),
        ("--no-enable-chunked-prefill", "enable_chunked_prefill", "true", "false"),
    ],
)
def test_what_would_have_started_by_the_ledger_is_the_change(
    typed: str, variable: str, present: str, value: str
) -> None:
    engine = {"name": "vLLM", "version": "0.11.0"}
    seen = build.view({"engine": engine, "flags": {"max_num_seqs": 1024, "enforce_eager": False}})

    found = change.of(advice("max_num_seqs", "seqs_halved"), seen, "en", problem(typed))

    assert (found.variable, found.to, found.add, found.drop) == (variable, value, typed, "")
    assert found.from_ == present


def test_where_the_ledger_names_no_change_a_rule_of_thumb_does() -> None:
    seen = build.view({"flags": {"max_num_seqs": 1024}})

    assert change.of(advice("max_num_seqs", "seqs_halved"), seen, "en", problem("")).to == "512"


def test_no_rule_of_thumb_where_the_ledger_knows_that_nothing_is_enough() -> None:
    seen = build.view({
        "engine": {"name": "vLLM", "version": "0.11.0"},
        "model": {"name": "Qwen/Qwen3-32B"},
        "hardware": {"accelerator": "NVIDIA L4", "count": 1},
        "symptoms": {"seen": ["start-fails"]},
        "flags": {"max_num_seqs": 256},
    })  # fmt: skip

    assert seen.startup is not None
    assert change.of(advice("max_num_seqs", "seqs_halved"), seen, "en", problem("")).to == ""
    assert change.of(advice("max_num_seqs", "seqs_halved"), seen, "en").to == "128"


def test_what_is_no_setting_is_not_replaced_by_one() -> None:
    found = change.of(advice("other process on the GPU"), build.view({}), "en", problem("--max-num-seqs 128"))

    assert (found.variable, found.add) == ("other process on the GPU", "")


names = ("kv_cache_tokens", "servable_tokens", "prompt_tokens_mean", "prompt_tokens_max", "output_tokens_mean",
         "requests_running", "kv_cache_usage_ratio", "ttft_s", "proxy_idle_s", "cpu_quota_cores",
         "gateway_timeout_s", "server_keepalive_s")  # fmt: skip
settings = ("max_num_seqs", "max_model_len", "max_num_batched_tokens", "tensor_parallel_size", "ctx_size",
            "gpu_memory_utilization", "threads", "dtype")  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(names), st.floats()),
    st.dictionaries(
        st.sampled_from(settings), st.one_of(st.floats(), st.integers(), st.booleans(), st.text(), st.none())
    ),
    st.sampled_from(sorted(change.VALUES)),
)
def test_any_evidence_gives_a_value_or_none(
    seen: dict[str, float], set_: dict[str, str | float | bool | None], name: str
) -> None:
    observations = tuple(Observation(name=key, value=value, unit="", source="metrics") for key, value in seen.items())
    typed = tuple(Flag(name=key, value=value) for key, value in set_.items())
    evidence = Evidence(observations=observations)
    view = View(replace(evidence, deployment=replace(evidence.deployment, flags=typed)))

    assert re.fullmatch(r"|bfloat16|-?\d+(\.\d+)?( s)?", change.VALUES[name](view))
