from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from llmedic.wire import http, openai

MODELS = b'{"object":"list","data":[{"id":"tiny"},{"id":"other"}]}'
TOKEN = b'{"choices":[{"text":" x","message":{"content":"x"}}]}'


class Engine:
    """Answers by path and keeps what it was asked."""

    def __init__(self, **replies: tuple[int, bytes]) -> None:
        self.replies = {
            "/v1/models": (200, MODELS),
            **{path.replace("__", "/"): reply for path, reply in replies.items()},
        }
        self.asked: list[tuple[str, Any]] = []

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        self.asked.append((handler.path, json.loads(handler.rfile.read(length) or b"{}")))
        status, body = self.replies.get(handler.path, (404, b"{}"))
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


def test_one_token_of_the_first_model(serve: Any) -> None:
    engine = Engine(__v1__completions=(200, TOKEN))
    probe = openai.probe(serve(engine))
    assert (probe.status, probe.path, probe.error) == (200, "/v1/completions", "")
    assert probe.elapsed_s > 0
    path, question = engine.asked[-1]
    assert path == "/v1/completions"
    assert (question["model"], question["max_tokens"]) == ("tiny", 1)


def test_a_server_that_only_chats(serve: Any) -> None:
    engine = Engine(**{"__v1__chat__completions": (200, TOKEN)})
    probe = openai.probe(serve(engine), model="mine")
    assert (probe.status, probe.path) == (200, "/v1/chat/completions")
    assert [path for path, _ in engine.asked] == ["/v1/completions", "/v1/chat/completions"]
    assert engine.asked[-1][1]["messages"][0]["role"] == "user"
    assert engine.asked[-1][1]["model"] == "mine"


@pytest.mark.parametrize(("status", "body"), [(500, b'{"error":"EngineDeadError"}'), (429, b"busy\nnow")])
def test_a_refusal_is_told_with_its_first_words(serve: Any, status: int, body: bytes) -> None:
    probe = openai.probe(serve(Engine(__v1__completions=(status, body))))
    assert probe.status == status
    assert probe.error.startswith(f"HTTP {status}: ")
    assert "\n" not in probe.error


def test_two_hundred_without_a_completion_is_no_token(serve: Any) -> None:
    assert openai.probe(serve(Engine(__v1__completions=(200, b"<html>")))).error


def test_an_engine_that_takes_the_request_and_says_nothing(serve: Any) -> None:
    over = threading.Event()

    def behave(handler: BaseHTTPRequestHandler) -> None:
        del handler
        over.wait(30)

    probe = openai.probe(serve(behave), model="m", deadline_s=0.3)
    over.set()
    assert probe.status == 0
    assert "no complete answer" in probe.error


def test_nobody_there(closed_port: str) -> None:
    probe = openai.probe(closed_port, http.ANONYMOUS)
    assert (probe.status, probe.path) == (0, "/v1/models")
    assert "refused" in probe.error
    assert probe.hint


@pytest.mark.parametrize(
    ("body", "model"),
    [(MODELS, "tiny"), (b"{}", ""), (b"<html>", ""), (b'{"data":[]}', ""), (b'{"data":3}', ""), (b"[" * 100_000, "")],
)
def test_the_first_model(body: bytes, model: str) -> None:
    assert openai.first_model(body) == model
