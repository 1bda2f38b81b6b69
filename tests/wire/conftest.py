"""Small servers that behave as badly as the ones we meet."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

Behave = Callable[[BaseHTTPRequestHandler], None]
Serve = Callable[..., str]
Talk = Callable[[Callable[[socket.socket], None]], str]


class QuietServer(ThreadingHTTPServer):
    """Clients that hang up are part of the tests."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        del request, client_address


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts an HTTP server that answers with the given function; returns its base URL."""
    servers: list[QuietServer] = []

    def start(behave: Behave, *, tls: ssl.SSLContext | None = None) -> str:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                behave(self)

            def do_POST(self) -> None:
                behave(self)

            def log_message(self, *_: object) -> None:
                pass

        server = QuietServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def talk() -> Iterator[Talk]:
    """Starts a bare TCP server that hands the first connection to the given function; returns its base URL."""
    listeners: list[socket.socket] = []

    def start(speak: Callable[[socket.socket], None]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run() -> None:
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    speak(connection)
            except OSError:
                pass

        threading.Thread(target=run, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.close()


@pytest.fixture
def closed_port() -> str:
    """A base URL where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
