"""A failed start of SGLang, llama.cpp or TGI: the log's word, and a change that the engine's own ledger lets start."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmedic.analysis.ledger import account, elsewhere, failure, subject
from llmedic.analysis.ledger.deployed import completed
from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.collect import logs
from llmedic.model.deployment import Deployment, Flag, HardwareFacts, ModelFacts
from llmedic.model.ledger import Ledger, Term

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 44.40 GiB "
    "of which 1.00 GiB is free."
)


def server(engine: str, version: str, **flags: float) -> Deployment:
    return completed(
        Deployment(
            engine=engine,
            version=version,
            flags=tuple(Flag(name=name, value=value) for name, value in flags.items()),
            model=ModelFacts(name="Qwen/Qwen3-14B"),
            hardware=HardwareFacts(count=4),
        )
    )


def drawing(deployment: Deployment, gib: float) -> Callable[[Deployment], Ledger]:
    shape = subject.shape(deployment)
    assert shape is not None
    total = Term(id="total", size=exact(gib * GIB), basis="given")
    return lambda one: account.OTHERS[one.engine](shape, one, total)


def explained(text: str, deployment: Deployment, gib: float = 44.4) -> Ledger:
    ended = failure.of(logs.read_text(text).events)
    assert ended is not None
    draw = drawing(deployment, gib)
    return elsewhere.why(ended, draw(deployment), deployment, draw)


def test_sglang_s_graphs_need_a_smaller_share() -> None:
    text = f"Capture cuda graph begin. avail mem=1.20 GB\nException: Capture cuda graph failed: {OOM}"

    found = explained(text, server("sglang", "0.5.2", mem_fraction_static=0.9))

    assert found.starts == "no"
    assert found.problems[0].cause == "cuda-graph-capture-oom"
    assert "2.00 GiB more were wanted, 1.00 of 44.40 GiB were free" in found.problems[0].text
    assert "it should have fit" in found.problems[0].text
    assert found.problems[0].change == "--mem-fraction-static 0.87"


def test_sglang_s_cache_needs_a_larger_share() -> None:
    text = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."

    found = explained(text, server("sglang", "0.5.2", mem_fraction_static=0.6))

    assert found.problems[0].change == "--mem-fraction-static 0.645"


def test_weights_of_sglang_are_spread() -> None:
    found = explained(f"Load weight begin. avail mem=23.2 GB\n{OOM}", server("sglang", "0.5.2"), gib=23.5)

    assert found.problems[0].cause == "weights-do-not-fit"
    assert found.problems[0].change == "--tp-size 2"


def test_tgi_warms_up_with_less_and_takes_no_longer_inputs() -> None:
    text = 'Error: Warmup(Generation("Not enough memory to handle 32000 prefill tokens. You need to decrease `--max'

    found = explained(text, server("tgi", "3.3.0", max_prefill_tokens=64000, max_input_tokens=64000))

    flags = found.problems[0].change.split()
    assert flags[::2] == ["--max-batch-prefill-tokens", "--max-input-tokens"]
    assert flags[1] == flags[3]


@pytest.mark.parametrize("context", [262144, 65536])
def test_llama_cpp_gets_a_shorter_context_or_fewer_layers(context: int) -> None:
    text = "load_tensors: loading model tensors\nfailed to allocate buffer for kv cache"
    deployment = server("llama.cpp", "b6600", ctx_size=context, n_gpu_layers=99)

    found = explained(text, deployment, gib=32.0)

    flag, value = found.problems[0].change.split()
    assert flag in ("--ctx-size", "--n-gpu-layers")
    again = server("llama.cpp", "b6600", **{"n_gpu_layers": 99, flag[2:].replace("-", "_"): float(value)})
    assert drawing(again, 32.0)(again).starts == "yes"
