"""`llmedic explain`: the knowledge behind a verdict, one entry at a time, or the list of all ids."""

from __future__ import annotations

import json

import click

from llmedic import errors
from llmedic.cli import options


@click.command("explain", short_help="Look up a cause, observation, symptom or pitfall.")
@click.argument("entry_id", metavar="[ID]", default="")
@options.format_option("terminal", "json")
@options.lang_option
def command(*, entry_id: str, style: str, lang: str | None) -> int:
    """Explain one entry: a cause of a verdict, an observation, a symptom id or one of the ten pitfalls.

    Without an ID, list them all.
    """
    from llmedic.report import entry

    language = options.language(lang)
    if not entry_id:
        titles = entry.listing(language)
        click.echo(_json(titles) if style == "json" else entry.render_list(titles, language), nl=False)
        return 0
    found = entry.find(entry_id, language) or entry.find(entry_id.lower().replace("-", "_"), language)
    if found is None:
        hint = options.did_you_mean(entry_id, entry.known())
        raise errors.UsageError(f"there is no entry {entry_id!r}", hint=hint)
    click.echo(_json(entry.document(found)) if style == "json" else entry.render(found, language), nl=False)
    return 0


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
