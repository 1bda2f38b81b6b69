"""A checkpoint that is not stored as the flag says is refused, and the ledger says so."""

from __future__ import annotations

import pytest
from tests.analysis.ledger.servers import deployment

from llmedic.analysis.ledger import account
from llmedic.analysis.ledger.vllm import checkpoint


@pytest.mark.parametrize("flag", ["awq", "awq_marlin", "AWQ"])
def test_a_plain_checkpoint_cannot_be_read_as_a_quantised_one(flag: str) -> None:
    found = account.of(deployment("Qwen3-32B", "H100", "0.33.0", quantization=flag, max_model_len=4096)).ledger
    assert found.starts == "no"
    (problem,) = (one for one in found.problems if one.severity == "critical")
    assert problem.text == (
        f"--quantization {flag} reads weights that are stored so, and Qwen3-32B is not: use Qwen3-32B-AWQ"
    )


@pytest.mark.parametrize("flag", ["fp8", "bitsandbytes", "experts_int8", "rtn"])
def test_what_quantises_while_it_loads_takes_a_plain_checkpoint(flag: str) -> None:
    assert checkpoint.problem(deployment("Qwen3-32B", "H100", quantization=flag)) is None


@pytest.mark.parametrize(("model", "flag"), [("Qwen3-32B-AWQ", "awq_marlin"), ("Qwen/Qwen3-32B-FP8", "fp8")])
def test_a_checkpoint_that_is_stored_so(model: str, flag: str) -> None:
    assert checkpoint.problem(deployment(model, "H100", quantization=flag)) is None


def test_a_checkpoint_that_is_stored_otherwise() -> None:
    found = checkpoint.problem(deployment("Qwen3-32B-AWQ", "H100", quantization="fp8"))
    assert found is not None
    assert found.text == "--quantization fp8 contradicts the checkpoint, which is stored as awq: leave it out"
    assert checkpoint.problem(deployment("Qwen3-32B", "H100", quantization="modelopt")) is not None
    assert checkpoint.problem(deployment("Qwen3-32B", "H100")) is None
