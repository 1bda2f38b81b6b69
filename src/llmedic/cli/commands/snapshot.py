"""`llmedic snapshot`: save the evidence before a restart destroys it, to be diagnosed later and elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llmedic.cli import options
from llmedic.errors import TargetError
from llmedic.model.plain import plain

if TYPE_CHECKING:
    from llmedic.app.request import SnapshotRequest


@click.command("snapshot", short_help="Save the evidence before a restart destroys it.")
@options.source_options
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="The bundle to write (default: llmedic-TIME.zip here).")  # fmt: skip
@options.window_options
@options.access_options
@click.option("-v", "--verbose", is_flag=True, help="Say on standard error what is being waited for.")
def command(*, output: Path | None, verbose: bool, **given: Any) -> int:
    """Write a bundle: metrics, logs, flags and process state, redacted.

    Tokens, keys and prompts are left out. `llmedic diagnose FILE` gives the same verdict as the live system would.
    """
    from llmedic.app import snapshot

    request = _request(given, output or default_output())
    saved = snapshot.snapshot(request, progress=_progress if verbose else _quiet)
    for line in saved.missing:
        click.echo(f"not seen: {plain(line)}", err=True)
    click.echo(str(saved.path))
    if not saved.usable:
        click.echo("error: nothing that was named could be seen: the bundle holds no evidence", err=True)
        click.echo("hint: do not restart yet; the lines above say why", err=True)
        return TargetError.exit_code
    click.echo(f"hint: llmedic diagnose {saved.path}", err=True)
    return 0


def default_output() -> Path:
    """A name that sorts by time and is safe on every file system."""
    import time

    return Path(time.strftime("llmedic-%Y%m%d-%H%M%S.zip"))


def _request(given: dict[str, Any], output: Path) -> SnapshotRequest:
    from llmedic.app.request import SnapshotRequest

    symptoms = options.ticked(**{key: given.pop(key) for key in ("seen", "when", "not_when")})
    keys = ("targets", "metrics", "logs", "args", "pid", "case", "model")
    return SnapshotRequest(
        sources=options.sources(**{key: given.pop(key) for key in keys}, symptoms=symptoms),
        access=options.access(**{key: given.pop(key) for key in ("headers", "bearer_env", "cacert", "cert", "key")}),
        output=output,
        window_s=given["window"],
        compare_to_s=given["compare_to"],
        probe=given["probe"],
    )


def _progress(line: str) -> None:
    click.echo(plain(line), err=True)


def _quiet(line: str) -> None:
    del line
