"""`llmedic ledger`: where every GiB of the device goes, for a model, a card and the engine's own flags."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llmedic import errors
from llmedic.cli import engineflags, options, screen

if TYPE_CHECKING:
    from llmedic.app.request import Lang, LedgerRequest
    from llmedic.model.ledger import LedgerReport

GOALS = ("max-num-seqs", "max-model-len", "gpu-memory-utilization", "tensor-parallel-size", "quantization", "gpu")
"""What --solve takes; the names of `analysis.ledger.solve`, which is not imported for a help text."""

_SEVERITIES = ("info", "warning", "critical")
_SEVERITY_OF = {"no": {"critical"}, "perhaps": {"warning"}}
_COUNT = click.IntRange(min=1)
_CARDS = click.IntRange(min=1, max=4096)
"""Of one server: more than any has."""


class _LogFile(click.Path):
    """A start-up log; the hint says what one is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as wrong:
            hint = "give the file that the server's start-up output went to, or --log - to read it from a pipe"
            raise errors.UsageError(f"--log: {wrong.message}", hint=hint) from None


_LOG = _LogFile(path_type=Path, exists=True, dir_okay=False, allow_dash=True)


_ledger_options = options.combine(
    click.argument("model", default="", metavar="[MODEL]"),
    click.option("--gpu", default="", metavar="NAME|SIZE", help='A card ("H100", "8x H200") or its memory ("24GiB").'),
    click.option("--gpus", "count", type=_CARDS, metavar="N", help="Cards in the machine."),
    click.option("--tp", type=_COUNT, metavar="N", help="Tensor parallel size, whatever the engine calls it."),
    click.option("--pp", type=_COUNT, metavar="N", help="Pipeline parallel size."),
    click.option("--engine", type=click.Choice(engineflags.ENGINES), help="[default: vllm; llama.cpp for a .gguf]"),
    click.option("--engine-version", "version", type=options.release, default="", metavar="V",
                 help="The release, such as 0.11.0."),
    click.option("--args", default="", metavar="TEXT", help="The engine's command line, in quotes."),
    click.option("--log", type=_LOG, metavar="PATH",
                 help="A start-up log, held against what is computed; - reads standard input."),
    click.option("--available", type=options.printed_size, default=None, metavar="SIZE",
                 help="The KV cache's size as the engine printed it (35.34GiB): the rest follows from it."),
    click.option("--context", "context_tokens", type=options.tokens, metavar="TOKENS",
                 help="Tokens of one request, prompt and answer."),
    click.option("--concurrency", type=_COUNT, metavar="N", help="Such requests at once."),
    click.option("--plan-context", type=options.tokens, metavar="TOKENS",
                 help="Tokens of one request after a planned change."),
    click.option("--solve", multiple=True, type=click.Choice(GOALS), metavar="SETTING",
                 help="What it would have to be for --concurrency requests of --context tokens; may be repeated: "
                 f"{', '.join(GOALS)}."),
)  # fmt: skip


@click.command(
    "ledger",
    cls=engineflags.Command,
    short_help="Say where every GiB of a GPU goes, and what would fit.",
    options_metavar="[OPTIONS] [ENGINE FLAGS]",
    epilog="A MODEL is a name of the catalogue (Qwen3-32B), a directory, a config.json, a .safetensors or a .gguf "
    "file. Any flag of the engine can stand beside these options, as the engine spells it: --max-model-len 16000. "
    "Exit codes: 0 it starts, 1 it does not or a problem reaches --fail-on, 3 cannot tell.",
)
@_ledger_options
@options.format_option("terminal", "json", "markdown", "html")
@options.lang_option
@options.fail_on_option
def command(*, style: str, lang: str | None, fail_on: str, **given: Any) -> int:
    """Show where every GiB of a GPU goes: weights, activations, CUDA graphs, KV cache.

    For any model, card, flag and engine release, before anything is started; offline. With --log, beside what the
    server printed.
    """
    from llmedic.app import ledger

    request = _request(given, lang=options.language(lang))
    report = ledger.run(request)
    click.echo(show(report, style, request.lang, width=screen.width(), colour=screen.colour()), nl=False)
    return exit_code(report, fail_on)


def exit_code(report: LedgerReport, fail_on: str) -> int:
    """0 it starts, 1 it does not or a problem is at or above the severity, 3 when that cannot be told.

    Where it may not start, that is a warning.
    """
    ledger = report.ledger
    severities = {problem.severity for problem in ledger.problems} | _SEVERITY_OF.get(ledger.starts, set())
    least = _SEVERITIES.index(fail_on) if fail_on in _SEVERITIES else len(_SEVERITIES)
    if severities & set(_SEVERITIES[least:]):
        return 1
    return errors.TargetError.exit_code if ledger.starts == "unknown" else 0


def show(report: LedgerReport, style: str, lang: Lang, *, width: int, colour: bool) -> str:
    """The ledger in the style asked for. Only the renderer that is needed is imported."""
    if style == "json":
        from llmedic.report.ledger import json

        return json.render(report, lang=lang)
    if style == "markdown":
        from llmedic.report.ledger import markdown

        return markdown.render(report, lang=lang)
    if style == "html":
        from llmedic.report.ledger import html

        return html.render(report, lang=lang)
    from llmedic.report.ledger import terminal

    return terminal.render(report, lang=lang, width=width, colour=colour)


def _request(given: dict[str, Any], *, lang: Lang) -> LedgerRequest:
    """What was asked for. Raises UsageError when options are missing that belong together."""
    from llmedic.app.request import LedgerRequest

    if not (given["model"] or given["log"] or given["args"] or given["flags"]):
        raise errors.UsageError("no MODEL", hint="llmedic ledger Qwen3-32B --gpu H100, or --log FILE, or --args TEXT")
    if given["solve"] and not (given["concurrency"] and given["context_tokens"]):
        raise errors.UsageError("--solve needs a load", hint="add --concurrency N --context TOKENS")
    if given["plan_context"] and not given["context_tokens"]:
        raise errors.UsageError("--plan-context needs the length of today", hint="add --context TOKENS")
    told = bool(given["log"] or given["args"])
    engine = given["engine"] or engineflags.guess(
        is_gguf=engineflags.is_gguf(given["model"]), is_told=told, args=given["args"]
    )
    parallel = (("tensor_parallel_size", given.pop("tp")), ("pipeline_parallel_size", given.pop("pp")))
    flags = [word for setting, value in parallel for word in engineflags.typed(setting, value, engine, given["flags"])]
    available, slack = given["available"] or (None, 0.0)
    return LedgerRequest(
        **{key: given[key] for key in ("model", "gpu", "count", "version", "args", "log", "solve")},
        **{key: given[key] for key in ("context_tokens", "concurrency", "plan_context")},
        engine=engine,
        flags=(*given["flags"], *flags),
        available_bytes=available,
        available_slack_bytes=slack,
        lang=lang,
    )
