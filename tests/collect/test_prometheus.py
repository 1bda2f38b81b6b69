"""The Prometheus source on answers recorded from a real server; tests/real asks one."""

from __future__ import annotations

import json
import re
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.collect import bundle, engine, prometheus
from llmedic.errors import UsageError
from llmedic.model.observation import Quantiles
from llmedic.model.raw import Raw
from llmedic.wire import exposition, http

ANSWERS = Path(__file__).parent / "prometheus_answers"
NOW = 1796068412.524
FIRST, SECOND = "http://10.0.0.1:8000", "http://10.0.0.2:8000"

Answer = Callable[[str, dict[str, str]], tuple[int, bytes]]


@dataclass(slots=True)
class Asked:
    """What a server was asked."""

    base: str = ""
    forms: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def server(answer: Answer) -> Iterator[Asked]:
    asked = Asked()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self.answer(dict(urllib.parse.parse_qsl(body)))

        def do_GET(self) -> None:
            self.answer(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)))

        def answer(self, form: dict[str, str]) -> None:
            asked.forms.append(form)
            asked.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, body = answer(f"{self.command} {urllib.parse.urlsplit(self.path).path}", form)
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    asked.base = f"http://127.0.0.1:{listening.server_address[1]}"
    try:
        yield asked
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def recorded(name: str, edit: Callable[[dict[str, Any]], object] = lambda _: None) -> Answer:
    """The recorded answer, of it only the series whose names were asked for."""
    whole = json.loads((ANSWERS / f"{name}.json").read_text())
    edit(whole)

    def answer(_: str, form: dict[str, str]) -> tuple[int, bytes]:
        if whole["status"] != "success":
            return 400, json.dumps(whole).encode()
        names = re.search(r'__name__=~"([^"]*)"', form["query"])
        assert names
        found = [one for one in whole["data"]["result"] if re.fullmatch(names[1], one["metric"]["__name__"])]
        return 200, json.dumps({**whole, "data": {**whole["data"], "result": found}}).encode()

    return answer


def ask(answer: Answer, selector: str = 'job=~".+"', *, window_s: float = 5.0, **options: Any) -> tuple[Raw, ...]:
    with server(answer) as asked:
        return prometheus.capture(f"prom+{asked.base}?{selector}", window_s=window_s, now=NOW, **options)


def pages(raws: tuple[Raw, ...], target: str) -> dict[str, Raw]:
    return {raw.meta["end"]: raw for raw in raws if raw.target == target and raw.kind == "metrics"}


def on(page: Raw) -> dict[str, float]:
    return {series.name + series.labels.get("le", ""): value for series, value in exposition.read(page.body).samples}


def test_the_pages_are_those_of_the_window(recording: tuple[Raw, ...]) -> None:
    ends = pages(recording, FIRST)

    # 5 s before the end lies between two scrapes: the earlier one begins the window.
    assert (ends["first"].at, ends["last"].at) == (1796068406.951, 1796068411.951)
    assert float(ends["last"].meta["window_s"]) == pytest.approx(5.0)
    assert on(ends["last"])["vllm:request_success_total"] > on(ends["first"])["vllm:request_success_total"]


@pytest.fixture(scope="module")
def recording() -> tuple[Raw, ...]:
    return ask(recorded("window"))


def test_labels_of_prometheus_are_not_on_the_page(recording: tuple[Raw, ...]) -> None:
    body = pages(recording, FIRST)["last"].body.decode()

    assert "instance=" not in body
    assert "job=" not in body
    assert 'vllm:num_requests_waiting{engine="0",model_name="m"} 3.0' in body.splitlines()


def test_an_engine_that_two_jobs_scrape_counts_once(recording: tuple[Raw, ...]) -> None:
    evidence = engine.read(recording)

    running = [
        seen for seen in evidence.observations if seen.name == "request_rate_per_s" or seen.name == "finished_count"
    ]
    window = {seen.name: seen.value for seen in running if seen.period == "window" and seen.instance == ""}
    assert window["finished_count"] == pytest.approx(50, abs=1)


def test_the_engine_source_reads_the_pages(recording: tuple[Raw, ...]) -> None:
    evidence = engine.read(recording)

    ttft = next(
        seen.value
        for seen in evidence.observations
        if seen.name == "ttft_s" and seen.period == "window" and not seen.instance
    )
    assert isinstance(ttft, Quantiles)
    assert ttft.mean == pytest.approx(0.4, abs=0.01)
    assert evidence.deployment.engine == "vllm"


