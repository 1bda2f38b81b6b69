"""The `llmedic` command: finds the subcommand, and turns every ending into a line and an exit code.

    0  clean                      3  could not complete, or health unknown
    1  findings (--fail-on)      70  a bug of ours: a log file has the traceback
    2  usage or a bad file      130  interrupted

A subcommand's module is imported when it is needed, and nothing heavy is imported at the top of any of them.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence

import click

from llmedic import __version__, errors
from llmedic.model.plain import plain

COMMANDS = {
    "diagnose": "llmedic.cli.commands.diagnose",
    "snapshot": "llmedic.cli.commands.snapshot",
    "ledger": "llmedic.cli.commands.ledger",
    "explain": "llmedic.cli.commands.explain",
}
"""Every subcommand and the module that has it, in the order of the help."""

EXIT_BUG = 70
EXIT_INTERRUPTED = 130
_EXIT_PIPE_CLOSED = 141  # what a shell reports for SIGPIPE
_LONGEST_LINE = 1000
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class LazyGroup(click.Group):
    """A group whose subcommands are imported when they are looked at."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The subcommands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand, None when there is none of that name."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 clean, 1 findings, 2 usage or a bad file, 3 could not complete or health unknown, 70 bug, "
    "130 interrupted.",
)
@click.version_option(__version__, prog_name="llmedic", message="%(prog)s %(version)s")
def cli() -> None:
    """Find why an LLM inference server is slow, failing or wrong, and the one change that answers it."""


GARBAGE_THRESHOLD = 100_000
"""New objects between two looks for garbage; still finite, because `--watch` runs for days."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (of the process, unless given) and leave with its exit code."""
    _settle_streams()
    # A command lives for a second and reads its knowledge once: looking for garbage meanwhile costs a tenth of it.
    gc.set_threshold(GARBAGE_THRESHOLD)
    sys.exit(main(arguments))


def main(arguments: Sequence[str] | None = None, commands: click.Group = cli) -> int:
    """The exit code of a command line; every failure has become a line on standard error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        outcome = commands.main(words, prog_name="llmedic", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.ClickException as error:
        return _say(error.format_message(), _usage_hint(error), errors.CallerError.exit_code)
    except errors.LLMedicError as error:
        return _say(error.message, error.hint, error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted", "", EXIT_INTERRUPTED)
    except SystemExit:  # click's only one: writing met a closed pipe
        return _EXIT_PIPE_CLOSED
    except BrokenPipeError:
        _silence_stdout()
        return _EXIT_PIPE_CLOSED
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _UNWRITABLE and error.filename is None:
            _silence_stdout()
            hint = "the report could not be written: send it somewhere else"
            return _say(f"standard output: {error.strerror}", hint, errors.TargetError.exit_code)
        return _say(f"this is a bug in llmedic: {_one_line(error)}", _bug_hint(words), EXIT_BUG)
    return outcome if isinstance(outcome, int) else 0


def _say(message: str, hint: str, code: int) -> int:
    with contextlib.suppress(OSError):  # the exit code still tells
        click.echo(f"error: {_line(_without_secrets(message))}", err=True)
        if hint:
            click.echo(f"hint: {_line(_without_secrets(hint))}", err=True)
    return code


def _line(text: str) -> str:
    """One line that steers no terminal: file names and servers' answers can hold anything."""
    flat = plain(" ".join(text.split()))
    return flat if len(flat) <= _LONGEST_LINE else flat[: _LONGEST_LINE - 1] + "…"


def _usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path} --help" if isinstance(context, click.Context) else ""


def _one_line(error: Exception) -> str:
    return _without_secrets(f"{type(error).__name__}: {' '.join(str(error).split())}")[:200]


def _without_secrets(text: str) -> str:
    """What went wrong may quote what it went wrong on: a command line, an address."""
    try:
        from llmedic.collect import redact

        return redact.text(text)
    except Exception as error:  # the bug may be in there
        return f"withheld: {type(error).__name__} while it was redacted"


def _bug_hint(words: Sequence[str]) -> str:
    """Write the traceback where it can be attached to a report. Options' values stay out: they can be secrets."""
    import tempfile
    import traceback

    shown = [word.partition("=")[0] if word.startswith("-") else "…" for word in words[1:]]
    name = [word if word.isalpha() else "…" for word in words[:1]]
    report = (
        f"llmedic {__version__}\npython {sys.version}\nplatform {sys.platform}\n"
        f"command: llmedic {' '.join([*name, *shown])}\n\n{_without_secrets(traceback.format_exc())}"
    )
    try:
        descriptor, path = tempfile.mkstemp(prefix="llmedic-bug-", suffix=".log")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report)
    except OSError as error:
        return f"the traceback could not be written: {error}"
    return f"the traceback is in {path}; please attach it to a bug report"


def _silence_stdout() -> None:
    """The reader is gone: keep the interpreter from complaining about it on the way out."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _settle_streams() -> None:
    """A closed stream takes nothing, and a letter that a terminal cannot show is spelled: neither ends a diagnosis."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # and the next file that is opened must not take its number
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
