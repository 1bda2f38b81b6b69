"""What the real tier proves: each fault, the load that shows it, and the causes that are right answers.

Measured on two cores with the tiny model: prefill about 1,000 tokens/s, one stream decodes about 150 tokens/s,
a KV block holds 128 tokens, so a shared prefix below 128 tokens is never reused.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from .engine import Launch, real_dir
from .load import Stream


class Fault(Enum):
    """What is done to a running server beside its traffic."""

    NONE = "none"
    FROZEN_CORE = "frozen-core"
    BUSY_HOST = "busy-host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Flags and model of a server; scenarios with an equal one share a process. `damage` makes the model's copy."""

    name: str
    flags: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    damage: Callable[[Path], None] | None = None

    def launch(self, scratch: Path) -> Launch:
        model = real_dir() / "tiny"
        if self.damage is not None:
            model = Path(shutil.copytree(model, scratch / f"model-{self.name}"))
            self.damage(model)
        return Launch(model=model, flags=self.flags, environment=self.environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One diagnosis to get right.

    earlier     traffic of the phase before, run for earlier_s; with `baseline` its end is diagnosed and kept
    streams     traffic during the diagnosis, which starts settle_s after it
    options     further options of `llmedic diagnose`
    expected    ids of causes.yaml; the first cause of the verdict must be one of them
    """

    name: str
    server: Server
    expected: frozenset[str]
    streams: tuple[Stream, ...] = ()
    settle_s: float = 6.0
    window_s: float = 8.0
    earlier: tuple[Stream, ...] = ()
    earlier_s: float = 0.0
    baseline: bool = False
    options: tuple[str, ...] = ()
    fault: Fault = Fault.NONE
    starts: bool = True


def truncate_weights(model: Path) -> None:
    """An interrupted download: the header promises more bytes than the file holds."""
    weights = model / "model.safetensors"
    with weights.open("r+b") as file:
        file.truncate(weights.stat().st_size // 2)


def lose_a_shard(model: Path) -> None:
    """An index that names two shards of which one never arrived."""
    first = "model-00001-of-00002.safetensors"
    (model / "model.safetensors").rename(model / first)
    names = _tensor_names(model / first)
    half = len(names) // 2
    shards = {name: first if n < half else first.replace("00001-", "00002-") for n, name in enumerate(names)}
    index = {"metadata": {"total_size": (model / first).stat().st_size}, "weight_map": shards}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))


def drop_chat_template(model: Path) -> None:
    """A base model served as a chat model."""
    (model / "chat_template.jinja").unlink(missing_ok=True)
    settings = json.loads((model / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (model / "tokenizer_config.json").write_text(json.dumps(settings))


def _tensor_names(weights: Path) -> list[str]:
    with weights.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return sorted(name for name in header if name != "__metadata__")


ROOMY = Server(name="roomy", flags=("--max-model-len", "8192", "--num-gpu-blocks-override", "512"))
SEQ_CAP = Server(name="seq-cap", flags=(*ROOMY.flags, "--max-num-seqs", "4"))
SMALL_POOL = Server(name="small-pool", flags=("--max-model-len", "4096", "--num-gpu-blocks-override", "40"))
NO_PREFIX = Server(name="no-prefix", flags=(*ROOMY.flags, "--no-enable-prefix-caching"))
WHOLE_PREFILL = Server(
    name="whole-prefill",
    flags=("--max-model-len", "16384", "--num-gpu-blocks-override", "512", "--max-num-batched-tokens", "16384"),
)
TOO_LONG = Server(name="too-long", flags=("--max-model-len", "16384", "--num-gpu-blocks-override", "40"))
CUT_WEIGHTS = Server(name="cut-weights", flags=ROOMY.flags, damage=truncate_weights)
LOST_SHARD = Server(name="lost-shard", flags=ROOMY.flags, damage=lose_a_shard)
NO_TEMPLATE = Server(name="no-template", flags=ROOMY.flags, damage=drop_chat_template)

LIGHT = Stream(prompt_tokens=1088, prefix_tokens=1024, output_tokens=24, concurrency=2, think_s=1.0)
# Two lengths, so that the requests do not cross their block borders in step.
STORM = (
    Stream(prompt_tokens=100, output_tokens=300, concurrency=8),
    Stream(prompt_tokens=200, output_tokens=500, concurrency=8),
)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(name="healthy-idle", server=ROOMY, expected=frozenset({"healthy"}), settle_s=0.0),
    Scenario(name="healthy-light", server=ROOMY, expected=frozenset({"healthy"}), streams=(LIGHT,), settle_s=6.0),
    Scenario(
        name="healthy-busy",
        server=ROOMY,
        expected=frozenset({"healthy"}),
        streams=(Stream(prompt_tokens=48, output_tokens=64, concurrency=6, think_s=0.2),),
    ),
    Scenario(
        name="host-cpu-contention",
        server=ROOMY,
        expected=frozenset({"host-cpu-contention"}),
        streams=(Stream(prompt_tokens=48, output_tokens=64, concurrency=4),),
        fault=Fault.BUSY_HOST,
    ),
    Scenario(
        name="client-aborts-early",
        server=ROOMY,
        expected=frozenset({"client-aborts-early"}),
        streams=(Stream(prompt_tokens=48, output_tokens=2000, concurrency=4, timeout_s=1.5),),
    ),
    Scenario(
        name="engine-core-stalled",
        server=ROOMY,
        expected=frozenset({"engine-core-stalled"}),
        streams=(Stream(prompt_tokens=48, output_tokens=400, concurrency=4),),
        settle_s=3.0,
        fault=Fault.FROZEN_CORE,
    ),
    Scenario(
        name="max-num-seqs-too-low",
        server=SEQ_CAP,
        expected=frozenset({"max-num-seqs-too-low"}),
        streams=(Stream(prompt_tokens=48, output_tokens=48, concurrency=24),),
    ),
    Scenario(
        name="long-context-surge",
        server=SMALL_POOL,
        expected=frozenset({"long-context-surge-cache-thrash"}),
        earlier=(
            Stream(prompt_tokens=1088, prefix_tokens=1024, prefixes=3, output_tokens=24, concurrency=3, think_s=1.0),
        ),
        earlier_s=30.0,
        baseline=True,
        streams=(
            Stream(prompt_tokens=1088, prefix_tokens=1024, prefixes=3, output_tokens=24, concurrency=3, think_s=1.0),
            Stream(prompt_tokens=3000, output_tokens=64, concurrency=4),
        ),
        settle_s=12.0,
        window_s=15.0,
    ),
    Scenario(
        name="kv-preemption",
        server=SMALL_POOL,
        expected=frozenset({"kv-pool-exhausted-preemption"}),
        streams=STORM,
        settle_s=12.0,
    ),
    Scenario(
        name="old-incident",
        server=SMALL_POOL,
        expected=frozenset({"healthy"}),
        earlier=STORM,
        earlier_s=25.0,
        streams=(Stream(prompt_tokens=64, output_tokens=24, concurrency=1, think_s=0.7),),
    ),
    Scenario(
        name="prefix-caching-off",
        server=NO_PREFIX,
        expected=frozenset({"prefix-caching-off"}),
        streams=(Stream(prompt_tokens=1600, prefix_tokens=1536, output_tokens=16, concurrency=3),),
    ),
    Scenario(
        name="long-prefill-blocks",
        server=WHOLE_PREFILL,
        expected=frozenset({"long-prefill-blocks-queue"}),
        streams=(
            Stream(prompt_tokens=32, output_tokens=8, rate_per_s=2.5),
            # Rare enough that most short requests are quick: every twelve seconds one blocks them for four.
            Stream(prompt_tokens=3500, output_tokens=4, concurrency=1, think_s=8.0),
        ),
        window_s=15.0,
    ),
    Scenario(
        name="chat-template-missing",
        server=NO_TEMPLATE,
        expected=frozenset({"chat-template-missing-or-wrong"}),
        streams=(Stream(chat=True, output_tokens=16, rate_per_s=2.0),),
        options=("--probe",),
    ),
    Scenario(
        name="max-model-len-exceeds-kv-pool",
        server=TOO_LONG,
        expected=frozenset({"max-model-len-exceeds-kv-pool"}),
        starts=False,
    ),
    Scenario(name="weights-truncated", server=CUT_WEIGHTS, expected=frozenset({"model-file-corrupt"}), starts=False),
    Scenario(name="shard-missing", server=LOST_SHARD, expected=frozenset({"model-file-corrupt"}), starts=False),
)
