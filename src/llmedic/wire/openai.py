"""The one OpenAI call that a diagnosis makes: the shortest possible completion, to see whether tokens still come.

A green health page says that the API process lives; only a token says that the engine behind it does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import msgspec

from llmedic.errors import TargetError
from llmedic.wire import http, jsontext

_PATHS = ("/v1/completions", "/v1/chat/completions")
_ABSENT = (404, 405, 501)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """How one short request went.

    status   HTTP status, 0 when no answer came
    error    why there is no token, in one line; hint: what to try
    """

    status: int
    elapsed_s: float
    path: str = ""
    error: str = ""
    hint: str = ""


class _Card(msgspec.Struct):
    id: str = ""


class _Cards(msgspec.Struct):
    data: list[_Card] = []


def first_model(body: bytes) -> str:
    """The first served model in an answer of /v1/models; "" when it is not one."""
    try:
        cards = msgspec.json.decode(body, type=_Cards).data
    except jsontext.NOT_READABLE:
        return ""
    return cards[0].id if cards else ""


def probe(base_url: str, access: http.Access = http.ANONYMOUS, *, model: str = "", deadline_s: float = 10.0) -> Probe:
    """Ask for one token, with a plain completion, or a chat where there is none; never raises for the server.

    model: "" asks /v1/models first. deadline_s bounds all of it.
    """
    started = time.monotonic()
    left_s = deadline_s
    if not model:
        try:
            models = http.get(f"{base_url}/v1/models", access, deadline_s=left_s)
        except TargetError as error:
            elapsed_s = time.monotonic() - started
            return Probe(status=0, elapsed_s=elapsed_s, path="/v1/models", error=error.message, hint=error.hint)
        left_s -= models.elapsed_s
        model = first_model(models.body)
    answer = Probe(status=0, elapsed_s=deadline_s, error="no time left for a request")
    for path in _PATHS:
        answer = _ask(base_url, path, access, model, left_s)
        left_s -= answer.elapsed_s
        if answer.status not in _ABSENT or left_s <= 0:
            break
    return answer


def probe_chat(base_url: str, access: http.Access, *, model: str, deadline_s: float) -> Probe:
    """Ask for one token of a chat: a server that completes text may still refuse every chat (no template)."""
    return _ask(base_url, _PATHS[1], access, model, deadline_s)


def _ask(base_url: str, path: str, access: http.Access, model: str, deadline_s: float) -> Probe:
    started = time.monotonic()
    question: dict[str, object] = {"model": model or "default", "max_tokens": 1, "temperature": 0}
    if path.endswith("/chat/completions"):
        question["messages"] = [{"role": "user", "content": "Hi"}]
    else:
        question["prompt"] = "Hi"
    try:
        answer = http.post(base_url + path, access, content=msgspec.json.encode(question), deadline_s=deadline_s)
    except TargetError as error:
        elapsed_s = time.monotonic() - started
        return Probe(status=0, elapsed_s=elapsed_s, path=path, error=error.message, hint=error.hint)
    error_line = ""
    if answer.status != 200:
        error_line = f"HTTP {answer.status}: " + " ".join(answer.body[:200].decode("utf-8", "replace").split())
    elif b'"choices"' not in answer.body:
        error_line = "the answer holds no completion"
    return Probe(status=answer.status, elapsed_s=answer.elapsed_s, path=path, error=error_line)
