"""Start-up logs of every engine from file to ledger: residuals, causes, changes that start, and logs that mislead.

Figures of the logs are those that real servers printed (pools.yaml, llamacpp.yaml, sglang.yaml, tgi.yaml); sizes that
no public log tells, such as the out-of-memory messages, follow from the formats of the engines' sources.
"""

from __future__ import annotations

import gzip
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmedic.analysis.ledger import logged
from llmedic.analysis.ledger.startup import Startup
from llmedic.app import ledger
from llmedic.app.request import LedgerRequest
from llmedic.errors import InputError, UsageError
from llmedic.knowledge import causes
from llmedic.model.deployment import Deployment, ModelFacts, TensorGroup
from llmedic.model.ledger import LedgerReport, Printed, Problem, Range

LOGS = Path(__file__).parents[1] / "data" / "ledger" / "logs"
GIB = 2**30
SAID: dict[str, dict[str, Any]] = {
    "vllm-0.11": {"gpu": "H100"},
    "vllm-0.11-tp2": {"gpu": "H100"},
    "vllm-0.19": {"gpu": "H100"},
    "vllm-0.22": {"gpu": "L40S"},
    "vllm-0.28-xpu": {"gpu": "Arc Pro B60"},
    "vllm-0.30": {"gpu": "A100 80GB"},
    "sglang-0.4.3-tp4": {"gpu": "RTX 4090", "version": "0.4.3"},
    "llamacpp-two-cards": {"model": "gpt-oss-20b"},
    "tgi-2.2": {"gpu": "A10G", "version": "2.2.0"},
    "ollama": {"model": "Llama-3.1-8B-Instruct"},
    "fails-no-cache-0.10": {"gpu": "H100"},
    "fails-sglang": {"gpu": "L40S", "version": "0.5.2"},
    "fails-llamacpp": {"model": "Llama-3.1-8B-Instruct", "flags": ("--ctx-size", "131072")},
    "fails-tgi": {"gpu": "A10G", "version": "2.2.0"},
    "two-starts": {"gpu": "H100"},
}
"""What a log does not tell."""


def of(name: str, *change: str, **more: Any) -> LedgerReport:
    said = SAID.get(name, {}) | more
    flags = (*said.pop("flags", ()), *change)
    return ledger.run(LedgerRequest(log=LOGS / f"{name}.log", flags=flags, **said))


def told(text: str, tmp_path: Path, **more: Any) -> LedgerReport:
    path = tmp_path / "engine.log"
    path.write_text(text)
    return ledger.run(LedgerRequest(log=path, **more))


def critical(report: LedgerReport) -> Problem:
    return next(problem for problem in report.ledger.problems if problem.severity == "critical")


@pytest.mark.parametrize(
    ("name", "term", "most"),
    [
        ("vllm-0.6-v0", "weights", 0.03),
        ("vllm-0.6-v0", "torch_peak", 0.1),
        ("vllm-0.6-v0", "kv_cache", 0.1),
        ("fails-length-0.6-v0", "kv_cache", 0.1),
        ("vllm-0.11", "requested", 0.01),
        ("vllm-0.11", "weights", 0.03),
        ("vllm-0.11", "activation", 0.1),
        ("vllm-0.11", "non_torch", 0.1),
        ("vllm-0.11", "kv_cache", 0.2),
        ("vllm-0.11-tp2", "weights", 0.1),
        ("vllm-0.11-tp2", "activation", 0.1),
        ("vllm-0.11-tp2", "kv_cache", 0.3),
        ("vllm-0.19", "kv_cache", 0.6),
        ("vllm-0.22", "kv_cache", 1.0),
        ("vllm-0.28-xpu", "activation_and_graphs", 0.1),
        ("vllm-0.28-xpu", "consumed", 0.6),
        ("vllm-0.30", "kv_cache", 1.0),
        ("sglang-0.4.3-tp4", "weights", 0.3),
        ("sglang-0.4.3-tp4", "free", 0.5),
        ("sglang-0.4.3-tp4", "kv_cache", 0.3),
        ("fails-sglang", "weights", 0.1),
        ("llamacpp-two-cards", "kv_cache", 0.01),
        ("fails-llamacpp", "weights", 0.01),
        ("ollama", "kv_cache", 0.001),
        ("ollama", "compute_buffers", 0.1),
    ],
)
def test_what_is_computed_is_what_was_printed(name: str, term: str, most: float) -> None:
    printed = {one.id: one for one in of(name).printed}

    residual = printed[term].residual
    assert residual is not None
    assert abs(residual) <= most * GIB


