from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from llmedic.errors import KnowledgeError
from llmedic.knowledge import metrics, vocabulary


@pytest.fixture(params=sorted(metrics.ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_engine_loads(engine: str) -> None:
    names = metrics.names(engine)
    assert {metric.id for metric in names.metrics} >= {"process_start_s", "process_cpu_s"}
    assert names.gauges <= names.samples


def test_every_metric_gives_a_word_or_a_quantity(engine: str) -> None:
    words = set(vocabulary.names())
    for metric in metrics.names(engine).metrics:
        if metric.kind in ("gauge", "histogram"):
            assert metric.id in words | metrics.QUANTITIES
        assert set(metric.observes.values()) <= words


def test_names_begin_with_a_prefix_of_the_engine_or_are_common(engine: str) -> None:
    common = {
        "process_start_time_seconds",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "http_requests",
    }
    about = metrics.ENGINES[engine]
    for metric in metrics.names(engine).metrics:
        for name in metric.names:
            assert name in common or name.startswith(about.prefixes[:1])


def test_no_name_is_listed_twice_for_a_thing(engine: str) -> None:
    for metric in metrics.names(engine).metrics:
        assert len(set(metric.names)) == len(metric.names)


@pytest.mark.parametrize(
    ("page", "engine"),
    [
        (b"# HELP x\nvllm:num_requests_running 1\n", "vllm"),
        (b"vllm:num_requests_running 1\n", "vllm"),
        (b"ray_vllm_num_requests_running 1\n", "vllm"),
        (b"a 1\nsglang_num_running_reqs 1\n", "sglang"),
        (b"llamacpp:requests_processing 0\n", "llama.cpp"),
        (b"tgi_queue_size 0\n", "tgi"),
        (b"node_cpu_seconds_total 1\n", ""),
        (b'x{name="vllm:y"} 1\n', ""),
    ],
)
def test_the_engine_of_a_page(page: bytes, engine: str) -> None:
    assert metrics.engine_of(page) == engine


@pytest.mark.parametrize(
    ("id_", "newest", "older"),
    [
        ("kv_cache_usage_ratio", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        ("prefix_queries", "vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
        ("prefix_hits", "vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
        ("itl_s", "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
        ("queue_s", "vllm:request_queue_time_seconds", "vllm:time_in_queue_requests"),
    ],
)
def test_renames_of_vllm(id_: str, newest: str, older: str) -> None:
    metric = next(metric for metric in metrics.names("vllm").metrics if metric.id == id_)
    assert metric.names == (newest, older)


def test_the_mean_of_a_request_is_not_taken_for_the_time_between_tokens() -> None:
    by_id = {metric.id: metric for metric in metrics.names("vllm").metrics}
    assert by_id["tpot_s"].names == ("vllm:request_time_per_output_token_seconds",)
    assert not set(by_id["tpot_s"].names) & set(by_id["itl_s"].names)


def test_relays_spell_names_with_an_underscore() -> None:
    samples = metrics.names("sglang").samples
    assert {"sglang:num_running_reqs", "sglang_num_running_reqs"} <= samples
    assert {"sglang:num_requests_total", "sglang_num_requests_total"} <= samples


def test_counters_are_found_with_and_without_total() -> None:
    assert metrics.samples_of("counter", "x") == ("x_total", "x")
    assert metrics.samples_of("counter", "x_sum") == ("x_sum",)
    assert metrics.samples_of("histogram", "x") == ("x_bucket", "x_sum", "x_count")


def test_an_unknown_engine_is_our_mistake() -> None:
    with pytest.raises(KnowledgeError):
        metrics.names("triton")


def test_unknown_keys_fail() -> None:
    record = {"id": "ttft_s", "kind": "histogram", "names": ["a"], "versions": "all", "wher": {}}
    with pytest.raises(msgspec.ValidationError, match="wher"):
        msgspec.convert(record, metrics.Metric)


@pytest.mark.parametrize(
    "record",
    [
        metrics.Metric(id="no_such_word", kind="gauge", names=("a",), versions="all"),
        metrics.Metric(id="no_such_quantity", kind="counter", names=("a",), versions="all"),
        metrics.Metric(id="i", kind="info", names=("a",), versions="all", observes={"label": "no_such_word"}),
    ],
)
def test_words_that_do_not_exist_fail(record: metrics.Metric) -> None:
    with pytest.raises(KnowledgeError, match="no_such"):
        metrics.check("vllm", (record,))


def test_an_id_that_is_there_twice_fails() -> None:
    record = metrics.Metric(id="ttft_s", kind="histogram", names=("a",), versions="all")
    with pytest.raises(KnowledgeError, match="twice"):
        metrics.check("vllm", (record, record))


def test_importing_reads_no_file() -> None:
    code = "import sys; from llmedic.knowledge import metrics; sys.exit(metrics.names.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
