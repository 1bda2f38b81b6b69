from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from llmedic.errors import AnswerError, InputError, UnreachableError, UsageError
from llmedic.wire import http


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def echo(handler: BaseHTTPRequestHandler) -> None:
    length = int(handler.headers.get("Content-Length") or 0)
    told = {
        "path": handler.path,
        "headers": {name.lower(): value for name, value in handler.headers.items()},
        "body": handler.rfile.read(length).decode(),
    }
    send(handler, json.dumps(told).encode(), Content_Type="application/json; charset=utf-8")


def told(answer: http.Answer) -> Any:
    return json.loads(answer.body)


def test_get_sends_the_headers_and_returns_the_answer(serve: Any) -> None:
    access = http.Access(headers={"X-Team": "a"}, bearer="s3cret")
    answer = http.get(serve(echo) + "/metrics?x=1", access)
    assert answer.status == 200
    assert answer.content_type == "application/json"
    assert answer.elapsed_s > 0
    assert told(answer)["path"] == "/metrics?x=1"
    sent = told(answer)["headers"]
    assert (sent["authorization"], sent["x-team"]) == ("Bearer s3cret", "a")


def test_post_sends_json(serve: Any) -> None:
    answer = told(http.post(serve(echo) + "/v1/completions", content=b'{"a": 1}'))
    assert answer["body"] == '{"a": 1}'
    assert answer["headers"]["content-type"] == "application/json"


def test_any_status_is_an_answer(serve: Any) -> None:
    url = serve(lambda handler: send(handler, b"<html>Bad Gateway</html>", 502))
    assert http.get(url).status == 502


def test_user_and_password_of_a_url_become_basic_authentication(serve: Any) -> None:
    url = serve(echo).replace("http://", "http://me:p%40ss@")
    assert told(http.get(url))["headers"]["authorization"] == "Basic bWU6cEBzcw=="


def test_secrets_are_in_no_text() -> None:
    access = http.Access(bearer="s3cret", headers={"Authorization": "Bearer s3cret"})
    assert "s3cret" not in repr(access)
    assert http.shown("http://me:s3cret@h\u2100:1/p?api_key=s3cret") == "http://h\u2100:1/p"
    assert http.shown("http://me:s3cret@h:1/p?api_key=s3cret&x=1#s3cret") == "http://h:1/p?api_key=REDACTED&x=1"


@given(st.text("abcXYZ019", min_size=8, max_size=12))
def test_a_password_is_never_shown(password: str) -> None:
    shown = http.shown(f"https://user:{password}@host:8000/metrics?access_token={password}")
    assert password not in shown


def test_refused(closed_port: str) -> None:
    with pytest.raises(UnreachableError, match="connection refused") as caught:
        http.get(closed_port + "/metrics")
    assert closed_port in caught.value.message
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(UnreachableError, match=r"does not resolve|no complete answer"):
        http.get("http://no-such-host.invalid/metrics", deadline_s=5)


def stall(connection: socket.socket, *pieces: bytes) -> None:
    """Send piece after piece, slowly and for ever."""
    while True:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.05)


def test_a_server_that_never_answers_ends_at_the_deadline(talk: Any) -> None:
    over = threading.Event()
    url = talk(lambda connection: over.wait(30))
    with pytest.raises(UnreachableError, match=r"within 0\.2 s"):
        http.get(url, deadline_s=0.2)
    over.set()


