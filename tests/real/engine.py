"""Starts and stops a real vLLM server, and guarantees that nothing of it is left behind."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

HERE = Path(__file__).resolve().parent
START_TIMEOUT_S = 240.0
STOP_TIMEOUT_S = 10.0


class EngineMissingError(Exception):
    """The real engine is not installed; the text says how to install it."""


class StartFailedError(Exception):
    """The server ended, or did not answer, before it was ready."""


def real_dir() -> Path:
    """Where the real engine lives; raises EngineMissingError when it does not."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    directory = Path(os.environ.get("LLMEDIC_REAL_DIR") or Path(cache) / "llmedic" / "real-engine")
    if not (directory / "bin" / "python").exists() or not (directory / "tiny" / "model.safetensors").exists():
        raise EngineMissingError(f"no real engine in {directory}: run tests/real/install.sh (or set LLMEDIC_REAL_DIR)")
    return directory


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a server is started: the model directory, vLLM's flags, extra environment variables."""

    model: Path
    flags: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, port: int) -> list[str]:
        return ["sh", str(HERE / "serve.sh"), str(self.model), str(port), *self.flags]

    def shown(self, port: int) -> str:
        """The command as a person would write it down for --args."""
        words = ["vllm", "serve", str(self.model), "--served-model-name", "tiny", "--port", str(port)]
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return " ".join(variables + [shlex.quote(word) for word in [*words, "--enforce-eager", *self.flags]])


class Engine:
    """One server, its log file and its processes. A context manager: leaving it kills the whole process group."""

    def __init__(self, launch: Launch, log: Path, *, port: int | None = None) -> None:
        self.launch = launch
        self.log = log
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._server: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The API server, which leads the process group."""
        return self._process().pid

    def start(self) -> None:
        """Starts the processes; returns at once."""
        environment = {**os.environ, "LLMEDIC_REAL_DIR": str(real_dir()), **self.launch.environment}
        with self.log.open("wb") as log:
            self._server = subprocess.Popen(
                self.launch.command(self.port),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        # When this process dies in any way, the guard's pipe closes and it kills the server's process group.
        self._guard = subprocess.Popen(
            ["sh", "-c", 'read -r _; kill -KILL "-$1"', "guard", str(self._server.pid)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Returns when /health answers 200; raises StartFailedError with the end of the log otherwise."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self._process().poll() is not None:
                raise StartFailedError(f"the server ended with {self._process().returncode}\n{self.log_tail()}")
            if self.health() == 200:
                return
            time.sleep(0.5)
        raise StartFailedError(f"not ready after {timeout_s:.0f} s\n{self.log_tail()}")

    def wait_exit(self, timeout_s: float = START_TIMEOUT_S) -> int:
        """Waits for a server that cannot start; returns its exit status."""
        try:
            return self._process().wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise StartFailedError(f"still alive after {timeout_s:.0f} s\n{self.log_tail()}") from None

    def health(self) -> int:
        """The HTTP status of /health; 0 when nothing answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            return refused.code
        except OSError:
            return 0

    def log_tail(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def core_pid(self) -> int:
        """The process that runs the scheduler: behind the API server, before the workers."""
        for child in psutil.Process(self.pid).children(recursive=True):
            if "EngineCore" in " ".join(child.cmdline()):
                return child.pid
        raise StartFailedError("no EngineCore process below the API server")

    @contextmanager
    def frozen_core(self) -> Iterator[None]:
        """Stops the engine core for the length of the block, as a hung kernel or a dead lock would."""
        core = self.core_pid()
        os.kill(core, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(core, signal.SIGCONT)

    def stop(self) -> None:
        """Ends every process of the server: asks first, then kills the group. Harmless when nothing runs."""
        server, guard = self._server, self._guard
        self._server = self._guard = None
        if server is not None:
            if server.poll() is None:
                server.terminate()
                with suppress(subprocess.TimeoutExpired):
                    server.wait(STOP_TIMEOUT_S)
            _kill_group(server.pid)
            server.wait()
        if guard is not None:
            guard.kill()
            guard.communicate()

    def _process(self) -> subprocess.Popen[bytes]:
        if self._server is None:
            raise StartFailedError("the server was not started")
        return self._server


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many processes that each want a whole core: a noisy neighbour."""
    command: Sequence[str] = ["sh", "-c", "while :; do :; done"]
    neighbours = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for neighbour in neighbours:
            neighbour.kill()
        for neighbour in neighbours:
            neighbour.wait()


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
