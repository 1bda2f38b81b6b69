"""CUDA graphs: which sizes, how much, and who pays."""

from dataclasses import replace

import pytest
from tests.analysis.ledger.shapes import dense

from llmedic.analysis.ledger.ranges import GIB
from llmedic.analysis.ledger.vllm.graphs import capture_sizes, count, graphs, inside
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.model.geometry import CacheLayer


def test_the_sizes_that_real_logs_list() -> None:
    assert capture_sizes(1) == (1,)
    assert len(capture_sizes(256)) == 35
    assert len(capture_sizes(512)) == 51


@pytest.mark.parametrize(
    ("seqs", "graphs_of_both_modes"), [(1, 2 + 1), (128, 35 + 19), (256, 51 + 35), (1024, 51 + 51)]
)
def test_both_modes_are_counted(seqs: int, graphs_of_both_modes: int) -> None:
    """128: "PIECEWISE=35 (largest=256), FULL=19 (largest=128)" of a 0.22 log; 256: 51 and 35 of many."""
    assert count(Settings(max_num_seqs=seqs, max_num_batched_tokens=8192)) == graphs_of_both_modes


@pytest.mark.parametrize(
    ("seqs", "estimate_gib"), [(1024, 0.84), (256, 0.64), (256, 0.55), (256, 0.78), (128, 0.37), (2, 0.27)]
)
def test_printed_estimates_lie_in_the_interval(seqs: int, estimate_gib: float) -> None:
    size = graphs(dense(), Settings(max_num_seqs=seqs, version=(0, 21, 0)), "0.21.0").size
    assert size.low / GIB <= estimate_gib <= size.high / GIB


@pytest.mark.parametrize(
    ("version", "architecture", "paid"),
    [
        ((0, 19, 1), "LlamaForCausalLM", False),
        ((0, 20, 0), "LlamaForCausalLM", True),
        ((0, 24, 0), "LlamaForCausalLM", False),
        ((0, 28, 0), "LlamaForCausalLM", False),
        ((0, 29, 0), "LlamaForCausalLM", True),
        ((), "LlamaForCausalLM", True),
    ],
)
def test_who_pays(version: tuple[int, ...], architecture: str, paid: bool) -> None:
    release = ".".join(map(str, version))
    assert inside(dense(architecture=architecture), Settings(version=version), release) is paid


@pytest.mark.parametrize(
    ("version", "architecture", "asked", "paid"),
    [
        ((0, 17, 0), "LlamaForCausalLM", True, False),
        ((0, 18, 0), "LlamaForCausalLM", True, True),
        ((0, 21, 0), "LlamaForCausalLM", False, False),
        ((0, 28, 0), "LlamaForCausalLM", True, False),
    ],
)
def test_a_variable_decides_who_pays_on_the_first_runner(
    version: tuple[int, ...], architecture: str, asked: bool, paid: bool
) -> None:
    release = ".".join(map(str, version))
    settings = Settings(version=version, graphs_counted=asked)
    assert inside(dense(architecture=architecture), settings, release) is paid


@pytest.mark.parametrize(("seqs", "estimate_gib"), [(256, 1.62), (1, 0.09), (2, 0.43)])
def test_recurrent_layers_capture_more(seqs: int, estimate_gib: float) -> None:
    state = CacheLayer(kind="state")
    recurrent = replace(dense(), layers=(state, *dense().layers))
    settings = Settings(max_num_seqs=seqs, version=(0, 21, 0))
    size, plain = (graphs(shape, settings, "0.21.0").size for shape in (recurrent, dense()))
    assert size.low / GIB <= estimate_gib <= size.high / GIB
    assert size.likely > plain.likely
