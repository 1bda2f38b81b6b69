"""Printed sizes of real servers, reproduced from geometry, flags and the pool's size alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from llmedic.analysis.ledger.vllm import cache
from llmedic.analysis.ledger.vllm.settings import Settings, resolve
from llmedic.knowledge import releases
from llmedic.model.deployment import Deployment, Flag, FlagValue, HardwareFacts
from llmedic.model.geometry import CacheLayer, Geometry, StateTensor

Case = dict[str, Any]
FILE = Path(__file__).parents[3] / "data" / "ledger" / "printed.json"
DATA = json.loads(FILE.read_text(encoding="utf-8"))
GIB = 2**30
KINDS = {"full": "full", "swa": "sliding", "chunk": "chunked"}

EXCEPTIONS = {
    "case-020": "every worker of 0.10.2 prints its own lines: the GiB line is of one rank, the tokens of another",
}
"""Cases whose tokens do not follow from the printed pool, and why."""


def geometry(name: str, draft_layers: int = 0) -> Geometry:
    """The geometry of the file's table; layers of one kind follow each other, which the arithmetic does not see."""
    table = DATA["geometry"][name]
    layers: list[CacheLayer] = []
    for part in table.get("attention", ()):
        layer = CacheLayer(
            kind=KINDS[part["kind"]],  # type: ignore[arg-type]
            kv_heads=part["kv_heads"],
            head_dim=part["head_dim"],
            window_tokens=part.get("window_or_chunk", 0),
        )
        layers += [layer] * part["layers"]
    if mla := table.get("mla"):
        layers += [CacheLayer(kind="mla", latent_dim=mla["kv_lora_rank"] + mla["qk_rope_head_dim"])] * mla["layers"]
    if state := table.get("mamba"):
        layers += [CacheLayer(kind="state", state=_delta_net(state))] * state["layers"]
    return Geometry(
        architecture=name,
        layers=tuple(layers),
        weights=(),
        hidden_size=0,
        vocabulary=0,
        query_heads=0,
        draft_layers=(layers[0],) * draft_layers,
    )


def _delta_net(state: dict[str, int]) -> tuple[StateTensor, ...]:
    width = 2 * state["k_heads"] * state["hk"] + state["v_heads"] * state["hv"]
    convolution = StateTensor(name="conv", elements=width * (state["conv"] - 1), elements_per_draft=width)
    elements = state["v_heads"] * state["hk"] * state["hv"]
    return (convolution, StateTensor(name="recurrent", elements=elements, bytes_each=state["ssm_bytes"]))


def planned(case: Case) -> cache.CachePlan:
    """The plan of a case."""
    budget = case.get("mbt", 8192)
    settings = Settings(
        version=releases.numbers(case["vllm_version"]),
        max_num_batched_tokens=budget,
        in_flight_tokens=budget * case.get("inflight", 1),
        block_tokens=case.get("block_size", 16),
        cache_element_bytes=case.get("kv_bytes", 2),
        tensor_parallel=case.get("tp", 1),
        pipeline_parallel=case.get("pp", 1),
        context_parallel=case.get("dcp", 1),
        speculative_tokens=case.get("num_spec", 0),
        state_mode=case.get("mamba_mode", "none"),
    )
    return cache.plan(geometry(case["geom"], case.get("extra_full", 0)), settings)


def pool(case: Case) -> tuple[float, float]:
    """The smallest and the largest pool that is printed like this."""
    if exact := case.get("available_bytes_exact"):
        return exact, exact
    printed = case["available_kv_gib"]
    return (printed - 0.005) * GIB, (printed + 0.005) * GIB


def cases(key: str) -> list[ParameterSet]:
    """The cases with a figure, each under its name."""
    return [pytest.param(case, id=case["id"]) for case in DATA["cases"] if case.get(key)]


def blocks(case: Case) -> list[int]:
    """Every number of blocks that the printed pool may hold."""
    plan = planned(case)
    low, high = pool(case)
    return list(range(plan.blocks(low), plan.blocks(high) + 1))


