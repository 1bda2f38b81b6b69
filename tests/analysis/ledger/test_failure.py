"""Which line of a log ended the start, at which stage, and what it tells of the memory there."""

from __future__ import annotations

import pytest

from llmedic.analysis.ledger import failure
from llmedic.analysis.ledger.ranges import GIB
from llmedic.collect import logs
from llmedic.knowledge import causes

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB. GPU 0 has a total capacity of 23.53 GiB "
    "of which 1.06 GiB is free. Including non-PyTorch memory, this process has 22.46 GiB memory in use. Of the "
    "allocated memory 21.90 GiB is allocated by PyTorch, and 100.10 MiB is reserved by PyTorch but unallocated."
)
SERVED = "INFO:     Application startup complete.\n"


def of(text: str) -> failure.Failure | None:
    return failure.of(logs.read_text(text).events)


@pytest.mark.parametrize(
    ("before", "stage"),
    [
        ("Starting to load model a/b...\n", "load"),
        ("Model loading took 14.98 GiB and 4.3 seconds\n", "profile"),
        ("Capturing CUDA graph shapes:  97%\n", "beside"),
        (SERVED, "serve"),
    ],
)
def test_an_out_of_memory_error_is_of_the_stage_that_it_was_printed_in(before: str, stage: str) -> None:
    found = of(before + OOM)

    assert found is not None
    assert found.stage == stage
    assert (found.tried, found.free, found.total) == pytest.approx((3.5 * GIB, 1.06 * GIB, 23.53 * GIB))
    assert found.lacking == pytest.approx(2.44 * GIB)
    assert found.is_memory is (stage != "serve")
    assert "3.50 GiB more were wanted, 1.06 of 23.53 GiB were free" in found.text


@pytest.mark.parametrize(
    ("line", "stage", "words"),
    [
        ("ValueError: No available memory for the cache blocks.", "cache", "nothing is left"),
        ("AssertionError: Error in memory profiling. Initial free memory", "free", "other processes"),
        (
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests",
            "beside",
            "ends",
        ),
        ("OSError: You are trying to access a gated repo.", "other", "out of memory"),
    ],
)
def test_other_lines_have_their_stage_too(line: str, stage: str, words: str) -> None:
    found = of(line)

    assert found is not None
    assert found.stage == stage
    assert words in found.text
    assert found.lacking == 0


def test_the_first_cause_wins_over_its_echoes_and_over_what_is_not_about_memory() -> None:
    found = of(f"Starting to load model a/b...\n{OOM}\nRuntimeError: Engine core initialization failed.\n"
               "OSError: [Errno 98] error while attempting to bind: Address already in use\n")  # fmt: skip

    assert found is not None
    assert found.cause == "weights-do-not-fit"


@pytest.mark.parametrize("text", ["", SERVED, SERVED + "OSError: You are trying to access a gated repo.\n"])
def test_a_server_that_serves_did_not_fail_to_start(text: str) -> None:
    assert of(text) is None
    assert failure.served(logs.read_text(text).events) is bool(text)


def test_every_stage_is_that_of_a_known_cause() -> None:
    assert set(failure.STAGES) <= set(causes.causes())
    assert all(group <= set(failure.STAGES) for group in failure.SAME)


def test_causes_that_the_arithmetic_cannot_tell_apart_are_one() -> None:
    assert failure.same("memory-fraction-above-free", "gpu-held-by-other-process")
    assert failure.same("cuda-graph-capture-oom", "cuda-graph-capture-oom")
    assert not failure.same("weights-do-not-fit", "max-model-len-exceeds-kv-pool")


def test_a_start_that_ended_early_did_not_reach_what_comes_later() -> None:
    found = of("Model loading took 14.98 GiB and 4.3 seconds\n" + OOM)

    assert found is not None
    assert failure.reached("weights-do-not-fit", found)
    assert not failure.reached("startup-no-memory-for-kv", found)
