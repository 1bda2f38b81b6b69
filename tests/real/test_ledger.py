"""The ledger's blocks, tokens and concurrency against what a real server says of tiny models with different caches."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from llmedic.analysis.ledger import geometry
from llmedic.analysis.ledger.vllm import cache
from llmedic.analysis.ledger.vllm.settings import resolve
from llmedic.collect.flags import parse_args
from llmedic.model.deployment import Deployment, HardwareFacts, ModelFacts

from . import tiny_layouts
from .engine import Engine, Launch

pytestmark = pytest.mark.real

VERSION = "0.32.0"
POOL_BYTES = 123_456_789
CACHE_CONFIG = re.compile(r"^vllm:cache_config_info\{(.*)\}", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        pytest.param(tiny_layouts.LLAMA, ("--block-size", "32", "--max-model-len", "5000"), id="grouped-query"),
        pytest.param(tiny_layouts.DEEPSEEK, (), id="latent"),
        pytest.param(tiny_layouts.GEMMA, ("--max-num-batched-tokens", "1024"), id="sliding"),
        pytest.param(tiny_layouts.QWEN_NEXT, (), id="delta-net"),
        pytest.param(tiny_layouts.LFM, ("--no-enable-prefix-caching",), id="convolution", marks=[pytest.mark.long]),
    ],
)
def test_blocks_tokens_and_concurrency_are_those_of_a_real_server(
    config: Mapping[str, object], flags: tuple[str, ...], tmp_path: Path
) -> None:
    typed = (*flags, "--kv-cache-memory-bytes", str(POOL_BYTES))
    launch = Launch(
        model=tiny_layouts.write(tmp_path / "model", config),
        flags=(*typed, "--load-format", "dummy"),
        environment={"VLLM_CPU_KVCACHE_SPACE": ""},
    )
    with Engine(launch, tmp_path / "engine.log") as engine:
        engine.wait_ready()
        said = cache_config(engine)
        log = engine.log.read_text(errors="replace")

    model = ModelFacts(config=config)
    shape = geometry.of(model)
    deployment = Deployment(
        engine="vllm",
        version=VERSION,
        flags=parse_args(typed, "vllm", "args"),
        model=model,
        hardware=HardwareFacts(accelerator="cpu"),
    )
    settings = resolve(deployment, shape)
    plan = cache.plan(shape, settings)
    blocks = plan.blocks(settings.cache_bytes)
    tokens = plan.printed_tokens(blocks, settings.max_model_len)
    concurrency = plan.concurrency(blocks, settings.max_model_len)

    assert plan.block_tokens == int(said["block_size"])
    assert blocks == int(said["num_gpu_blocks"])
    assert tokens == int(said["kv_cache_size_tokens"])
    assert concurrency == float(said["kv_cache_max_concurrency"])
    assert (
        f"KV cache size: {tokens:,} tokens, "
        f"Maximum concurrency for {settings.max_model_len:,} tokens per request: {concurrency:.2f}x"
    ) in log
    assert plan.fits(settings.cache_bytes, settings.max_model_len)


def cache_config(engine: Engine) -> dict[str, str]:
    """The labels in which the engine says how its cache is laid out."""
    with urllib.request.urlopen(f"{engine.url}/metrics", timeout=10) as answer:
        found = CACHE_CONFIG.search(answer.read().decode())
    assert found is not None
    return dict(LABEL.findall(found.group(1)))
