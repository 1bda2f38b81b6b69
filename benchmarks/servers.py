"""Metrics pages over HTTP from a process of their own, so that serving does not share our interpreter's lock."""

from __future__ import annotations

import contextlib
import http.server
import multiprocessing
import multiprocessing.connection
import threading
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[1] / "tests" / "collect" / "engine" / "data"


def page(extra_series: int) -> bytes:
    """A recorded vLLM page, filled up to so many series with a histogram nobody asks for."""
    recorded = sorted(PAGE.glob("*.prom"))[-1].read_bytes()
    missing = max(0, extra_series - sum(not line.startswith(b"#") for line in recorded.splitlines()))
    return recorded + b"".join(
        b'vllm:other_bucket{engine="0",le="%d",model_name="tiny"} 7.0\n' % n for n in range(missing)
    )


def _handler(body: bytes) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/metrics" or self.path == "/health"
            content = body if self.path == "/metrics" else b""
            self.send_response(200 if found else 404)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _serve(count: int, extra_series: int, ports: multiprocessing.connection.Connection) -> None:
    handler = _handler(page(extra_series))
    found = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) for _ in range(count)]
    for server in found:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    ports.send([server.server_address[1] for server in found])
    threading.Event().wait()


@contextlib.contextmanager
def pages(*, count: int, extra_series: int) -> Iterator[list[str]]:
    """URLs of `count` servers that show the page; they end with the block."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(count, extra_series, there), daemon=True)
    process.start()
    try:
        yield [f"http://127.0.0.1:{port}" for port in here.recv()]
    finally:
        process.terminate()
        process.join()
