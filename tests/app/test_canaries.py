"""Secrets and prompts planted everywhere appear in no report and in no bundle."""

from __future__ import annotations

import http.server
import string
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from llmedic.cli.commands.diagnose import command as diagnose
from llmedic.cli.commands.snapshot import command as snapshot
from llmedic.cli.main import cli as main

SECRETS = {
    "flag": "canary-flag-7f3a91c2d4",
    "spaced flag": "canary-spaced-1b2c3d4e5f",
    "logged args": "canary-args-55aa66bb77",
    "header": "canary-header-0c0ffee123",
    "user": "canary-password-9f8e7d",
    "query": "canary-query-1234abcd99",
    "hugging face": "hf_canaryCANARYcanaryCANARYcanary12",
    "bearer": "canary-bearer-4d5e6f7a8b",
}
PROMPTS = {
    "vllm prompt": "canary prompt: my diagnosis is diabetes",
    "vllm output": "canary answer: take two tablets",
    "sglang": "canary words of a patient",
}
LOG = string.Template((Path(__file__).parent / "data" / "canaries.log").read_text(encoding="utf-8")).substitute(
    {name.replace(" ", "_"): canary for name, canary in (SECRETS | PROMPTS).items()}
)


class Handler(http.server.BaseHTTPRequestHandler):
    """An engine that repeats what it was sent: the worst that a target can do to a report."""

    def do_GET(self) -> None:
        self.answer(401)

    def do_POST(self) -> None:
        self.answer(401)

    def answer(self, status: int) -> None:
        body = f"denied: {self.headers} {self.path}".encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def arguments(port: int, tmp_path: Path) -> list[str]:
    log = tmp_path / "engine.log"
    log.write_text(LOG, encoding="utf-8")
    flags = f"--max-num-seqs 4 --api-key={SECRETS['flag']} --hf-token {SECRETS['spaced flag']}"
    return [
        f"http://user:{SECRETS['user']}@127.0.0.1:{port}",
        "--log", str(log), "--args", flags, "--window", "0.2s", "--probe",
        "--header", f"X-Api-Key: {SECRETS['header']}", "--bearer-env", "CANARY_TOKEN",
    ]  # fmt: skip


def leaks(text: str) -> list[str]:
    return [name for name, canary in (SECRETS | PROMPTS).items() if canary in text]


@pytest.mark.parametrize("style", ["terminal", "json", "markdown"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_report_shows_one(arguments: list[str], style: str, lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_TOKEN", SECRETS["bearer"])

    result = CliRunner().invoke(diagnose, [*arguments, "--format", style, "--lang", lang, "--verbose"])

    assert result.exit_code in (0, 1, 3), result.output
    assert "KV" in result.stdout  # the log was read: the report is not empty
    assert leaks(result.stdout + result.stderr) == []


def test_a_refused_target_is_not_repeated_with_its_secrets() -> None:
    url = f"http://user:{SECRETS['user']}@127.0.0.1:9/?token={SECRETS['query']}"

    result = CliRunner().invoke(main, ["diagnose", url, "--window", "0.1s"])

    assert leaks(result.output + str(result.exception)) == []
    assert "has no query" in result.output + str(result.exception)


def test_no_bundle_holds_one(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_TOKEN", SECRETS["bearer"])
    path = tmp_path / "out.zip"

    result = CliRunner().invoke(snapshot, [*arguments, "--output", str(path)])

    assert result.exit_code == 0, result.output
    with zipfile.ZipFile(path) as archive:
        content = "\n".join(archive.read(name).decode("utf-8", "replace") for name in archive.namelist())
    assert "max-num-seqs" in content  # the command line is there, without its secrets
    assert leaks(content + result.stdout + result.stderr) == []
