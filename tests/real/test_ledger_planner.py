"""The ledger's cache arithmetic against the real engine's own planner, over random models and settings."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from llmedic.analysis.ledger.vllm import cache
from llmedic.analysis.ledger.vllm.pages import Page, pages
from llmedic.analysis.ledger.vllm.rules import rules
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.analysis.ledger.vllm.stages import stages
from llmedic.model.geometry import CacheLayer, Geometry, StateTensor

from .engine import real_dir

pytestmark = pytest.mark.real

VERSION = (0, 32, 0)
MODELS = 600
PLAN_S = 240
GIB = 2**30


@dataclass(frozen=True)
class Question:
    """One random model under random settings, and the bytes of each device."""

    geometry: Geometry
    settings: Settings
    available: int
    max_model_len: int

    def asked(self) -> dict[str, object]:
        """In the words of the real planner."""
        found = pages(self.geometry.layers, self.settings, rules(VERSION), self.geometry.bytes_each)
        layers = [self._layer(layer, page) for layer, page in zip(self.geometry.layers, found, strict=True)]
        parts = stages(len(layers), 0, self.settings)
        sparse = any(layer is not None and layer.index_dim for layer in self.geometry.layers)
        return {
            "layers": layers,
            "stages": [(part.start, part.stop) for part in parts],
            "layout": "BLHNC" if sparse else "LBNHC",
            "available": self.available,
            "max_model_len": self.max_model_len,
            "override": self.settings.blocks_override,
            "mode": self.settings.state_mode,
            "hybrid": self.settings.hybrid_manager,
            "context_parallel": self.settings.context_parallel,
            "tensor_parallel": self.settings.tensor_parallel,
            "in_flight": self.settings.in_flight_tokens,
        }

    def _layer(self, layer: CacheLayer | None, page: Page | None) -> dict[str, object] | None:
        if layer is None or page is None:
            return None
        tensor = self.settings.tensor_parallel
        drafts = self.settings.speculative_tokens
        sizes = [(part.elements + part.elements_per_draft * drafts) // tensor for part in layer.state]
        return {
            "kind": layer.kind,
            "block": page.block_tokens or self.max_model_len,
            "bytes": int(self.settings.cache_element_bytes),
            "heads": max(1, layer.kv_heads // tensor),
            "head_dim": layer.head_dim,
            "value_dim": layer.value_dim or layer.head_dim,
            "window": layer.window_tokens,
            "latent": layer.latent_dim,
            "index": layer.index_dim + 4 * (layer.index_dim // 128),
            "size": sum(int(size * part.bytes_each) for size, part in zip(sizes, layer.state, strict=True)),
            "padded": page.bytes,
            "mode": self.settings.state_mode,
            "drafts": drafts,
            "checkpoints": self.settings.checkpoint_blocks,
        }

    def expected(self) -> dict[str, object]:
        """What the ledger says."""
        plan = cache.plan(self.geometry, self.settings)
        if plan.refusal:
            return {"error": plan.refusal}
        longest = plan.longest_request(self.available, self.max_model_len)
        if not longest:
            return {"longest": 0}
        blocks = plan.blocks(self.available)
        return {
            "longest": longest,
            "blocks": blocks,
            "tokens": plan.printed_tokens(blocks, longest),
            "concurrency": plan.concurrency(blocks, longest),
        }


def attention(dice: random.Random) -> CacheLayer:
    """A layer with keys and values."""
    kind = dice.choice(["full", "full", "sliding", "sliding", "chunked"])
    head_dim = dice.choice([64, 80, 96, 128, 192, 256, 512])
    return CacheLayer(
        kind=kind,  # type: ignore[arg-type]
        kv_heads=dice.choice([1, 2, 3, 4, 8, 16]),
        head_dim=head_dim,
        value_dim=dice.choice([0, 0, 0, 128, head_dim // 2]),
        window_tokens=dice.choice([128, 512, 1024, 4096, 8192]) if kind != "full" else 0,
    )


def latent(dice: random.Random) -> CacheLayer:
    return CacheLayer(kind="mla", latent_dim=dice.choice([320, 576]), index_dim=dice.choice([0, 0, 128]))


def state(dice: random.Random) -> CacheLayer:
    """A recurrent layer."""
    width = dice.choice([1024, 4096, 8192])
    convolution = StateTensor(name="conv", elements=width * 3, elements_per_draft=width, bytes_each=2)
    recurrent = StateTensor(name="ssm", elements=dice.choice([2**17, 2**19, 2**21]), bytes_each=dice.choice([2, 4]))
    return CacheLayer(kind="state", state=(convolution, recurrent))


def layers(dice: random.Random) -> tuple[CacheLayer | None, ...]:
    """A pattern repeated, as models have them, with a few layers more in front."""
    shape = dice.choice(["one", "two", "two", "three", "hybrid", "latent", "latent and sliding"])
    first, second, third = (attention(dice) for _ in range(3))
    if dice.random() < 0.6:
        second = CacheLayer(
            kind="sliding", kv_heads=first.kv_heads, head_dim=first.head_dim, window_tokens=dice.choice([128, 1024])
        )
    repeat = dice.randint(1, 12)
    match shape:
        case "one":
            pattern: Sequence[CacheLayer | None] = [first]
        case "two":
            pattern = [second] * dice.randint(1, 5) + [first] * dice.randint(1, 2)
        case "three":
            pattern = [first, second, third, None]
        case "hybrid":
            full = CacheLayer(kind="full", kv_heads=first.kv_heads, head_dim=first.head_dim)
            pattern = [state(dice)] * dice.randint(1, 4) + [full]
        case "latent":
            pattern = [latent(dice)]
        case _:
            plain = CacheLayer(kind="mla", latent_dim=576)
            pattern = [plain, second]
    return (*[pattern[0]] * dice.randint(0, 3), *[layer for _ in range(repeat) for layer in pattern])


def question(dice: random.Random) -> Question:
    chosen = layers(dice)
    kinds = {layer.kind for layer in chosen if layer is not None}
    mode = dice.choice(["none", "align"]) if "state" in kinds else "none"
    tensor = dice.choice([1, 2, 4, 8])
    block = dice.choice([16, 16, 32, 64, 128])
    settings = Settings(
        version=VERSION,
        blocks_override=dice.choice([0, 0, 0, 0, 1000]),
        in_flight_tokens=dice.choice([2048, 4096, 8192, 16384]),
        block_tokens=block,
        kernel_block_tokens=block,
        cache_element_bytes=dice.choice([1.0, 2.0, 2.0]),
        tensor_parallel=tensor,
        pipeline_parallel=dice.randint(1, min(4, len(chosen))) if dice.random() < 0.3 else 1,
        context_parallel=dice.choice([1, tensor]) if kinds <= {"full", "mla"} else 1,
        speculative_tokens=dice.choice([0, 0, 1, 3]),
        hybrid_manager=dice.random() < 0.8 or "state" in kinds,
        state_mode=mode,
        checkpoint_blocks=dice.choice([0, 1]),
    )
    geometry = Geometry(architecture="Random", layers=chosen, weights=(), hidden_size=1, vocabulary=1, query_heads=1)
    length = dice.choice([1000, 8192, 40960, 131072, 1048576])
    return Question(geometry, settings, dice.randint(0, 80 * GIB) // dice.choice([1, 1, 100, 10000]), length)


def test_the_real_planner_agrees_on_random_models() -> None:
    dice = random.Random(20261130)
    questions = [question(dice) for _ in range(MODELS)]
    done = subprocess.run(
        [str(real_dir() / "bin" / "python"), str(Path(__file__).with_name("plan_cache.py"))],
        input=json.dumps([one.asked() for one in questions]),
        capture_output=True,
        text=True,
        timeout=PLAN_S,
        check=False,
        env={**os.environ, "VLLM_LOGGING_LEVEL": "ERROR"},
    )

    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout[done.stdout.index("[{") :])
    differing = [
        (one, one.expected(), answer)
        for one, answer in zip(questions, answers, strict=True)
        if not _agree(one.expected(), answer)
    ]
    assert not differing, f"{len(differing)} of {MODELS} differ, the first: {differing[0]}"
    assert sum("blocks" in answer for answer in answers) > MODELS / 2


REFUSALS = (
    ("page size is not divisible", "cannot make cache pages"),
    ("one unified type", "cannot share one group"),
    ("in the same KV cache group must have", "cannot share one group"),
)
"""Words of the engine's refusals, and of ours for the same reason."""


def _agree(ours: dict[str, object], real: dict[str, object]) -> bool:
    """The same numbers, or a refusal of both for the same reason."""
    if "error" not in ours or "error" not in real:
        return ours == real
    return any(theirs in str(real["error"]) and own in str(ours["error"]) for theirs, own in REFUSALS)
