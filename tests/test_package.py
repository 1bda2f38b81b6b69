"""What a user gets by installing the package: its version, its typing marker, its two ways to be started."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from importlib import metadata, resources
from pathlib import Path

import llmedic


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_the_version_is_the_installed_one() -> None:
    assert llmedic.__version__ == metadata.version("llmedic")


def test_the_version_is_a_release_number() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", llmedic.__version__)


def test_the_typing_marker_ships() -> None:
    assert resources.files(llmedic).joinpath("py.typed").is_file()


def test_the_licence_ships() -> None:
    assert "Apache-2.0" == metadata.metadata("llmedic")["License-Expression"]
    assert ["LICENSE"] == metadata.metadata("llmedic").get_all("License-File")


def test_module_and_command_are_the_same_program() -> None:
    command = Path(sysconfig.get_path("scripts")) / "llmedic"

    as_command = run(str(command), "--version")
    as_module = run(sys.executable, "-m", "llmedic", "--version")

    assert (0, "") == (as_command.returncode, as_command.stderr)
    assert llmedic.__version__ in as_command.stdout
    assert (as_command.returncode, as_command.stdout) == (as_module.returncode, as_module.stdout)


def test_the_version_does_not_wait_for_heavy_imports() -> None:
    """`rich` is for printing a report: no other command pays for it."""
    found = run(
        sys.executable, "-c", "import sys; import llmedic.cli.main; sys.stdout.write(str('rich' in sys.modules))"
    )

    assert (0, "False") == (found.returncode, found.stdout), found.stderr