def test_a_restart_that_the_ends_hide_shortens_the_window(recording: tuple[Raw, ...]) -> None:
    longer = ask(recorded("window"), window_s=10.0)

    ends = pages(longer, SECOND)
    assert (ends["first"].at, ends["last"].at) == (1796068406.525, 1796068411.529)
    assert on(ends["last"])["vllm:num_preemptions_total"] - on(ends["first"])["vllm:num_preemptions_total"] == 1001
    assert [gap.why for gap in prometheus.read(longer).gaps] == [
        "10.0.0.2:8000 restarted: 5 s before it are not part of the window"
    ]
    assert not prometheus.read(recording).gaps


def test_values_that_are_no_numbers_reach_the_page(recording: tuple[Raw, ...]) -> None:
    assert b'vllm:kv_cache_usage_perc{engine="0",model_name="m"} nan' in pages(recording, SECOND)["last"].body


def test_a_bundle_of_it_gives_the_same_evidence(recording: tuple[Raw, ...], tmp_path: Path) -> None:
    bundle.write(tmp_path / "b.zip", recording, now=NOW, window_s=5.0)

    kept = bundle.read_bundle(tmp_path / "b.zip")

    # As text: a value that is not a number is not equal to itself.
    assert repr(engine.read(kept)) == repr(engine.read(recording))
    assert prometheus.read(kept) == prometheus.read(recording)


def test_gauges_between_the_ends_are_looks(recording: tuple[Raw, ...]) -> None:
    looks = [raw for raw in recording if raw.kind == "gauges" and raw.target == FIRST]

    assert [round(raw.at) for raw in looks] == [1796068408, 1796068409, 1796068410, 1796068411]
    assert all(b"_bucket" not in raw.body and b"num_requests_waiting" in raw.body for raw in looks)


def test_the_window_and_the_one_before_are_told_apart() -> None:
    with server(recorded("window")) as asked:
        raws = prometheus.capture(f"prom+{asked.base}?job=x", window_s=3.0, compare_to_s=5.0, now=NOW)
    # The recording is the same for both; what is asked for differs.
    assert sorted({form["time"] for form in asked.forms}) == ["1796068407.524", "1796068412.524"]

    evidence = engine.read(raws)

    periods = {seen.period for seen in evidence.observations if seen.name == "finished_count"}
    assert periods == {"window", "previous", "lifetime"}


def test_a_window_shorter_than_the_scrape_interval_becomes_one_interval() -> None:
    ends = pages(ask(recorded("window"), window_s=0.1), FIRST)

    assert ends["last"].at - ends["first"].at == pytest.approx(1.0, abs=0.01)


def test_a_long_window_is_asked_for_in_steps() -> None:
    with server(recorded("steps")) as asked:
        prometheus.capture(f"prom+{asked.base}?job=x", window_s=7200.0, now=NOW)

    assert {(form["step"], form["start"], form["end"]) for form in asked.forms} == {
        ("30.000", "1796061212.524", "1796068412.524")
    }


def test_a_series_that_ended_is_said_to_have() -> None:
    def end_early(whole: dict[str, Any]) -> None:
        for one in whole["data"]["result"]:
            one["values"] = one["values"][:6]

    gaps = prometheus.read(ask(recorded("window", end_early))).gaps

    assert "10.0.0.1:8000 was last scraped 7 s before the end of the window" in [gap.why for gap in gaps]


def test_warnings_are_gaps() -> None:
    raws = ask(recorded("window", lambda whole: whole.update(warnings=["a store is down"], infos=["not a counter"])))

    assert [gap.why for gap in prometheus.read(raws).gaps] == [
        "Prometheus warns: a store is down",
        "Prometheus warns: not a counter",
    ]
    assert pages(raws, FIRST)


def test_native_histograms_are_left_out_and_said() -> None:
    def add(whole: dict[str, Any]) -> None:
        metric = {"__name__": "vllm:time_to_first_token_seconds_count", "instance": "10.0.0.1:8000"}
        whole["data"]["result"].append({"metric": metric, "histograms": [[NOW, {"count": "1", "sum": "1"}]]})

    (gap,) = prometheus.read(ask(recorded("window", add))).gaps

    assert gap.why == "1 native histograms were left out"


def test_one_part_that_fails_leaves_the_other() -> None:
    whole = recorded("window")

    def only_numbers(path: str, form: dict[str, str]) -> tuple[int, bytes]:
        if "_bucket" in form["query"]:
            return 503, b'{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}'
        return whole(path, form)

    raws = ask(only_numbers)

    (gap,) = prometheus.read(raws).gaps
    assert gap.why.endswith("timeout: query timed out in expression evaluation")
    assert gap.how == "ask for a shorter window with --window"
    assert pages(raws, FIRST)


def test_nothing_found_is_a_gap() -> None:
    (gap,) = prometheus.read(ask(recorded("empty"), "job=none")).gaps

    assert gap.why == 'no engine\'s series for {job="none"} in the window'


