"""Ledgers as the analysis gives them, for the tests of all renderers."""

from __future__ import annotations

from typing import Literal

import pytest

from llmedic.model.evidence import Gap
from llmedic.model.geometry import CacheLayer, Geometry, WeightPart
from llmedic.model.ledger import (
    Basis,
    CacheFit,
    ContextCost,
    Ledger,
    LedgerReport,
    Planned,
    Printed,
    Problem,
    Range,
    Setting,
    Solution,
    Term,
)

GIB = 2**30


def exact(number: float) -> Range:
    return Range(low=number, likely=number, high=number)


def gib(low: float, likely: float | None = None, high: float | None = None) -> Range:
    middle = low if likely is None else likely
    return Range(low=low * GIB, likely=middle * GIB, high=(middle if high is None else high) * GIB)


def term(name: str, size: Range, basis: Basis = "computed", how: str = "") -> Term:
    return Term(id=name, size=size, basis=basis, how=how)


GEOMETRY = Geometry(
    architecture="Qwen3ForCausalLM",
    layers=(CacheLayer(kind="full", kv_heads=8, head_dim=128),) * 64,
    weights=(WeightPart(name="attention", parameters=32_762_123_264, bytes=65_524_246_528, split="tensor"),),
    hidden_size=5120,
    vocabulary=151_936,
    query_heads=64,
)
CACHE = CacheFit(
    bytes_per_block=4 * 2**20,
    block_tokens=16,
    groups=1,
    bytes_per_token=2**18,
    blocks=Range(low=1050, likely=1357, high=1560),
    printed_tokens=Range(low=16_800, likely=21_712, high=24_960),
    blocks_per_request=1000,
    max_model_len=16_000,
    concurrency=Range(low=1.05, likely=1.357, high=1.56),
    longest_request=Range(low=16_784, likely=21_696, high=24_944),
)
FITS = LedgerReport(
    model_name="Qwen3-32B",
    accelerator="H100 80GB",
    settings=(
        Setting(flag="--gpu-memory-utilization", value="0.92", origin="default"),
        Setting(flag="--max-model-len", value="16000", origin="given"),
        Setting(flag="--max-num-seqs", value="1024", origin="default"),
    ),
    ledger=Ledger(
        engine="vllm",
        version="0.33.0",
        era="vllm-graphs-inside",
        formula="KV cache = total x utilization - weights - activation peak - outside torch - CUDA graphs",
        devices=1,
        total=term("total", gib(79.18), how="H100 80GB as the driver reports it"),
        requested=term("requested", gib(72.85), how="79.18 GiB x 0.92"),
        terms=(
            term("weights", gib(61.03), how="65.52 GB over 1 rank"),
            term("activation", gib(4.9, 5.2, 5.5), "calibrated", "36 B x 1,024 x 151,936"),
            term("non_torch", gib(0.21, 0.26, 0.31), "calibrated"),
            term("cuda_graphs", gib(0.6, 1.06, 1.5), "assumed"),
        ),
        pool=term("kv_cache", gib(4.1, 5.3, 6.1)),
        starts="yes",
        outside=(term("free_outside", gib(6.33)),),
        cache=CACHE,
        geometry=GEOMETRY,
        notes=("a current release was assumed",),
    ),
)
DOES_NOT = LedgerReport(
    model_name="Llama-3.3-70B",
    accelerator="H100 80GB",
    ledger=Ledger(
        engine="vllm",
        version="0.11.0",
        era="vllm-graphs-outside",
        formula="KV cache = total x utilization - weights - activation peak - outside torch",
        devices=1,
        total=term("total", gib(79.18)),
        requested=term("requested", gib(71.26)),
        terms=(term("weights", gib(131.43)), term("activation", gib(4.7, 5.0, 5.3), "calibrated")),
        pool=term("kv_cache", gib(-65.5, -65.2, -64.9)),
        starts="no",
        geometry=GEOMETRY,
        problems=(
            Problem(
                severity="critical",
                text="weights of 131.43 GiB do not fit into 71.26 GiB",
                cause="weights-do-not-fit",
                change="--tensor-parallel-size 4",
            ),
        ),
    ),
)
UNKNOWN = LedgerReport(
    ledger=Ledger(
        engine="vllm",
        version="",
        era="",
        formula="",
        devices=1,
        total=None,
        requested=None,
        terms=(),
        pool=None,
        starts="unknown",
        gaps=(Gap(what="the card", why="nobody said which", how="llmedic ledger Qwen3-32B --gpu H100"),),
    ),
)
PRINTED = LedgerReport(
    model_name="granite-4.0-micro",
    accelerator="L40S",
    ledger=Ledger(
        engine="vllm",
        version="0.11.0",
        era="vllm-graphs-outside",
        formula="KV cache = total x utilization - weights - activation peak - outside torch",
        devices=2,
        total=None,
        requested=None,
        terms=(),
        pool=term("kv_cache", gib(35.34), "printed", "Available KV cache memory: 35.34 GiB"),
        starts="perhaps",
        cache=CacheFit(
            bytes_per_block=1_310_720,
            block_tokens=16,
            groups=2,
            bytes_per_token=81_920,
            blocks=exact(28_946),
            printed_tokens=exact(463_136),
            blocks_per_request=8192,
            max_model_len=131_072,
            concurrency=exact(3.5334),
            longest_request=exact(463_120),
        ),
    ),
    printed=(
        Printed(id="weights", value=3.4244 * GIB, computed=gib(3.40)),
        Printed(id="kv_cache", value=35.34 * GIB, computed=gib(34.1, 35.3, 36.5)),
        Printed(id="cuda_graphs", value=0.72 * GIB),
        Printed(id="kv_tokens", value=463_136, unit="tokens", computed=exact(463_120)),
        Printed(id="concurrency", value=3.53, unit="requests", computed=exact(3.5334)),
    ),
    solutions=(
        Solution(
            goal="max-num-seqs",
            change="--max-num-seqs 48",
            text="48 sequences leave room for 48 requests of 16,000 tokens",
            pool=gib(12.1, 12.3, 12.5),
            concurrency=Range(low=47.8, likely=48.6, high=49.4),
        ),
        Solution(goal="gpu", text="no card of the catalogue is large enough"),
    ),
    planned=Planned(
        now=ContextCost(tokens=300, blocks=19, quick_blocks=16, requests=exact(1523), pool_blocks=28950),
        then=ContextCost(tokens=5000, blocks=313, quick_blocks=192, requests=exact(92), pool_blocks=28950),
        concurrency=128,
    ),
)
REPORTS = {"fits": FITS, "does-not": DOES_NOT, "unknown": UNKNOWN, "printed": PRINTED}


@pytest.fixture(params=REPORTS)
def report(request: pytest.FixtureRequest) -> LedgerReport:
    return REPORTS[request.param]


@pytest.fixture(params=["en", "zh"])
def lang(request: pytest.FixtureRequest) -> Literal["en", "zh"]:
    return "en" if request.param == "en" else "zh"
