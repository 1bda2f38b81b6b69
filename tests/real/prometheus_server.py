"""A real Prometheus on loopback that scrapes pages made up here, and guarantees that nothing of it is left behind."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

START_TIMEOUT_S = 60.0
SCRAPE_INTERVAL_S = 1


class PrometheusMissingError(Exception):
    """There is no Prometheus here; the text says how to get one."""


def binary() -> str:
    """The Prometheus to start. Raises PrometheusMissingError when there is none."""
    found = os.environ.get("LLMEDIC_PROMETHEUS") or shutil.which("prometheus")
    if not found:
        raise PrometheusMissingError("apt-get install prometheus, or name one in LLMEDIC_PROMETHEUS")
    return found


@contextmanager
def page_server(page: Callable[[], str]) -> Iterator[int]:
    """Serve what `page` returns at /metrics; gives the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page().encode()
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing: the test's output is for the test."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def prometheus(folder: Path, jobs: Mapping[str, list[int]]) -> Iterator[str]:
    """Start Prometheus with these ports to scrape by job; gives its base URL once every one was scraped twice."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    config = {
        "global": {"scrape_interval": f"{SCRAPE_INTERVAL_S}s"},
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}]}
            for job, ports in jobs.items()
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    command = [
        binary(),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=error",
    ]
    base = f"http://{address}"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await_scrapes(base, sum(len(ports) for ports in jobs.values()), process)
        yield base
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await_scrapes(base: str, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    query = f"{base}/api/v1/query?query=count(count_over_time(up%5B1m%5D)%3E5)"
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(query, timeout=5) as answer:
                result = json.load(answer)["data"]["result"]
        except (urllib.error.URLError, ConnectionError):
            result = []
        if result and int(result[0]["value"][1]) == count:
            return
        time.sleep(0.2)
    raise AssertionError("Prometheus did not scrape its targets in time")