def test_a_selector_that_prometheus_refuses_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError) as caught:
        ask(recorded("refused"))

    assert "missing closing )" in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (200, b"<!doctype html><title>Grafana</title>", "a web page, not the answer of a query"),
        (502, b"<html>Bad Gateway</html>", "a web page with HTTP 502"),
        (401, b"no", "not allowed"),
        (404, b"404 page not found", "there is no Prometheus API here"),
        (200, b"", "something else, not the answer of a query"),
        (200, b'{"status":"success","data":{"resultType":"matrix"}}', "not the answer of a query"),
        (
            200,
            b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":3}]}}',
            "not the answer of a query",
        ),
        (422, b'{"status":"error","errorType":"execution","error":"too many samples"}', "execution: too many samples"),
    ],
)
def test_an_answer_that_is_none_is_a_gap(status: int, body: bytes, why: str) -> None:
    evidence = prometheus.read(ask(lambda *_: (status, body)))

    assert evidence.gaps
    assert all(why in gap.why and gap.how for gap in evidence.gaps)


def test_a_server_that_is_not_there_is_a_gap() -> None:
    raws = prometheus.capture("prom+http://127.0.0.1:9?job=x", window_s=5.0, now=NOW)

    assert all("refused" in gap.why for gap in prometheus.read(raws).gaps)


def test_a_proxy_that_allows_only_get_is_asked_with_it() -> None:
    whole = recorded("window")

    def only_get(path: str, form: dict[str, str]) -> tuple[int, bytes]:
        return whole(path, form) if path.startswith("GET") else (405, b"no")

    assert pages(ask(only_get), FIRST)


def test_access_reaches_the_server() -> None:
    with server(recorded("window")) as asked:
        access = http.Access(bearer="t", headers={"X-Scope-OrgID": "team"})
        prometheus.capture(f"prom+{asked.base}/prom/?job=x", access=access, window_s=5.0, now=NOW)

    assert {(sent["authorization"], sent["x-scope-orgid"]) for sent in asked.headers} == {("Bearer t", "team")}
    assert {sent["content-type"] for sent in asked.headers} == {"application/x-www-form-urlencoded"}


def test_no_secret_of_the_address_is_kept() -> None:
    with server(recorded("window")) as asked:
        target = asked.base.replace("http://", "prom+http://me:CANARY@")
        raws = prometheus.capture(f"{target}?job=x", window_s=5.0, now=NOW)

    assert "CANARY" not in repr(raws)


def test_without_a_selector_only_engines_names_are_asked_for() -> None:
    with server(recorded("window")) as asked:
        prometheus.capture(f"prom+{asked.base}", window_s=5.0, now=NOW)

    assert not any("process_cpu" in form["query"] or "|http_requests" in form["query"] for form in asked.forms)


@pytest.mark.parametrize(
    ("url", "base", "matchers"),
    [
        ("prom+http://p:9090", "http://p:9090", ""),
        ('prom+http://p:9090?job="vllm",namespace="x"', "http://p:9090", 'job="vllm",namespace="x"'),
        ('prom+https://p/prom/?{job=~"a|b"}', "https://p/prom", 'job=~"a|b"'),
        ("prom+http://p:9090?%7Bjob%3D%22vllm%22%7D", "http://p:9090", 'job="vllm"'),
        ("prom+http://p:9090?job=vllm, pod!~vllm-.*", "http://p:9090", 'job="vllm",pod!~"vllm-.*"'),
        ("prom+http://p:9090/api/v1/query?job='a,b'", "http://p:9090", "job='a,b'"),
        ('prom+http://p:9090?job="a?b=c&d"', "http://p:9090", 'job="a?b=c&d"'),
    ],
)
def test_targets(url: str, base: str, matchers: str) -> None:
    assert prometheus.parse(url) == prometheus.Target(base=base, matchers=matchers)


@pytest.mark.parametrize(
    "url",
    [
        "http://p:9090",
        "prom+ftp://p",
        "prom+http://p?job",
        'prom+http://p?job="a',
        "prom+http://p?{job=a",
        "prom+http://p?=a",
    ],
)
def test_targets_that_are_none(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        prometheus.parse(url)

    assert caught.value.hint


@given(
    label=st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,10}", fullmatch=True),
    value=st.text(max_size=20),
    how=st.sampled_from(["=", "!=", "=~", "!~"]),
)
def test_every_matcher_comes_through_encoded(label: str, value: str, how: str) -> None:
    quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    target = prometheus.parse(f"prom+http://p:9090?{urllib.parse.quote(f'{label}{how}{quoted}')}")

    assert target.matchers == f"{label}{how}{quoted}"


@given(selector=st.text(max_size=40))
def test_any_selector_is_read_or_refused(selector: str) -> None:
    try:
        target = prometheus.parse(f"prom+http://p:9090?{selector}")
    except UsageError:
        return
    assert prometheus.parse(f"prom+http://p:9090?{urllib.parse.quote(target.matchers)}") == target