@pytest.mark.parametrize(
    ("name", "term", "share"),
    [
        ("vllm-0.6-v0", "blocks", 0.02),
        ("vllm-0.6-v0", "concurrency", 0.02),
        ("sglang-0.4.3-tp4", "kv_tokens", 0.1),
        ("llamacpp-two-cards", "kv_tokens", 0.0),
        ("tgi-2.2", "kv_tokens", 0.25),
    ],
)
def test_counts_too(name: str, term: str, share: float) -> None:
    printed = {one.id: one for one in of(name).printed}[term]

    assert printed.residual is not None
    assert abs(printed.residual) <= share * printed.value


@pytest.mark.parametrize(
    ("name", "era", "words"),
    [
        ("vllm-0.6-v0", "vllm-first-engine", "activation peak"),
        ("vllm-0.11", "vllm-graphs-outside", "weights - activation peak - non-torch"),
        ("vllm-0.19", "vllm-graphs-outside", "total x 0.95"),
        ("vllm-0.22", "vllm-graphs-inside", "CUDA graph estimate"),
        ("vllm-0.30", "vllm-graphs-inside", "CUDA graph estimate"),
        ("sglang-0.4.3-tp4", "sglang-shares", "mem-fraction-static"),
        ("llamacpp-two-cards", "llamacpp-streams", "cells"),
        ("tgi-2.2", "tgi-free-memory", "room"),
    ],
)
def test_the_formula_of_the_release_is_named(name: str, era: str, words: str) -> None:
    found = of(name).ledger

    assert found.era == era
    assert words in found.formula


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.glob("*.log") if not path.stem.startswith("fails")))
def test_a_log_that_served_shows_that_it_started(name: str) -> None:
    found = of(name).ledger

    assert found.starts == "yes"
    assert not [one for one in found.problems if one.severity == "critical"]


def test_the_smallest_pool_of_the_ranks_is_the_pool() -> None:
    found = of("vllm-0.11-tp2").ledger

    assert found.pool is not None
    assert found.pool.basis == "printed"
    assert found.pool.size.likely / GIB == pytest.approx(34.49, abs=0.005)


def test_releases_that_print_tokens_alone_tell_the_pool_too() -> None:
    found = of("vllm-0.8.5-tp8").ledger

    assert found.pool is not None
    assert found.pool.size.likely / GIB == pytest.approx(4.07, abs=0.01)
    assert found.cache is not None
    assert found.cache.concurrency.likely == pytest.approx(13.02, abs=0.01)
    assert [gap.what for gap in found.gaps] == ["the card's memory"]
    assert found.gaps[0].how == f"llmedic ledger --log {LOGS / 'vllm-0.8.5-tp8.log'} --gpu NAME"


FAILED = {
    "fails-length-0.6-v0": ("max-model-len-exceeds-kv-pool", "needs 3.54 GiB"),
    "fails-length-0.11": ("max-model-len-exceeds-kv-pool", "needs 16.00 GiB of KV cache, the pool has 9.63 GiB"),
    "fails-no-cache-0.10": ("startup-no-memory-for-kv", "- 65.97 GiB -"),
    "fails-weights": ("weights-do-not-fit", "of each device, which has 23.53 GiB"),
    "fails-profile": ("prefill-budget-activation-oom", "7.00 GiB more were wanted, 5.96 of 23.53 GiB were free"),
    "fails-capture": ("cuda-graph-capture-oom", "are needed at that point and the device has 23.53 GiB"),
    "fails-sampler": ("sampler-buffers-oom", "out of memory"),
    "fails-free": ("memory-fraction-above-free", "19.77 GiB are free at start"),
    "fails-sglang": ("startup-no-memory-for-kv", " x 0.6 - 27.51 GiB = -1.17 GiB"),
    "fails-llamacpp": ("startup-no-memory-for-kv", "the fullest card needs"),
    "fails-tgi": ("prefill-budget-activation-oom", "the warm-up of 32000 tokens"),
}
"""Failed start -> its cause, and some of the arithmetic."""


