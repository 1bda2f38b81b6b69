"""A small load generator for the real tier: exact prompt lengths, closed or open loop, patient or impatient clients.

It is not the product's benchmark: it makes load, and counts just enough to prove that the load was made.
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

FIRST_PLAIN_TOKEN, VOCABULARY_TOKENS = 3, 4096
GENEROUS_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One kind of traffic.

    prompt_tokens    prompt length
    prefix_tokens    the first so many tokens are one of `prefixes` fixed texts, taken in turn
    output_tokens    exact answer length (the end-of-sequence token is ignored)
    concurrency      closed loop: so many clients, each sends the next request when the last one ended
    rate_per_s       open loop: requests leave at this rate whatever happens to them; 0 means closed loop
    think_s          pause of a closed-loop client between two requests
    timeout_s        the client hangs up after so long
    chat             send a chat request with a short text instead of token ids
    """

    prompt_tokens: int = 64
    prefix_tokens: int = 0
    prefixes: int = 1
    output_tokens: int = 16
    concurrency: int = 1
    rate_per_s: float = 0.0
    think_s: float = 0.0
    timeout_s: float = GENEROUS_TIMEOUT_S
    chat: bool = False


@dataclass(slots=True)
class Outcome:
    """How many requests were sent, and how they ended from the client's side."""

    sent: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


class Load:
    """Runs streams against a server in threads until the block ends; requests in flight are then hung up."""

    def __init__(self, url: str, *streams: Stream, seed: int = 0) -> None:
        address = urlsplit(url)
        self._host, self._port = address.hostname or "127.0.0.1", address.port or 80
        self._streams = streams
        self._seed = seed
        self._numbers = itertools.count()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()
        self._threads: list[threading.Thread] = []
        self.outcome = Outcome()

    def __enter__(self) -> Self:
        for stream in self._streams:
            if stream.rate_per_s:
                self._start(self._open_loop, stream)
            else:
                for _ in range(stream.concurrency):
                    self._start(self._closed_loop, stream)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        with self._lock:
            for connection in self._open:
                _hang_up(connection)
            threads = list(self._threads)
        for thread in threads:
            thread.join(10)

    def _start(self, work: Callable[[Stream], None], stream: Stream) -> None:
        thread = threading.Thread(target=work, args=(stream,), daemon=True)
        with self._lock:
            self._threads.append(thread)
        thread.start()

    def _closed_loop(self, stream: Stream) -> None:
        while not self._ended.is_set():
            self._request(stream)
            self._ended.wait(stream.think_s)

    def _open_loop(self, stream: Stream) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            self._start(self._request, stream)
            due += 1 / stream.rate_per_s

    def _request(self, stream: Stream) -> None:
        path, body = self._payload(stream, next(self._numbers))
        connection = http.client.HTTPConnection(self._host, self._port, timeout=stream.timeout_s)
        started = time.monotonic()
        with self._lock:
            self._open.add(connection)
            self.outcome.sent += 1
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            status = str(answer.status)
        except TimeoutError:
            status = "timeout"
        except (OSError, http.client.HTTPException):
            status = "ended" if self._ended.is_set() else "broken"
        connection.close()
        with self._lock:
            self._open.discard(connection)
            self.outcome.by_status[status] += 1
            self.outcome.seconds.append(time.monotonic() - started)
        if status == "broken":
            self._ended.wait(0.5)

    def _payload(self, stream: Stream, number: int) -> tuple[str, bytes]:
        fields: dict[str, object] = {"model": "tiny", "max_tokens": stream.output_tokens, "ignore_eos": True}
        if stream.chat:
            fields["messages"] = [{"role": "user", "content": f"question {number}"}]
            return "/v1/chat/completions", json.dumps(fields).encode()
        shared = random.Random(f"{self._seed}/prefix/{number % stream.prefixes}")
        own = random.Random(f"{self._seed}/{number}")
        prompt = _tokens(shared, stream.prefix_tokens) + _tokens(own, stream.prompt_tokens - stream.prefix_tokens)
        fields["prompt"] = prompt
        return "/v1/completions", json.dumps(fields).encode()


def _tokens(source: random.Random, count: int) -> list[int]:
    return source.choices(range(FIRST_PLAIN_TOKEN, VOCABULARY_TOKENS), k=count)


def _hang_up(connection: http.client.HTTPConnection) -> None:
    if connection.sock is not None:
        try:
            connection.sock.shutdown(2)
        except OSError:
            return
