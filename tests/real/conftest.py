"""One real server at a time: scenarios that need the same flags share a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .engine import Engine, EngineMissingError, real_dir
from .scenarios import Server


class Servers:
    """Hands out running servers; a server with other flags takes the place of the one before."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._server: Server | None = None
        self._engine: Engine | None = None

    def started(self, server: Server) -> Engine:
        """A server with these flags; it may not be ready yet, or never."""
        if self._engine is None or self._server != server:
            self.stop()
            self._engine = Engine(server.launch(self._scratch), self._scratch / f"{server.name}.log")
            self._server = server
            self._engine.start()
        return self._engine

    def ready(self, server: Server) -> Engine:
        """A server with these flags that answers /health with 200."""
        engine = self.started(server)
        engine.wait_ready()
        return engine

    def stop(self) -> None:
        if self._engine is not None:
            self._engine.stop()
        self._engine = self._server = None


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    problem = ""
    try:
        real_dir()
    except EngineMissingError as missing:
        problem = str(missing)
    if problem:
        pytest.fail(problem, pytrace=False)
    shared = Servers(tmp_path_factory.mktemp("real"))
    try:
        yield shared
    finally:
        shared.stop()