def test_a_dripping_body_ends_at_the_deadline(talk: Any) -> None:
    def speak(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        stall(connection, b"x")

    with pytest.raises(UnreachableError, match="no complete answer"):
        http.get(talk(speak), deadline_s=0.3)


def test_dripping_chunks_end_at_the_deadline(talk: Any) -> None:
    def speak(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        stall(connection, b"1\r\nx\r\n")

    with pytest.raises(UnreachableError, match="no complete answer"):
        http.get(talk(speak), deadline_s=0.3)


def test_dripping_headers_end_at_the_deadline_and_free_the_connection(talk: Any) -> None:
    hung_up = threading.Event()

    def speak(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        try:
            stall(connection, b"X")
        except OSError:
            hung_up.set()

    with pytest.raises(UnreachableError, match="no complete answer"):
        http.get(talk(speak), deadline_s=0.3)
    assert hung_up.wait(10)


@pytest.mark.parametrize(
    "written",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\nonly this",
    ],
)
def test_an_answer_that_breaks_off(talk: Any, written: bytes) -> None:
    with pytest.raises(AnswerError, match="cut short"):
        http.get(talk(lambda connection: connection.sendall(written)))


@pytest.mark.parametrize("written", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\x15\x03\x03\x00\x02\x02\x28", b"\0\1\2\3\r\n\r\n"])
def test_what_is_not_http(talk: Any, written: bytes) -> None:
    with pytest.raises(AnswerError, match="not HTTP"):
        http.get(talk(lambda connection: connection.sendall(written)))


def test_a_connection_closed_without_an_answer(talk: Any) -> None:
    with pytest.raises(UnreachableError, match="closed without an answer"):
        http.get(talk(lambda connection: None))


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"up 1\n")),
        ("gzip", gzip.compress(b"up") + gzip.compress(b" 1\n")),
        ("deflate", zlib.compress(b"up 1\n")),
        ("identity", b"up 1\n"),
    ],
)
def test_compressed_answers(serve: Any, encoding: str, packed: bytes) -> None:
    url = serve(lambda handler: send(handler, packed, Content_Encoding=encoding))
    assert http.get(url).body == b"up 1\n"


def test_truncated_gzip(serve: Any) -> None:
    packed = gzip.compress(b"up 1\n" * 1000)[:-12]
    url = serve(lambda handler: send(handler, packed, Content_Encoding="gzip"))
    with pytest.raises(AnswerError, match="compressed answer was cut short"):
        http.get(url)


def test_gzip_that_is_not(serve: Any) -> None:
    url = serve(lambda handler: send(handler, b"up 1\n", Content_Encoding="gzip"))
    with pytest.raises(AnswerError, match="says gzip but is not"):
        http.get(url)


def test_an_encoding_nobody_asked_for(serve: Any) -> None:
    url = serve(lambda handler: send(handler, b"?", Content_Encoding="br"))
    with pytest.raises(AnswerError, match="'br'"):
        http.get(url)


def test_a_gzip_bomb_is_stopped(serve: Any) -> None:
    packed = gzip.compress(bytes(50 << 20))
    url = serve(lambda handler: send(handler, packed, Content_Encoding="gzip"))
    with pytest.raises(AnswerError, match="larger than 1 MiB"):
        http.get(url, max_bytes=1 << 20)


def test_too_large(serve: Any) -> None:
    url = serve(lambda handler: send(handler, bytes(2 << 20)))
    with pytest.raises(AnswerError, match="larger than 1 MiB"):
        http.get(url, max_bytes=1 << 20)
    assert len(http.get(url, max_bytes=2 << 20).body) == 2 << 20


def test_a_page_of_a_hundred_thousand_series_passes(serve: Any) -> None:
    page = b"".join(b'vllm:request_success_total{engine="0",n="%d"} 1.0\n' % n for n in range(100_000))
    assert http.get(serve(lambda handler: send(handler, page))).body == page


def test_redirects_within_the_host_are_followed(serve: Any) -> None:
    def behave(handler: BaseHTTPRequestHandler) -> None:
        if handler.path == "/metrics":
            send(handler, b"", 307, Location="/metrics/")
        else:
            echo(handler)

    access = http.Access(bearer="s3cret")
    answer = told(http.get(serve(behave) + "/metrics", access))
    assert answer["path"] == "/metrics/"
    assert answer["headers"]["authorization"] == "Bearer s3cret"


def test_a_redirect_to_another_host_is_not_followed(serve: Any) -> None:
    url = serve(lambda handler: send(handler, b"", 302, Location="http://elsewhere.invalid/login?token=abc"))
    with pytest.raises(AnswerError, match="redirects to") as caught:
        http.get(url, http.Access(bearer="s3cret"))
    assert caught.value.status == 302
    assert "abc" not in caught.value.message


@pytest.mark.parametrize("location", ["ftp://x/", "http://[::1", "http://h:99999999/", "http://u:s3cret@h\u2100/"])
def test_a_redirect_to_no_url_is_the_servers_fault(serve: Any, location: str) -> None:
    url = serve(lambda handler: send(handler, b"", 302, Location=location.encode("utf-8").decode("latin-1")))
    with pytest.raises(AnswerError, match="redirects to") as caught:
        http.get(url)
    assert caught.value.status == 302
    assert "s3cret" not in caught.value.message + caught.value.hint