@pytest.mark.parametrize("name", FAILED)
def test_a_failed_start_is_explained(name: str) -> None:
    report = of(name)
    cause, words = FAILED[name]

    first = report.ledger.problems[0]
    assert report.ledger.starts == "no"
    assert (first.severity, first.cause, first.starts) == ("critical", cause, "no")
    assert cause in causes.causes()
    assert words in first.text
    assert len([one for one in report.ledger.problems if one.severity == "critical"]) == 1


@pytest.mark.parametrize("name", FAILED)
def test_the_change_that_is_advised_starts(name: str) -> None:
    change = critical(of(name)).change

    assert change
    again = of(name, *change.split()).ledger
    assert again.starts == "yes"
    assert not [one for one in again.problems if one.severity == "critical"]


def test_a_changed_setting_moves_what_was_printed() -> None:
    now, then = of("vllm-0.11").ledger, of("vllm-0.11", "--gpu-memory-utilization", "0.8").ledger

    assert now.pool is not None
    assert then.pool is not None
    assert (now.pool.size.likely - then.pool.size.likely) / GIB == pytest.approx(7.918, abs=0.01)
    assert "settings differ from the log's" in then.notes[-1]
    assert of("vllm-0.11", "--gpu-memory-utilization", "0.9").ledger.pool == now.pool


def test_memory_that_others_hold_is_named_and_no_setting_helps() -> None:
    first = critical(of("fails-held"))

    assert first.cause == "gpu-held-by-other-process"
    assert "11.08 GiB are free at start" in first.text
    assert first.change == ""


def test_the_log_s_word_and_the_ledger_s_are_both_told_where_they_differ(tmp_path: Path) -> None:
    line = (LOGS / "fails-weights.log").read_text().replace("Qwen/Qwen3-32B", "Qwen/Qwen3-0.6B")

    first = critical(told(line, tmp_path))

    assert first.cause == "weights-do-not-fit"
    assert "the log ends out of memory: 0.24 GiB more were wanted" in first.text
    assert "it should have fit" in first.text


def test_a_cache_that_got_nothing_without_a_printed_size(tmp_path: Path) -> None:
    lines = (LOGS / "fails-no-cache-0.10.log").read_text().splitlines()
    report = told("\n".join(line for line in lines if "Available KV" not in line), tmp_path, gpu="H100")

    assert report.ledger.starts == "no"
    assert report.ledger.pool is not None
    assert report.ledger.pool.size.high <= 0
    assert critical(report).change == "--tensor-parallel-size 2"


def test_a_failure_that_is_not_about_memory_is_left_to_diagnose() -> None:
    report = of("fails-not-memory", gpu="H100")

    assert report.ledger.starts == "unknown"
    (gap,) = report.ledger.gaps
    assert gap.what == "why the start failed"
    assert "gated repo" in gap.why
    assert gap.how == f"llmedic diagnose --log {LOGS / 'fails-not-memory.log'}"


def test_a_failure_while_serving_is_left_to_diagnose_too() -> None:
    report = of("fails-serving")

    assert report.ledger.starts == "yes"
    assert [gap.what for gap in report.ledger.gaps] == ["why it failed while serving"]
    first = report.ledger.problems[0]
    assert (first.severity, first.starts) == ("critical", "yes")
    assert first.text == (
        "it started, then failed while serving: the log ends out of memory: "
        "1.16 GiB more were wanted, 0.56 of 23.53 GiB were free"
    )


def test_what_is_quoted_ends_with_a_whole_word(tmp_path: Path) -> None:
    line = "(APIServer pid=7) OSError: You are trying to access a gated repo. " + "Weitergabe " * 40
    gap = told((LOGS / "fails-not-memory.log").read_text() + line, tmp_path, gpu="H100").ledger.gaps[0]

    assert gap.why.endswith(("Weitergabe ...", "gated repo."))


