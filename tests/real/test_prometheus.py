"""The Prometheus source against a real Prometheus server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from llmedic.collect import prometheus
from llmedic.errors import UsageError
from llmedic.model.raw import Raw
from llmedic.wire import exposition

from . import prometheus_server

pytestmark = pytest.mark.real

PER_SECOND = 10.0


def page(started: float, *, waiting: int) -> str:
    """A vLLM page whose counters grow by PER_SECOND, with TTFT spread over three buckets."""
    count = int((time.time() - started) * PER_SECOND)
    labels = 'engine="0",model_name="m"'
    lines = [
        f"vllm:num_requests_waiting{{{labels}}} {waiting}.0",
        f"vllm:num_requests_running{{{labels}}} 4.0",
        f"vllm:generation_tokens_total{{{labels}}} {count * 100}.0",
        f'vllm:request_success_total{{finished_reason="stop",{labels}}} {count}.0',
        *(
            f'vllm:time_to_first_token_seconds_bucket{{{labels},le="{edge}"}} {count * share:.1f}'
            for edge, share in (("0.1", 0.5), ("1.0", 0.9), ("+Inf", 1.0))
        ),
        f"vllm:time_to_first_token_seconds_count{{{labels}}} {count}.0",
        f"vllm:time_to_first_token_seconds_sum{{{labels}}} {count * 0.4}",
        f"process_start_time_seconds {started}",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    base: str
    ports: tuple[int, int]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    started = time.time() - 1000
    with (
        prometheus_server.page_server(lambda: page(started, waiting=3)) as first,
        prometheus_server.page_server(lambda: page(started, waiting=5)) as second,
        prometheus_server.page_server(lambda: "process_start_time_seconds 1\nother_total 5\n") as other,
        prometheus_server.prometheus(
            tmp_path_factory.mktemp("prometheus"), {"vllm": [first, second], "other": [other]}
        ) as base,
    ):
        yield Running(base=base, ports=(first, second))


def capture(running: Running, selector: str, **options: float) -> tuple[Raw, ...]:
    return prometheus.capture(f"prom+{running.base}?{selector}", window_s=4.0, now=time.time(), **options)


def pages(raws: tuple[Raw, ...], target: str) -> dict[str, dict[str, float]]:
    found = [raw for raw in raws if raw.kind == "metrics" and raw.target == target]
    return {
        raw.meta["end"]: {series.name: value for series, value in exposition.read(raw.body).samples} for raw in found
    }


def test_every_replica_has_a_page_at_both_ends(running: Running) -> None:
    raws = capture(running, 'job="vllm"')

    assert {raw.target for raw in raws} == {f"http://127.0.0.1:{port}" for port in running.ports}
    assert not [raw.error for raw in raws if raw.error]
    for port, waiting in zip(running.ports, (3.0, 5.0), strict=True):
        ends = pages(raws, f"http://127.0.0.1:{port}")
        assert ends["first"]["vllm:num_requests_waiting"] == waiting
        assert ends["first"].keys() == ends["last"].keys()


def test_the_rate_is_that_of_the_server(running: Running) -> None:
    raws = capture(running, 'job="vllm"')
    target = f"http://127.0.0.1:{running.ports[0]}"
    first, last = (raw for raw in raws if raw.kind == "metrics" and raw.target == target)

    ends = pages(raws, target)
    gained = ends["last"]["vllm:request_success_total"] - ends["first"]["vllm:request_success_total"]

    assert last.at - first.at == pytest.approx(float(last.meta["window_s"]))
    assert gained / (last.at - first.at) == pytest.approx(PER_SECOND, rel=0.3)


def test_a_long_window_is_fetched_in_steps(running: Running) -> None:
    raws = prometheus.capture(f'prom+{running.base}?job="vllm"', window_s=7200.0, now=time.time())

    assert pages(raws, f"http://127.0.0.1:{running.ports[0]}")["last"]["vllm:num_requests_waiting"] == 3.0


def test_other_programs_are_left_out_without_a_selector(running: Running) -> None:
    assert {raw.target for raw in capture(running, "") if raw.kind == "metrics"} == {
        f"http://127.0.0.1:{port}" for port in running.ports
    }


def test_other_programs_are_left_out_when_the_selector_picks_them(running: Running) -> None:
    (note,) = capture(running, 'job="other"')

    assert note.error == 'no engine\'s series for {job="other"} in the window'


def test_a_time_before_the_first_scrape_is_a_gap(running: Running) -> None:
    raws = capture(running, 'job="vllm"', compare_to_s=86_400.0)

    (gap,) = prometheus.read(raws).gaps
    assert gap.why == 'no engine\'s series for {job="vllm"} in the previous window'


@pytest.mark.parametrize("selector", ['job=~"("', 'job=~"a{2,1}"'])
def test_a_selector_that_prometheus_refuses_is_the_callers_mistake(running: Running, selector: str) -> None:
    with pytest.raises(UsageError, match="Prometheus does not understand the selector"):
        capture(running, selector)