def test_redirects_in_a_circle_end(serve: Any) -> None:
    url = serve(lambda handler: send(handler, b"", 302, Location=handler.path))
    with pytest.raises(AnswerError, match="circle"):
        http.get(url)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://h/x", "http://", "http://h:99999999/", "", "http://[::1"])
def test_what_is_not_a_url_is_the_callers_mistake(url: str) -> None:
    with pytest.raises(UsageError):
        http.get(url)
    with pytest.raises(UsageError):
        http.check(url, http.ANONYMOUS)


def test_a_header_with_a_line_break_is_refused(closed_port: str) -> None:
    with pytest.raises(UsageError, match="line break"):
        http.get(closed_port, http.Access(headers={"X": "a\r\nHost: b"}))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def cacert(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


def server_tls(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def test_tls_with_our_own_authority(serve: Any, authority: trustme.CA, cacert: str) -> None:
    url = serve(echo, tls=server_tls(authority, "127.0.0.1"))
    assert http.get(url, http.Access(cacert=cacert)).status == 200


def test_an_unknown_authority_is_refused(serve: Any, authority: trustme.CA) -> None:
    url = serve(echo, tls=server_tls(authority, "127.0.0.1"))
    with pytest.raises(UnreachableError, match="certificate not accepted") as caught:
        http.get(url)
    assert "--cacert" in caught.value.hint


def test_a_certificate_for_another_name_is_refused(serve: Any, authority: trustme.CA, cacert: str) -> None:
    url = serve(echo, tls=server_tls(authority, "other.example"))
    with pytest.raises(UnreachableError, match="certificate not accepted") as caught:
        http.get(url, http.Access(cacert=cacert))
    assert "name" in caught.value.hint


def test_https_to_a_plain_port(serve: Any) -> None:
    with pytest.raises(UnreachableError, match="does not speak TLS") as caught:
        http.get(serve(echo).replace("http://", "https://"))
    assert "http://" in caught.value.hint


def test_a_client_certificate_is_shown(serve: Any, authority: trustme.CA, cacert: str, tmp_path: Path) -> None:
    tls = server_tls(authority, "127.0.0.1")
    tls.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(tls)
    url = serve(echo, tls=tls)
    mine = authority.issue_cert("me.example")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    mine.cert_chain_pems[0].write_to_path(cert)
    mine.private_key_pem.write_to_path(key)
    assert http.get(url, http.Access(cacert=cacert, cert=str(cert), key=str(key))).status == 200
    with pytest.raises(UnreachableError):
        http.get(url, http.Access(cacert=cacert))


def test_certificate_files_that_are_not(tmp_path: Path, closed_port: str) -> None:
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("not a certificate")
    for access in (
        http.Access(cacert=str(tmp_path / "missing.pem")),
        http.Access(cacert=str(rubbish)),
        http.Access(cert=str(rubbish)),
    ):
        with pytest.raises(InputError):
            http.check(closed_port, access)
    with pytest.raises(UsageError, match="--cert"):
        http.check(closed_port, http.Access(key=str(rubbish)))


def test_the_proxy_of_the_environment_is_used(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = serve(echo).replace("http://", "http://me:secret@")
    monkeypatch.setenv("HTTP_PROXY", proxy)
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    answer = told(http.get("http://engine.invalid:8000/metrics"))
    assert answer["path"] == "http://engine.invalid:8000/metrics"
    assert answer["headers"]["proxy-authorization"].startswith("Basic ")


@pytest.mark.parametrize("proxy", ["http://me:secret@[::1", "http://h:99999999", "socks5://me:secret@h:1", "http://"])
def test_a_proxy_that_is_none_is_the_callers_mistake(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, proxy)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="proxy") as caught:
        http.check("http://engine.invalid:8000", http.ANONYMOUS)
    assert "secret" not in caught.value.message
    assert caught.value.hint


def test_no_proxy_and_loopback_go_straight(serve: Any, closed_port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, closed_port)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "engine.invalid")
    assert told(http.get(serve(echo) + "/x"))["path"] == "/x"
    with pytest.raises(UnreachableError, match=r"does not resolve|no complete answer"):
        http.get("http://engine.invalid:8000/", deadline_s=5)
    with pytest.raises(UnreachableError, match="the proxy failed"):
        http.get("http://other.invalid:8000/", deadline_s=5)