def test_a_balance_is_only_drawn_where_it_adds_up(tmp_path: Path) -> None:
    log = (LOGS / "fails-no-cache-0.10.log").read_text().replace("-2.14 GiB", "-8.00 GiB")
    text = critical(told(log, tmp_path, gpu="H100")).text

    assert text.startswith("the engine printed -8.00 GiB; 71.26 ")
    assert text.endswith("would leave -2.21 (-2.35 to -2.10) GiB: 5.79 GiB more were taken")


def test_a_pool_that_got_nothing_on_an_unknown_card_is_told_by_what_was_printed() -> None:
    text = critical(of("fails-no-cache-0.10", gpu="")).text

    assert text == "the log says that nothing is left for the KV cache: weights take 65.97 GiB, -2.14 GiB are left"


def test_memory_that_others_hold_stays_held_when_a_setting_changes() -> None:
    report = of("fails-held", "--tensor-parallel-size", "2")

    assert report.ledger.starts == "no"
    assert "11.08 GiB are free at start" in critical(report).text


def test_a_log_of_an_unknown_model_tells_what_it_can(tmp_path: Path) -> None:
    log = (LOGS / "fails-length-0.11.log").read_text().replace("meta-llama/Llama-3.1-8B-Instruct", "acme/secret")
    report = told(log, tmp_path)

    assert critical(report).text.endswith("it needs 16.00 GiB, the pool has 9.63 GiB")
    assert critical(report).change == "--max-model-len 78864"
    assert [gap.what for gap in report.ledger.gaps] == ["the model's shape"]


def test_a_share_that_is_not_free_is_told_without_the_model(tmp_path: Path) -> None:
    log = (LOGS / "fails-free.log").read_text().replace("Qwen/Qwen2.5-7B-Instruct-AWQ", "acme/secret")

    assert critical(told(log, tmp_path)).change == "--gpu-memory-utilization 0.88"


# --- logs that mislead


def test_of_two_servers_in_one_log_the_last_counts() -> None:
    report, alone = of("two-starts"), of("vllm-0.11-tp2")

    assert report.model_name == "Qwen/Qwen3-32B"
    assert report.printed == alone.printed
    assert report.settings == alone.settings
    assert report.ledger.starts == "yes"
    assert "the log holds 2 starts: the last one is shown" in report.ledger.notes


def test_a_log_of_another_engine_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the log is of vllm, not of sglang") as refusal:
        of("vllm-0.11", engine="sglang")
    assert refusal.value.hint == "leave --engine out"


def test_ollama_s_log_is_llama_cpp_s() -> None:
    assert of("ollama", engine="ollama").ledger.starts == "yes"


def test_a_log_without_memory_is_named(tmp_path: Path) -> None:
    report = told("GET /v1/completions 200\nhello\n", tmp_path, model="Qwen3-8B", gpu="H100")

    assert report.ledger.starts == "yes"
    assert [gap.what for gap in report.ledger.gaps] == ["memory in the log"]


def test_a_pool_larger_than_the_card_is_left_out(tmp_path: Path) -> None:
    text = (LOGS / "vllm-0.6-v0.log").read_text().replace("kv_cache_size=3.81", "kv_cache_size=381.00")
    report = told(text.replace("# GPU blocks: 1952", "# GPU blocks: 195200"), tmp_path)

    assert report.ledger.pool is not None
    assert report.ledger.pool.basis == "calibrated"
    assert any("is more than the card's 23.58 GiB" in note for note in report.ledger.notes)
    assert "the log counts more blocks than the card can hold: left out" in report.ledger.notes


def test_a_card_that_is_not_the_log_s_is_noted() -> None:
    report = of("vllm-0.6-v0", gpu="H100")

    assert report.ledger.total is not None
    assert report.ledger.total.size.likely / GIB == pytest.approx(23.58)
    assert any("the log's counts" in note for note in report.ledger.notes)


