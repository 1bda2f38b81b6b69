"""The harness itself: nothing of a server may outlive the tests, however they end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from .engine import Engine, Launch, real_dir

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[2]
OWNER = """
import sys, time
from pathlib import Path
from tests.real.engine import Engine, Launch, real_dir
engine = Engine(Launch(model=real_dir() / "tiny"), Path(sys.argv[1]))
engine.start()
print(engine.pid, flush=True)
time.sleep(600)
"""


def test_a_killed_owner_takes_its_server_along(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path / "engine.log")], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as owner:
        assert owner.stdout is not None
        server = psutil.Process(int(owner.stdout.readline()))
        assert server.is_running()
        owner.send_signal(signal.SIGKILL)

    gone, _ = psutil.wait_procs([server], timeout=10)
    assert gone == [server]


def test_leaving_the_block_by_an_error_ends_the_server(tmp_path: Path) -> None:
    engine = Engine(Launch(model=real_dir() / "tiny"), tmp_path / "engine.log")
    servers: list[psutil.Process] = []

    def interrupted() -> None:
        with engine:
            servers.append(psutil.Process(engine.pid))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert [server.is_running() for server in servers] == [False]
