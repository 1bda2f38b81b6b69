"""Terms out of the lines of a start-up log: which rank decides, which card is fullest, what cannot be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.analysis.ledger import startup
from llmedic.analysis.ledger.printedlines import ADDED, COUNTS, DEVICES, RANKS, is_host
from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.collect import logs
from llmedic.knowledge import logs as patterns
from llmedic.model.ledger import Ledger, Printed, Term


def found(text: str, version: str = "") -> dict[str, float]:
    """Terms of a log: sizes in GiB, counts as they are."""
    return {
        one.id: one.value / GIB if one.unit == "bytes" else one.value
        for one in startup.printed(logs.read_text(text).events, version)
    }


@pytest.mark.parametrize("table", [RANKS, COUNTS, DEVICES, ADDED])
def test_every_field_of_the_tables_is_one_that_its_pattern_has(table: dict[str, dict[str, object]]) -> None:
    out_of_memory = {"total_gib"}  # read off the message of PyTorch, whatever pattern matched
    for key, fields in table.items():
        regex = patterns.regex(key)
        assert regex is not None, key
        there = {name.replace("_mib", "_gib").replace("_bytes", "_gib") for name in regex.groupindex}
        assert set(fields) <= there | out_of_memory, key


USAGE = (
    "Free memory on device (78.65/79.18 GiB) on startup. Desired GPU memory utilization is (0.9, 71.26 GiB). "
    "Actual usage is {weights} GiB for weight, {peak} GiB for peak activation, 0.54 GiB for non-torch memory, and "
    "-0.33 GiB for CUDAGraph memory. Current kv cache memory in use is {pool} GiB."
)


def test_of_several_ranks_the_one_with_the_smallest_pool_is_told_whole() -> None:
    lines = [USAGE.format(weights=31.2, peak=5.34, pool=34.79), USAGE.format(weights=30.59, peak=5.64, pool=34.49)]

    terms = found("\n".join(lines))

    assert terms["kv_cache"] == pytest.approx(34.49)
    assert terms["weights"] == pytest.approx(30.59)
    assert terms["activation"] == pytest.approx(5.64)


@given(st.lists(st.floats(min_value=0, max_value=99).map(lambda size: round(size, 2)), min_size=1, max_size=8))
def test_the_smallest_pool_decides_whatever_the_order(pools: list[float]) -> None:
    text = "\n".join(
        f"(Worker_TP{rank} pid=1) Available KV cache memory: {size:.2f} GiB" for rank, size in enumerate(pools)
    )

    assert found(text)["kv_cache"] == pytest.approx(min(pools))


def test_a_peak_that_holds_the_graphs_is_told_apart_where_their_estimate_is_printed() -> None:
    text = USAGE.format(weights=1, peak=1.5, pool=10)

    assert found(text, "0.26.0")["activation"] == pytest.approx(1.5)
    assert "activation" not in found(text, "0.27.1")
    assert found(text, "0.27.1")["activation_and_graphs"] == pytest.approx(1.5)
    both = found(text + "\nEstimated CUDA graph memory: 0.40 GiB total", "0.27.1")
    assert both["activation"] == pytest.approx(1.1)
    assert both["activation_and_graphs"] == pytest.approx(1.5)


LLAMA = """\
load_tensors:   CPU_Mapped model buffer size =  9000.00 MiB
load_tensors:        CUDA0 model buffer size =  1024.00 MiB
load_tensors:        CUDA1 model buffer size =  2048.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =  1536.00 MiB
llama_kv_cache:      CUDA1 KV buffer size =  1536.00 MiB
llama_kv_cache: size = 3072.00 MiB (131072 cells,  12 layers,  4/2 seqs), K (f16): 1536.00 MiB, V (f16): 1536.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =    10.50 MiB
llama_kv_cache:      CUDA1 KV buffer size =     7.50 MiB
llama_kv_cache: size =   18.00 MiB (   768 cells,  12 layers,  4/2 seqs), K (f16):    9.00 MiB, V (f16):    9.00 MiB
sched_reserve:  CUDA_Host compute buffer size =   500.00 MiB
sched_reserve:      CUDA1 compute buffer size =   256.00 MiB
"""


def test_the_caches_of_one_card_add_up_and_the_fullest_card_counts() -> None:
    terms = found(LLAMA)

    assert terms["weights"] == 2.0
    assert terms["kv_cache"] == pytest.approx(1543.5 / 1024)
    assert terms["compute_buffers"] == 0.25
    assert terms["kv_tokens"] == 131072 * 2


def test_two_caches_of_one_size_are_two() -> None:
    line = "llama_kv_cache:      CUDA0 KV buffer size =    12.00 MiB\n"

    assert found(line * 2)["kv_cache"] == pytest.approx(24 / 1024)


def test_without_lines_of_devices_the_caches_as_a_whole_count() -> None:
    assert found("\n".join(line for line in LLAMA.splitlines() if "size = " in line and "cells" in line))[
        "kv_cache"
    ] == pytest.approx(3090 / 1024)


def test_the_table_at_llama_cpp_s_end_tells_the_card() -> None:
    terms = found(
        "llama_memory_breakdown_print: |   - CUDA0 (RTX 5090)   | 32606 =  912 + (29598 = 26349 +    2647 +     601) + "
        "       2095 |"
    )

    assert terms == pytest.approx({"total": 32606 / 1024, "weights": 26349 / 1024, "compute_buffers": 601 / 1024})


@pytest.mark.parametrize(
    ("device", "host"),
    [("CPU", True), ("CPU_Mapped", True), ("CUDA_Host", True), ("CUDA0", False), ("ROCm1", False), ("Metal", False)],
)
def test_buffers_of_the_host_are_told_apart(device: str, host: bool) -> None:
    assert is_host(device) is host


def test_sglang_s_keys_and_values_add_up_for_each_rank() -> None:
    line = "[2025-03-08 10:01:11 TP{}] KV Cache is allocated. #tokens: 46611, K size: {} GB, V size: 1.42 GB"

    terms = found(line.format(0, 1.42) + "\n" + line.format(1, 1.40))

    assert terms["kv_cache"] == pytest.approx(2.82)


def test_ollama_s_estimate_counts_where_all_layers_go_to_the_card() -> None:
    example = patterns.pattern("ollama-offload-estimate")
    assert example is not None

    assert found(example.example) == pytest.approx({"weights": 4.9, "kv_cache": 1.0, "compute_buffers": 560 / 1024})
    assert found(example.example.replace("offload=33", "offload=20")) == {}


def test_only_the_last_start_counts() -> None:
    start = "INFO non-default args: {{'model': 'a/b'}}\nModel loading took 1{0} GiB and 3 seconds\n{1}"
    pool = "Available KV cache memory: 5.00 GiB\n"

    events = logs.read_text(start.format(1, pool) + start.format(2, "")).events
    told = startup.read(events)

    assert told.starts == 2
    assert [(one.id, one.value / GIB) for one in told.printed] == [("weights", 12.0)]


def test_what_cannot_be_is_left_out_with_a_note() -> None:
    card = "can use total_gpu_memory (23.58GiB) x gpu_memory_utilization (0.90) = 21.22GiB"
    told = startup.read(
        logs.read_text(f"the current vLLM instance {card}\nAvailable KV cache memory: 500.00 GiB").events
    )

    assert {one.id for one in told.printed} == {"total", "requested"}
    assert told.notes == ("the log's kv_cache of 500.00 GiB is more than the card's 23.58 GiB: left out",)
    assert told.size("kv_cache") is None


def test_a_negative_pool_is_what_a_failed_start_prints() -> None:
    assert found("Available KV cache memory: -2.14 GiB") == {"kv_cache": pytest.approx(-2.14)}


def ledger(*terms: str, outside: tuple[str, ...] = ()) -> Ledger:
    return Ledger(
        engine="vllm", version="", era="", formula="", devices=1, total=None, requested=None, pool=None,
        starts="unknown",
        terms=tuple(Term(id=name, size=exact(GIB), basis="computed") for name in terms),
        outside=tuple(Term(id=name, size=exact(GIB), basis="computed") for name in outside),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("whole", "printed", "computed"),
    [
        (ledger("weights", "non_torch"), "consumed", 2.0),
        (ledger("weights", "activation"), "torch_peak", 2.0),
        (ledger("activation", "cuda_graphs"), "activation_and_graphs", 2.0),
        (ledger("activation", outside=("cuda_graphs",)), "activation_and_graphs", 1.0),
        (ledger("cuda_graphs"), "cuda_graphs_estimate", 1.0),
        (ledger("cuda_graphs"), "cuda_graphs", None),
        (ledger(outside=("cuda_graphs",)), "cuda_graphs", 1.0),
        (ledger(), "one_request", None),
    ],
)
def test_like_is_held_against_like(whole: Ledger, printed: str, computed: float | None) -> None:
    (one,) = startup.beside((Printed(id=printed, value=3 * GIB),), whole)

    assert one.residual == (None if computed is None else (3 - computed) * GIB)


def test_what_the_budget_pays_for_graphs_is_the_estimate() -> None:
    both = (Printed(id="cuda_graphs", value=2 * GIB), Printed(id="cuda_graphs_estimate", value=GIB))

    assert startup.terms(both, graphs_inside=True)["cuda_graphs"].likely == GIB
    assert startup.terms(both, graphs_inside=False)["cuda_graphs"].likely == 2 * GIB
    assert "cuda_graphs" not in startup.terms(both[:1], graphs_inside=True)