@pytest.mark.parametrize(
    ("name", "model"), [("vllm-0.6-v0", "Llama-3.3-70B-Instruct"), ("vllm-0.11", "Qwen3-32B"), ("tgi-2.2", "Qwen3-8B")]
)
def test_a_model_that_is_not_the_log_s_is_refused(name: str, model: str) -> None:
    with pytest.raises(UsageError, match=f"the log is of .*, not of {model}") as refusal:
        of(name, model=model)
    assert refusal.value.hint == "leave MODEL out"


def test_a_log_that_names_no_known_model_takes_the_one_that_is_given(tmp_path: Path) -> None:
    text = (LOGS / "vllm-0.11.log").read_text().replace("Qwen/Qwen3-0.6B", "/models/ours")

    assert told(text, tmp_path, gpu="H100", model="Qwen3-0.6B").ledger.pool == of("vllm-0.11").ledger.pool


@pytest.mark.parametrize("change", [(), ("--tensor-parallel-size", "2")])
def test_numbers_that_the_named_card_cannot_hold_are_another_card_s(change: tuple[str, ...]) -> None:
    report = of("vllm-0.30", *change, gpu="L40S")

    assert report.ledger.problems[0].text.startswith("the log is of another card: it tells of 71.")
    assert report.printed == ()
    assert report.ledger.pool is not None
    assert report.ledger.total is not None
    assert report.ledger.pool.size.high < report.ledger.total.size.low


def test_weights_that_are_not_the_file_s_are_another_model_s() -> None:
    tensors = (TensorGroup(name="token_embd.weight", dtype="Q4_K", tensors=1, parameters=8, bytes=4 * GIB),)
    found = Startup(printed=(Printed(id="weights", value=13.98 * GIB),))
    weights = Range(low=4 * GIB, likely=4 * GIB, high=4 * GIB)
    one = Deployment(engine="llama.cpp", model=ModelFacts(name="ours", tensors=tensors))

    held = logged.held_against(logged.Log(found=found, name="engine.log"), one, None, weights)

    assert held.foreign.startswith("the log is of another model: its weights take 13.98 GiB")
    assert held.found.printed == ()
    near = replace(found, printed=(Printed(id="weights", value=4.2 * GIB),))
    assert logged.held_against(logged.Log(found=near), one, None, weights).found == near


@pytest.mark.parametrize(
    "text",
    [
        "non-default args: {'model': 'Qwen/Qwen3-8B', 'tensor_parallel_size': 0}",
        "non-default args: {'model': 'Qwen/Qwen3-8B', 'gpu_memory_utilization': 7}",
        "server_args=ServerArgs(model_path='Qwen/Qwen3-8B', tp_size=1, mem_fraction_static=9)",
    ],
)
def test_settings_of_a_log_that_cannot_be_are_gaps(text: str, tmp_path: Path) -> None:
    ledger_of_the_rest = told(text, tmp_path, gpu="H100").ledger
    assert ledger_of_the_rest.pool is not None
    assert sum("makes no sense" in gap.why and "\n" not in gap.why for gap in ledger_of_the_rest.gaps) == 1


@pytest.mark.parametrize("number", ["nan", "-0", "99999999999999999999999999", "1e999", "-5.00"])
def test_numbers_that_cannot_be_are_survived(number: str, tmp_path: Path) -> None:
    text = f"Available KV cache memory: {number} GiB\nModel loading took {number} GiB and 3 seconds\n"
    text += f"# GPU blocks: {number}, # CPU blocks: 3\nCUDA0 model buffer size =  {number} MiB\n"

    assert told(text, tmp_path, model="Qwen3-8B", gpu="H100").ledger.starts in ("yes", "no", "perhaps", "unknown")


def test_empty_and_binary_logs_are_one_clear_line(tmp_path: Path) -> None:
    binary = tmp_path / "engine.log"
    binary.write_bytes(random.Random(1).randbytes(5000))

    with pytest.raises(InputError, match="binary, not a log"):
        ledger.run(LedgerRequest(log=binary))
    with pytest.raises(InputError, match="empty"):
        told("", tmp_path)


