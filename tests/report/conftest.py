"""Verdicts as the judge gives them, for the tests of all renderers."""

from __future__ import annotations

import pytest

from llmedic.model.evidence import Gap
from llmedic.model.finding import Fact
from llmedic.model.verdict import BindingLimit, Cause, Change, Disagreement, Layer, Verdict

HIT_RATIO = Fact(
    name="prefix_cache_hit_ratio",
    value="62 %",
    unit="0..1",
    window="60 s",
    source="metrics",
    compared_to="91 % before",
)
EVICTIONS = Fact(
    name="kv_evictions_per_min",
    value="142",
    unit="1/min",
    window="60 s",
    source="metrics",
    compared_to="> 30 1/min",
)
USAGE = Fact(name="kv_cache_usage_ratio", value="78 %", unit="0..1", window="60 s", source="metrics")

SURGE = Cause(
    id="long-context-surge-cache-thrash",
    layer="load",
    severity="critical",
    confidence=0.936,
    title="Long-context surge thrashes the shared cache",
    summary="More long-context requests fill the shared KV / prefix-cache pool and evict the prefixes that short "
    "requests reuse.",
    evidence=(HIT_RATIO, EVICTIONS),
    symptoms=("prefix-cache-working-set-too-large", "overload-deep-queue", "ttft-spikes"),
    change=Change(
        variable="gateway route for long prompts",
        from_="none",
        to="> 2,048 tokens",
        expected="evictions stop and TTFT of short requests returns to its baseline",
        verify="llmedic diagnose http://vllm:8000 --window 5m --compare-to 1h",
    ),
)
THROTTLED = Cause(
    id="gpu-power-capped",
    layer="hardware",
    severity="warning",
    confidence=0.55,
    title="GPU power limit too low",
    summary="A power cap below the board default keeps the clocks down.",
    evidence=(Fact(name="gpu_power_w", value="300", unit="W", source="gpu", compared_to="limit 300 W"),),
)

INCIDENT = Verdict(
    health="degraded",
    layers=(
        Layer(layer="load", status="cause", summary="long_context_share_ratio 38 %, 5 % before"),
        Layer(layer="capacity", status="symptom", summary="evictions 142/min, 23 requests waiting"),
        Layer(layer="hardware", status="not-evaluated", summary="no GPU readings"),
        Layer(layer="params", status="ok", summary="nothing unusual in 41 settings"),
        Layer(layer="deployment", status="not-evaluated", summary="no Kubernetes objects"),
        Layer(layer="gateway", status="not-evaluated", summary="no gateway metrics"),
    ),
    causes=(SURGE, THROTTLED),
    cannot_tell=("gpu-thermal-throttling", "network-tcp-retransmits"),
    gaps=(Gap(what="logs", why="no log was given", how="llmedic diagnose … --log FILE", names=("kv_cache_tokens",)),),
    disagreements=(
        Disagreement(
            about="KV usage",
            first=USAGE,
            second=Fact(name="kv_cache_usage_ratio", value="97 %", unit="0..1", source="log"),
            meaning="the log's last line is older than the metrics",
        ),
    ),
    binding=BindingLimit(limit="kv-pool", summary="KV pool: 396,000 of 410,000 tokens in use", facts=(USAGE,)),
    engine="vllm 0.32.0, 1 replica",
    restart_warning=True,
)

HEALTHY = Verdict(
    health="healthy",
    layers=tuple(
        Layer(layer=name, status="ok", summary="")
        for name in ("load", "capacity", "hardware", "params", "deployment", "gateway")
    ),
    causes=(
        Cause(
            id="healthy",
            layer="none",
            severity="info",
            confidence=0.9,
            title="Nothing is wrong",
            summary="Tokens flow, nothing waits.",
        ),
    ),
)

UNDECIDED = Verdict(
    health="unknown",
    layers=(),
    causes=(),
    gaps=(Gap(what="http://a:8000/metrics", why="connection refused", how="llmedic diagnose http://a:8000"),),
)


@pytest.fixture
def incident() -> Verdict:
    return INCIDENT


@pytest.fixture
def healthy() -> Verdict:
    return HEALTHY


@pytest.fixture
def undecided() -> Verdict:
    return UNDECIDED


@pytest.fixture(params=[INCIDENT, HEALTHY, UNDECIDED], ids=["incident", "healthy", "undecided"])
def verdict(request: pytest.FixtureRequest) -> Verdict:
    value = request.param
    assert isinstance(value, Verdict)
    return value
