from __future__ import annotations

import gzip
import json
import ssl
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trustme

from llmedic.collect import engine
from llmedic.errors import InputError, UsageError
from llmedic.model.evidence import Evidence, Gap
from llmedic.model.observation import Quantiles, Series
from llmedic.model.raw import Raw
from llmedic.wire.http import Access

WINDOW_S = 1.0


def page(tokens: int, running: int = 2, start: float = 1000.0) -> bytes:
    return f"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} {running}
vllm:num_requests_waiting{{engine="0",model_name="m"}} 1
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.5
vllm:generation_tokens_total{{engine="0",model_name="m"}} {tokens}
vllm:request_success_total{{engine="0",finished_reason="stop",model_name="m"}} {tokens // 10}
process_start_time_seconds {start}
""".encode()


def vllm(reply: Any, **more: Any) -> dict[str, Any]:
    cards = {"data": [{"id": "m", "root": "org/m", "owned_by": "vllm", "max_model_len": 4096}]}
    return {
        "/metrics": lambda before: reply(body=page(100 * before)),
        "/health": reply(),
        "/v1/models": reply(body=json.dumps(cards).encode()),
        "/version": reply(body=b'{"version":"0.33.0"}'),
        **more,
    }


def seen(raws: Sequence[Raw]) -> Evidence:
    return engine.read(raws)


def value(evidence: Evidence, name: str, instance: str = "", period: str = "window") -> Any:
    found = [o.value for o in evidence.observations if (o.name, o.instance, o.period) == (name, instance, period)]
    assert len(found) == 1, f"{name} {len(found)} times"
    return found[0]


def has(evidence: Evidence, name: str) -> bool:
    return any(o.name == name for o in evidence.observations)


def only_gap(evidence: Evidence) -> Gap:
    assert len(evidence.gaps) == 1, evidence.gaps
    return evidence.gaps[0]


def test_a_healthy_server(start_engine: Any, reply: Any) -> None:
    server = start_engine(vllm(reply))
    raws = engine.capture([server.url + "/metrics"], window_s=WINDOW_S)
    evidence = seen(raws)
    assert evidence.gaps == ()
    assert (evidence.deployment.engine, evidence.deployment.version) == ("vllm", "0.33.0")
    assert evidence.deployment.model.name == "org/m"
    assert [(flag.name, flag.value) for flag in evidence.deployment.flags] == [("max_model_len", 4096.0)]
    assert value(evidence, "api_health_status") == 200
    scrapes = server.asked["/metrics"]
    assert scrapes >= 2
    assert value(evidence, "output_tokens_count") == 100 * (scrapes - 1)
    running = value(evidence, "requests_running")
    assert isinstance(running, Series)
    assert len(running.points) == scrapes
    assert {raw.target for raw in raws} == {server.url}


def test_only_gauges_are_kept_between_the_ends(start_engine: Any, reply: Any) -> None:
    raws = engine.capture([start_engine(vllm(reply)).url], window_s=1.6)
    between = [raw.body for raw in raws if raw.kind == "gauges"]
    assert between
    for body in between:
        assert b"num_requests_running" in body
        assert b"generation_tokens" not in body


def test_one_look_gives_lifetime_values(start_engine: Any, reply: Any) -> None:
    server = start_engine(vllm(reply, **{"/metrics": reply(body=page(500))}))
    evidence = seen(engine.capture([server.url], window_s=0))
    assert server.asked["/metrics"] == 1
    assert value(evidence, "output_tokens_count", period="lifetime") == 500
    assert not any(o.name == "output_tokens_per_s" for o in evidence.observations)
    assert "only one page" in only_gap(evidence).why


def test_nobody_listens(unused_url: str) -> None:
    raws = engine.capture([unused_url], window_s=0.3)
    assert all(raw.error and raw.hint for raw in raws)
    gap = only_gap(seen(raws))
    assert gap.what == unused_url
    assert "refused" in gap.why
    assert gap.how
    assert seen(raws).observations == ()


def test_a_server_that_hangs(start_engine: Any, reply: Any) -> None:
    stuck = reply(hang=True)
    paths = dict.fromkeys(("/metrics", "/health", "/v1/models", "/version"), stuck)
    raws = engine.capture([start_engine(paths).url], window_s=0.4, deadline_s=0.8)
    evidence = seen(raws)
    assert "no complete answer" in evidence.gaps[0].why


def test_metrics_hang_while_health_is_green(start_engine: Any, reply: Any) -> None:
    server = start_engine(vllm(reply, **{"/metrics": reply(hang=True)}))
    evidence = seen(engine.capture([server.url], window_s=0.4, deadline_s=0.8))
    assert value(evidence, "api_health_status") == 200
    gap = only_gap(evidence)
    assert gap.what.endswith("/metrics")
    assert "requests_running" in gap.names


def test_a_green_health_page_over_a_dead_engine(start_engine: Any, reply: Any) -> None:
    paths = {"/metrics": reply(body=page(100)), "/v1/completions": reply(hang=True)}
    evidence = seen(engine.capture([start_engine(vllm(reply, **paths)).url], window_s=0.6, probe=True, deadline_s=2))
    assert value(evidence, "api_health_status") == 200
    assert value(evidence, "probe_status") == 0
    assert value(evidence, "output_tokens_count") == 0
    assert any(gap.what.endswith("probe") for gap in evidence.gaps)


def test_the_probe_asks_for_one_token(start_engine: Any, reply: Any) -> None:
    server = start_engine(vllm(reply, **{"/v1/completions": reply(body=b'{"choices":[{"text":"x"}]}')}))
    evidence = seen(engine.capture([server.url], window_s=0.6, probe=True))
    assert value(evidence, "probe_status") == 200
    assert value(evidence, "probe_s") > 0
    assert server.asked["/v1/completions"] == 1


def test_a_server_that_completes_and_refuses_every_chat(start_engine: Any, reply: Any) -> None:
    refusal = reply(status=400, body=b'{"message": "no chat template"}')
    works = reply(body=b'{"choices":[{"text":"x"}]}')
    server = start_engine(vllm(reply, **{"/v1/completions": works, "/v1/chat/completions": refusal}))
    evidence = seen(engine.capture([server.url], window_s=0.6, probe=True))
    assert value(evidence, "probe_status") == 200
    assert value(evidence, "probe_chat_status") == 400


def test_the_first_page_fails_and_a_later_one_works(start_engine: Any, reply: Any) -> None:
    def metrics(before: int) -> Any:
        return reply(status=503, body=b"starting") if before == 0 else reply(body=page(100 * before))

    server = start_engine(vllm(reply, **{"/metrics": metrics}))
    evidence = seen(engine.capture([server.url], window_s=1.6))
    assert value(evidence, "output_tokens_count") == 100 * (server.asked["/metrics"] - 2)
    assert any("not ready" in gap.why for gap in evidence.gaps)


def test_only_the_last_page_fails(start_engine: Any, reply: Any) -> None:
    def metrics(before: int) -> Any:
        return reply(body=page(700)) if before == 0 else reply(status=500)

    server = start_engine(vllm(reply, **{"/metrics": metrics}))
    evidence = seen(engine.capture([server.url], window_s=0.4))
    assert value(evidence, "output_tokens_count", period="lifetime") == 700
    assert not any(o.name == "output_tokens_count" and o.period == "window" for o in evidence.observations)
    assert any("HTTP 500" in gap.why for gap in evidence.gaps)


REFUSALS: list[tuple[str, dict[str, Any], str, str]] = [
    ("web page", {"body": b"<!DOCTYPE html><html>hi</html>"}, "web page", "engine's port"),
    ("html by type", {"body": b"hi", "headers": {"Content-Type": "text/html"}}, "web page", "engine's port"),
    ("proxy page", {"status": 502, "body": b"<html><h1>502 Bad Gateway</h1></html>"}, "proxy", "own address"),
    ("token", {"status": 401, "body": b"{}"}, "401", "--bearer-env"),
    ("forbidden", {"status": 403}, "403", "--bearer-env"),
    ("empty", {"body": b""}, "empty", "starting"),
    ("llama.cpp", {"status": 501, "body": b"{}"}, "switched off", "--metrics"),
    ("none", {"status": 404}, "404", "--enable-metrics"),
    ("binary", {"body": b"\x7fELF\0\1\2\3" * 20}, "binary", ""),
    ("json", {"body": b'{"detail": "x"}\n'}, "not Prometheus text", ""),
    ("cut", {"body": gzip.compress(page(1) * 50)[:-20], "headers": {"Content-Encoding": "gzip"}}, "cut short", ""),
]


@pytest.mark.parametrize(("answer", "why", "how"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
def test_what_is_not_a_metrics_page(start_engine: Any, reply: Any, answer: Any, why: str, how: str) -> None:
    server = start_engine({"/health": reply(), "/metrics": reply(**answer)})
    evidence = seen(engine.capture([server.url], window_s=0.2))
    assert not has(evidence, "requests_running")
    gap = evidence.gaps[0]
    assert gap.what == f"{server.url}/metrics"
    assert why in gap.why
    assert how in gap.how
    assert "\n" not in gap.why + gap.how


def test_sglang_without_its_metrics_is_told_how_to_switch_them_on(start_engine: Any, reply: Any) -> None:
    info = {
        "model_path": "org/m",
        "version": "0.5.23",
        "max_running_requests": 64,
        "chunked_prefill_size": 8192,
        "api_key": "s3cret",
    }
    server = start_engine({"/health": reply(), "/get_server_info": reply(body=json.dumps(info).encode())})
    raws = engine.capture([server.url], window_s=0.2)
    assert not any(b"s3cret" in raw.body for raw in raws)
    evidence = seen(raws)
    assert evidence.deployment.engine == "sglang"
    assert evidence.deployment.version == "0.5.23"
    flags = {flag.name: (flag.value, flag.spelled) for flag in evidence.deployment.flags}
    assert flags["max_num_seqs"] == (64.0, "--max-running-requests")
    assert only_gap(evidence).how == "start SGLang with --enable-metrics"


def test_llama_cpp_without_metrics_still_tells_its_slots(start_engine: Any, reply: Any) -> None:
    slots = [{"id": n, "n_ctx": 8192, "is_processing": n < 3, "prompt": "my secret question"} for n in range(4)]
    props = {"total_slots": 4, "default_generation_settings": {"n_ctx": 8192}, "build_info": "b8681"}
    server = start_engine(
        {
            "/health": reply(),
            "/metrics": reply(status=501, body=b"{}"),
            "/props": reply(body=json.dumps(props).encode()),
            "/slots": reply(body=json.dumps(slots).encode()),
        }
    )
    raws = engine.capture([server.url], window_s=0.2)
    assert not any(b"secret" in raw.body for raw in raws)
    evidence = seen(raws)
    assert (evidence.deployment.engine, evidence.deployment.version) == ("llama.cpp", "b8681")
    assert value(evidence, "requests_running") == 3
    assert value(evidence, "context_per_slot_tokens") == 8192
    assert only_gap(evidence).how == "start llama-server with --metrics"


def test_ollama(start_engine: Any, reply: Any) -> None:
    server = start_engine(
        {
            "/api/version": reply(body=b'{"version":"0.13.1"}'),
            "/api/ps": reply(body=b'{"models":[{"name":"qwen3:8b","context_length":4096}]}'),
            "/api/tags": reply(body=b'{"models":[]}'),
        }
    )
    evidence = seen(engine.capture([server.url], window_s=0.2))
    assert (evidence.deployment.engine, evidence.deployment.version) == ("ollama", "0.13.1")
    assert evidence.deployment.model.name == "qwen3:8b"
    assert any("no metrics page" in gap.how for gap in evidence.gaps)


def test_tgi(start_engine: Any, reply: Any) -> None:
    server = start_engine(
        {
            "/health": reply(),
            "/metrics": lambda before: reply(body=b"tgi_queue_size 4\ntgi_request_count %d\n" % (10 * before)),
            "/info": reply(body=b'{"model_id":"org/m","version":"3.3.7","max_concurrent_requests":128}'),
        }
    )
    evidence = seen(engine.capture([server.url], window_s=0.2))
    assert (evidence.deployment.engine, evidence.deployment.version) == ("tgi", "3.3.7")
    assert value(evidence, "request_rate_per_s") > 0


def test_a_wrong_and_a_right_token(start_engine: Any, reply: Any) -> None:
    server = start_engine(vllm(reply))
    engine.capture([server.url], access=Access(bearer="right"), window_s=0.2)
    assert server.tokens == {"Bearer right"}


def test_credentials_of_the_url_are_not_kept(start_engine: Any, reply: Any) -> None:
    server = start_engine(vllm(reply))
    raws = engine.capture([server.url.replace("http://", "http://me:s3cret@")], window_s=0.2)
    assert "s3cret" not in repr(raws)
    assert server.tokens == {"Basic bWU6czNjcmV0"}


def test_a_certificate_that_is_not_trusted(start_engine: Any, reply: Any, tmp_path: Any) -> None:
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    server = start_engine(vllm(reply), tls)
    gap = only_gap(seen(engine.capture([server.url], window_s=0.2)))
    assert "certificate not accepted" in gap.why
    assert "--cacert" in gap.how
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    trusting = Access(cacert=str(tmp_path / "ca.pem"))
    assert seen(engine.capture([server.url], access=trusting, window_s=0.2)).gaps == ()


def test_mistakes_of_the_caller_are_raised(tmp_path: Any) -> None:
    with pytest.raises(UsageError):
        engine.capture(["host:8000"], window_s=0.1)
    with pytest.raises(InputError):
        engine.capture(["http://h"], access=Access(cacert=str(tmp_path / "none.pem")), window_s=0.1)


def test_a_page_of_a_hundred_thousand_series(start_engine: Any, reply: Any) -> None:
    many = b"".join(b'vllm:lora_requests_info{running_lora_adapters="%d"} 1.0\n' % n for n in range(100_000))
    server = start_engine(vllm(reply, **{"/metrics": lambda before: reply(body=many + page(100 * before))}))
    evidence = seen(engine.capture([server.url], window_s=1.0, deadline_s=30))
    assert evidence.gaps == ()
    assert value(evidence, "output_tokens_count") == 100 * (server.asked["/metrics"] - 1)


def test_one_dead_replica_does_not_hide_the_others(start_engine: Any, reply: Any, unused_url: str) -> None:
    first, second = start_engine(vllm(reply)), start_engine(vllm(reply))
    evidence = seen(engine.capture([first.url, unused_url, second.url], window_s=WINDOW_S))
    assert only_gap(evidence).what == unused_url
    total = value(evidence, "output_tokens_count")
    assert total == value(evidence, "output_tokens_count", first.name) + value(
        evidence, "output_tokens_count", second.name
    )


def test_fifty_replicas_share_one_window(start_engine: Any, reply: Any) -> None:
    servers = [start_engine(vllm(reply)) for _ in range(50)]
    raws = engine.capture([server.url for server in servers], window_s=2.0, deadline_s=60)
    assert len({raw.meta["begun"] for raw in raws if raw.kind == "metrics"}) == 1
    evidence = seen(raws)
    assert len({o.instance for o in evidence.observations if o.name == "requests_running"}) == 51
    running = value(evidence, "requests_running")
    assert [count for _, count in running.points] == [100.0] * len(running.points)


def test_the_recorded_vllm(start_engine: Any, reply: Any, recorded: Callable[[str], bytes]) -> None:
    pages = [recorded("vllm-0.32.0-first.prom"), recorded("vllm-0.32.0-last.prom")]
    server = start_engine(
        {
            "/health": reply(),
            "/metrics": lambda before: reply(body=pages[min(before, 1)]),
            "/v1/models": reply(body=recorded("vllm-0.32.0-models.json")),
            "/version": reply(body=recorded("vllm-0.32.0-version.json")),
        }
    )
    evidence = seen(engine.capture([server.url], window_s=0.3))
    assert (evidence.deployment.engine, evidence.deployment.version) == ("vllm", "0.32.0")
    assert isinstance(value(evidence, "ttft_s"), Quantiles)
    assert value(evidence, "kv_cache_tokens") == 65536
    assert evidence.gaps == ()