def test_a_long_compressed_log_is_read_to_its_end(tmp_path: Path) -> None:
    noise = 'INFO:     10.0.0.1:5000 - "POST /v1/completions HTTP/1.1" 200 OK\n' * 200_000
    path = tmp_path / "engine.log.gz"
    path.write_bytes(gzip.compress((noise + (LOGS / "vllm-0.11.log").read_text()).encode(), compresslevel=1))

    report = ledger.run(LedgerRequest(log=path, gpu="H100"))

    assert report.ledger.pool == of("vllm-0.11").ledger.pool


def test_a_card_without_memory_is_a_slip() -> None:
    with pytest.raises(UsageError, match="without memory"):
        ledger.run(LedgerRequest(model="Qwen3-8B", gpu="0GiB"))


@pytest.mark.parametrize(
    ("gpu", "name", "gib"),
    [
        ("2x 24GiB", "", 24.0),
        ("RTX 4090 23.53GiB", "NVIDIA GeForce RTX 4090", 23.53),
        ("2x 31.98GiB", "", 31.98),
    ],
)
def test_the_memory_of_a_card_can_be_given(gpu: str, name: str, gib: float) -> None:
    report = ledger.run(LedgerRequest(model="Qwen3-8B", gpu=gpu))
    assert report.accelerator == name
    assert report.ledger.total is not None
    assert report.ledger.total.size.likely / 2**30 == pytest.approx(gib)


def test_a_size_with_two_decimals_is_known_to_its_last_digit() -> None:
    given = LedgerRequest(model="granite-4.0-micro", version="0.11.0", flags=("--quantization", "fp8"),
                          available_bytes=round(35.34 * 2**30), available_slack_bytes=0.005 * 2**30)  # fmt: skip
    cache = ledger.run(given).ledger.cache
    assert cache is not None
    assert cache.printed_tokens.low <= 463_136 <= cache.printed_tokens.high
    assert cache.printed_tokens.high - cache.printed_tokens.low < 200


@pytest.mark.parametrize(("name", "tokens", "gibibytes"), [("sglang-0.4.3-tp4", 46611, 2.84), ("tgi-2.2", 19056, 2.33)])
@pytest.mark.parametrize("known", [True, False])
def test_a_printed_pool_is_the_pool_of_every_engine(name: str, tokens: int, gibibytes: float, known: bool) -> None:
    found = of(name, **({} if known else {"gpu": ""})).ledger

    assert found.pool is not None
    assert found.pool.basis == "printed"
    assert found.pool.size.likely / GIB == pytest.approx(gibibytes, abs=0.01)
    assert found.cache is not None
    assert found.cache.printed_tokens.likely == tokens


def test_printed_weights_are_the_weights_of_every_engine() -> None:
    weights = next(term for term in of("sglang-0.4.3-tp4").ledger.terms if term.id == "weights")

    assert weights.basis == "printed"
    assert weights.size.likely / GIB == pytest.approx(15.54)


def test_what_sglang_printed_before_it_failed_is_enough() -> None:
    report = of("fails-sglang", gpu="")
    first = critical(report)

    assert "x 0.6 - 27.51 GiB = -1.17 GiB" in first.text
    assert report.ledger.pool is not None
    assert first.change.startswith("--mem-fraction-static 0.6")
    assert of("fails-sglang", *first.change.split()).ledger.starts == "yes"


def test_what_llama_cpp_wanted_is_told_without_the_model() -> None:
    first = critical(of("fails-llamacpp", model="", flags=()))

    assert first.text == ("23.33 GiB free less weights of 13.98 GiB are 9.35 GiB, less than the KV cache of 16.00 GiB")
    assert first.change == "--ctx-size 65536"


def test_what_was_to_be_allocated_is_told_where_the_log_has_it() -> None:
    text = critical(of("fails-llamacpp")).text

    assert text.startswith("the log ends out of memory while it allocates 16.00 GiB; ")


def test_every_card_of_the_log_counts_without_the_model() -> None:
    assert of("llamacpp-two-cards", model="").ledger.devices == 2
