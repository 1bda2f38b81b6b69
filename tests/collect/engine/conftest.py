"""An engine's HTTP side, as well or as sick as a test wants it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What one path answers; `hang` keeps the client waiting until the test is over."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False


Paths = Mapping[str, Reply | Callable[[int], Reply]]
"""Path -> reply, or a function of how often the path was asked before."""


class FakeEngine:
    """An HTTP server that answers from a table and counts the requests of each path."""

    def __init__(self, paths: Paths, tls: ssl.SSLContext | None = None) -> None:
        self.asked: dict[str, int] = {}
        self.tokens: set[str] = set()
        self._paths = paths
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._server = _QuietServer(("127.0.0.1", 0), self._handler())
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.name = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"{'https' if tls else 'http'}://{self.name}"

    def close(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                engine.answer(self)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                engine.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        with self._lock:
            before = self.asked.get(path, 0)
            self.asked[path] = before + 1
            self.tokens.add(handler.headers.get("Authorization", ""))
        found = self._paths.get(path, Reply(status=404, body=b'{"detail":"Not Found"}'))
        reply = found if isinstance(found, Reply) else found(before)
        if reply.hang:
            self._over.wait(60)
            return
        handler.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(reply.body)


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        del request, client_address  # a client that hangs up is part of the tests


StartEngine = Callable[..., FakeEngine]


@pytest.fixture
def start_engine() -> Iterator[StartEngine]:
    """Starts an engine that answers from a table of paths."""
    engines: list[FakeEngine] = []

    def start(paths: Paths, tls: ssl.SSLContext | None = None) -> FakeEngine:
        engines.append(FakeEngine(paths, tls))
        return engines[-1]

    yield start
    for engine in engines:
        engine.close()


@pytest.fixture
def reply() -> type[Reply]:
    return Reply


@pytest.fixture
def recorded() -> Callable[[str], bytes]:
    """A file recorded from a real server."""
    return lambda name: (DATA / name).read_bytes()


@pytest.fixture
def unused_url() -> str:
    """A base URL where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
