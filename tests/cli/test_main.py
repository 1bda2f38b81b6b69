"""Every ending of the command is a line and an exit code; nothing heavy is imported for a help text."""

from __future__ import annotations

import errno
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from llmedic import __version__, errors
from llmedic.cli import main

HEAVY = ("yaml", "rich", "urllib3", "msgspec", "psutil", "ahocorasick_rs", "asyncio")


@click.group()
def endings() -> None:
    """Commands that end in every way there is."""


@endings.command()
def unreachable() -> None:
    raise errors.UnreachableError("http://a:8000: connection refused\nat once", hint="is it running?")


@endings.command()
@click.option("--bearer")
@click.argument("target")
def bug(bearer: str, target: str) -> None:
    raise ZeroDivisionError(f"cannot divide {len(bearer) + len(target)}")


@endings.command()
def quoting() -> None:
    raise ZeroDivisionError("cannot divide http://user:sesame@host --api-key open-up\x1b[31m")


@endings.command()
def steering() -> None:
    raise errors.InputError("a\x1b]0;title\x07b\u202ec\x9bd" + "e" * 5000, hint="f\x1b[31mg")


@endings.command()
def interrupted() -> None:
    raise KeyboardInterrupt


@endings.command()
def findings() -> int:
    return 1


def test_a_failing_target_is_one_line_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["unreachable"], endings) == 3

    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: http://a:8000: connection refused at once\nhint: is it running?\n"


def test_a_bug_leaves_its_traceback_in_a_file_and_no_secret(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert main.main(["bug", "--bearer", "sesame", "http://user:open@host"], endings) == 70

    error, hint = capsys.readouterr().err.splitlines()
    assert error == "error: this is a bug in llmedic: ZeroDivisionError: cannot divide 27"
    (log,) = tmp_path.iterdir()
    assert str(log) in hint
    report = log.read_text(encoding="utf-8")
    assert "Traceback" in report
    assert f"llmedic {__version__}" in report
    assert "command: llmedic bug --bearer … …" in report
    assert "sesame" not in report
    assert "open" not in report.partition("Traceback")[0]


def test_a_bug_that_quotes_a_secret_does_not_tell_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert main.main(["quoting"], endings) == 70

    (log,) = tmp_path.iterdir()
    told = capsys.readouterr().err + log.read_text(encoding="utf-8").rpartition("raise ZeroDivisionError")[2]
    assert "ZeroDivisionError: cannot divide" in told
    assert told.count("<redacted>") >= 4
    assert "user:sesame" not in told.replace('"cannot divide http://user:sesame@host', "")


def test_no_line_steers_the_terminal_or_fills_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["steering"], endings) == 2

    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error: a]0;titlebcd" + "e" * 100)
    assert len(error) == 1000 + len("error: ")
    assert hint == "hint: f[31mg"


def test_a_full_disk_is_no_bug() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "llmedic", "explain"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip

    assert done.returncode == 3
    assert done.stderr.splitlines()[0] == f"error: standard output: {os.strerror(errno.ENOSPC)}"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_bug(closed: str, tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("nothing\n")
    command = f"exec {shlex.quote(sys.executable)} -m llmedic diagnose --log {shlex.quote(str(log))} {closed}"

    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 3
    assert "bug" not in done.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_letters_that_a_terminal_lacks_are_spelled(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "llmedic", "explain", "--lang", "zh"],
        capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, check=True, timeout=60,
    )  # fmt: skip

    assert (b"\\u" in done.stdout) == (encoding != "utf-8")


def test_an_interrupt_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["interrupted"], endings) == 130
    assert capsys.readouterr().err == "\nerror: interrupted\n"


def test_a_command_tells_its_own_exit_code() -> None:
    assert main.main(["findings"], endings) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["diagnose", "--nonsense"], "--nonsense"),
        (["diagnose", "--window", "soon"], "write 15s, 1m or 24h"),
        (["diagnose", "--log", "nowhere.log"], "nowhere.log"),
    ],
)
def test_wrong_usage_is_2_with_a_hint(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    assert main.main(arguments) == 2

    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert says in error
    assert re.fullmatch(r"hint: llmedic( diagnose)? --help", hint)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_the_commands_and_exit_codes(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main.main(arguments) == 0

    out = " ".join(capsys.readouterr().out.split())
    for command in main.COMMANDS:
        assert f" {command} " in out
    assert "3 could not complete" in out


@pytest.mark.parametrize("command", main.COMMANDS)
def test_every_option_is_explained(command: str) -> None:
    loaded = main.cli.get_command(click.Context(main.cli), command)

    assert loaded is not None
    assert loaded.name == command
    assert loaded.help
    for parameter in loaded.params:
        if isinstance(parameter, click.Option) and not isinstance(parameter.type, click.Choice):
            assert parameter.help, parameter.name


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([command, "--help"] for command in main.COMMANDS)])
def test_a_help_text_imports_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom llmedic.cli import main\n"
        f"code = main.main({arguments!r})\n"
        f"print(code, [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert done.stderr == "0 []\n"
    assert done.stdout


def test_a_reader_that_leaves_is_no_bug() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "llmedic", "explain"],
            stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip
    finally:
        os.close(write)

    assert done.returncode == 141
    assert done.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["ledger", "https://user:p4ssw0rd@hub.local/a-model-that-is-not-there"],
        ["ledger", "Qwen3-8B", "HF_TOKEN=p4ssw0rd", "vllm", "serve"],
        ["diagnose", "file://user:p4ssw0rd@host/x"],
    ],
)
def test_no_error_repeats_a_secret_of_the_command_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main.main(arguments) == 2
    said = capsys.readouterr().err
    assert "p4ssw0rd" not in said
