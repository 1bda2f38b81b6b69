"""`llmedic diagnose`: parse, ask the library for a verdict, show it, tell by the exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from llmedic import errors
from llmedic.cli import options, screen
from llmedic.model.plain import plain

if TYPE_CHECKING:
    from llmedic.app.request import DiagnoseRequest, Lang
    from llmedic.model.verdict import Verdict

_SEVERITIES = ("info", "warning", "critical")


@click.command(
    "diagnose",
    short_help="Find the cause, and the one change that answers it.",
    epilog="A TARGET is http(s)://host:port (an engine), prom+http(s)://host:port?SELECTOR (Prometheus), a bundle "
    "(.zip, from llmedic snapshot) or a directory of files; repeat it for replicas.",
)
@options.source_options
@click.option("--ask", is_flag=True, help="Ask for symptoms one at a time, at the terminal.")
@options.window_options
@click.option("--baseline", default="", metavar="NAME|FILE", help="Hold the window against a stored baseline.")
@click.option("--save-baseline", default="", metavar="NAME", help="Store this window under a name.")
@click.option("--watch", type=options.duration, metavar="EVERY", help="Diagnose again and again, this often.")
@options.access_options
@options.format_option("terminal", "json", "markdown")
@options.lang_option
@options.fail_on_option
@click.option("-v", "--verbose", is_flag=True, help="Say on standard error what is being waited for.")
def command(
    *, ask: bool, watch: float | None, style: str, lang: str | None, fail_on: str, verbose: bool, **given: Any
) -> int:
    """Find out why an LLM inference server is slow, failing or wrong.

    Nothing is changed: an engine gets GET requests, Prometheus gets queries. --probe adds one short completion.
    """
    request = _request(given, lang=options.language(lang))
    if watch is None:
        return _once(request, style, fail_on, verbose=verbose, ask=ask)
    if not request.sources.targets and request.sources.pid is None:
        raise errors.UsageError("--watch needs a live target", hint="files do not change: diagnose them once")
    if request.save_baseline:
        raise errors.UsageError(
            "--watch stores no baseline", hint="give --save-baseline to a diagnosis without --watch"
        )
    return _again_and_again(request, style, fail_on, every_s=watch, verbose=verbose)


def exit_code(verdict: Verdict, fail_on: str) -> int:
    """0 clean, 1 a finding at or above the severity, 3 when nothing could be said.

    A service that is down, or slower than its own baseline, is a finding even where no cause can be named.
    """
    from llmedic.model.verdict import SURE

    named = [cause for cause in verdict.causes if cause.layer != "none" and cause.confidence >= SURE]
    if fail_on != "never":
        if any(_SEVERITIES.index(cause.severity) >= _SEVERITIES.index(fail_on) for cause in named):
            return 1
        if not named and verdict.health in ("degraded", "down"):
            return 1
    return errors.TargetError.exit_code if verdict.health == "unknown" else 0


def show(verdict: Verdict, style: str, lang: Lang, *, width: int, colour: bool) -> str:
    """The verdict in the style asked for. Only the renderer that is needed is imported."""
    if style == "json":
        from llmedic.report import json

        return json.render(verdict)
    if style == "markdown":
        from llmedic.report import markdown

        return markdown.render(verdict, lang=lang)
    from llmedic.report import terminal

    return terminal.render(verdict, lang=lang, width=width, colour=colour)


def _request(given: dict[str, Any], *, lang: Lang) -> DiagnoseRequest:
    from llmedic.app.request import DiagnoseRequest

    symptoms = options.ticked(**{key: given.pop(key) for key in ("seen", "when", "not_when")})
    keys = ("targets", "metrics", "logs", "args", "pid", "case", "model")
    sources = options.sources(**{key: given.pop(key) for key in keys}, symptoms=symptoms)
    access = options.access(**{key: given.pop(key) for key in ("headers", "bearer_env", "cacert", "cert", "key")})
    return DiagnoseRequest(
        sources=sources,
        access=access,
        window_s=given["window"],
        compare_to_s=given["compare_to"],
        baseline=given["baseline"],
        save_baseline=given["save_baseline"],
        probe=given["probe"],
        lang=lang,
    )


def _once(request: DiagnoseRequest, style: str, fail_on: str, *, verbose: bool, ask: bool = False) -> int:
    from llmedic.app import diagnose
    from llmedic.cli.ask import at_terminal

    progress = _progress if verbose else _quiet
    found = diagnose.diagnose(request, progress=progress, answer=at_terminal(request.lang) if ask else None)
    click.echo(show(found.verdict, style, request.lang, width=screen.width(), colour=screen.colour()), nl=False)
    diagnose.remember(request, found)
    return exit_code(found.verdict, fail_on)


def _again_and_again(request: DiagnoseRequest, style: str, fail_on: str, *, every_s: float, verbose: bool) -> int:
    """Until interrupted: ^C is how a watch ends."""
    import time

    while True:
        started = time.monotonic()
        _once(request, style, fail_on, verbose=verbose)
        if style != "json":
            click.echo(f"--- {time.strftime('%H:%M:%S')} ---")
        sys.stdout.flush()
        time.sleep(max(0.0, every_s - (time.monotonic() - started)))


def _progress(line: str) -> None:
    click.echo(plain(line), err=True)


def _quiet(line: str) -> None:
    del line