@pytest.mark.parametrize("case", cases("kv_tokens"))
def test_the_printed_tokens_follow_from_the_printed_pool(case: Case) -> None:
    plan = planned(case)
    printed = {plan.printed_tokens(count, case.get("max_model_len", 0)) for count in blocks(case)}

    assert (case["kv_tokens"] in printed) == (case["id"] not in EXCEPTIONS)


@pytest.mark.parametrize("case", cases("max_concurrency"))
def test_the_printed_concurrency_follows_from_the_printed_tokens(case: Case) -> None:
    plan = planned(case)
    length = case["max_model_len"]
    around = range(min(blocks(case)) - 60, max(blocks(case)) + 61)
    said = [count for count in around if plan.printed_tokens(count, length) == case["kv_tokens"]]

    assert case["max_concurrency"] in {round(plan.concurrency(count, length), 2) for count in said}


def test_the_number_of_blocks_is_the_one_that_the_first_engine_prints() -> None:
    said = [case for case in DATA["cases"] if "num_gpu_blocks" in case]

    assert len(said) == 3
    assert all(case["num_gpu_blocks"] in blocks(case) for case in said)


def test_the_same_pool_prints_ten_times_the_tokens_when_the_formula_changes() -> None:
    """gemma-4-31B in a pool of about 50 GB: 0.20.0 says about 55k tokens, 0.21.0 about 525k."""
    model = geometry("Gemma-4-31B")
    old = cache.plan(model, Settings(version=(0, 20, 0), in_flight_tokens=8192))
    new = cache.plan(model, Settings(version=(0, 21, 0), in_flight_tokens=8192))

    assert old.printed_tokens(old.blocks(50 * GIB), 262144) == pytest.approx(55_000, rel=0.02)
    assert new.printed_tokens(new.blocks(50 * GIB), 262144) == pytest.approx(525_000, rel=0.1)
    assert old.blocks(50 * GIB) == new.blocks(50 * GIB)


CARDS = {
    "GPU0..7 (B200-class)": "B200",
    "Tesla T4 16GB": "T4",
    "Intel Arc Pro B60 24GB (XPU)": "Arc Pro B60",
    "8x H200 (recipe)": "H200",
    "8x H200": "H200",
}
FLAGS = {"max_model_len": "max_model_len", "tp": "tensor_parallel_size", "pp": "pipeline_parallel_size"} | {
    "dcp": "decode_context_parallel_size"
}


def deployed(case: Case) -> Deployment:
    """The case as its user typed it: what the release decides by itself is not said."""
    flags: dict[str, FlagValue] = {name: case[key] for key, name in FLAGS.items() if key in case}
    if case.get("kv_bytes") == 1:
        flags["kv_cache_dtype"] = "fp8"
    if "mamba_mode" in case:
        flags["enable_prefix_caching"] = True
    if drafts := case.get("num_spec"):
        flags["speculative_config"] = json.dumps({"method": "mtp", "num_speculative_tokens": drafts})
    if case.get("block_size") == 128:
        flags["block_size"] = 128
    return Deployment(
        engine="vllm",
        version=case["vllm_version"],
        flags=tuple(Flag(name=name, value=value) for name, value in flags.items()),
        environment={"VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE": "1"},
        hardware=HardwareFacts(accelerator=CARDS.get(case["gpu"], "")),
    )


@pytest.mark.parametrize("case", cases("id"))
def test_the_defaults_of_release_card_and_model_lay_the_cache_out_alike(case: Case) -> None:
    length = case.get("max_model_len", 8192)
    shape = replace(geometry(case["geom"], case.get("extra_full", 0)), positions=length)
    plan, given = cache.plan(shape, resolve(deployed(case), shape)), planned(case)

    assert plan.bytes_per_block == given.bytes_per_block
    assert plan.block_tokens == given.block_tokens
    assert plan.blocks_per_request(length) == given.blocks_per_request(length)
