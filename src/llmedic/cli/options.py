"""Options that several commands share, and their types. Parsing only: no file is opened, nothing heavy imported."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from llmedic import errors

if TYPE_CHECKING:
    from llmedic.app.request import Lang, Sources
    from llmedic.model.evidence import Symptoms
    from llmedic.wire.access import Access

F = TypeVar("F", bound=Callable[..., Any])

_FACTORS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)")
_SIZE = re.compile(r"(?P<number>\d{1,18}(?:\.\d{1,6})?)\s*(?P<unit>[kKmMgGtT]?)(?P<rest>i?[bB]|)", re.ASCII)
_SMALLEST_BYTES = 2**20
_LARGEST_BYTES = 2**60
_TOKENS = re.compile(r"(\d{1,3}(?:,\d{3})+|\d{1,12})([kK]?)", re.ASCII)
_RELEASE = re.compile(r"[vb]?\d[\w.+-]{0,40}", re.ASCII)
_MOST_TOKENS = 10**9
_LONGEST_S = 366 * 86400.0
_READABLE = click.Path(path_type=Path, exists=True, dir_okay=False)


def duration(text: str | float) -> float:
    """Option type: seconds of a length of time such as 500ms, 15s, 1m, 24h or 7d; a bare number is seconds."""
    match = _DURATION.fullmatch(str(text).strip())
    seconds = float(match.group(1)) * _FACTORS[match.group(2)] if match else 0.0
    if seconds <= 0:
        raise click.BadParameter(f"{str(text)!r} is not a length of time: write 15s, 1m or 24h")
    if seconds > _LONGEST_S:
        raise click.BadParameter(f"{str(text)[:20]!r} is longer than a year: write 15s, 1m or 24h")
    return seconds


def size(text: str | int) -> int:
    """Option type: bytes of a size such as 35.34GiB, 512MiB or 24G; only MB, GB and TB are powers of ten."""
    match = _SIZE.fullmatch(str(text).strip())
    if match is None:
        raise click.BadParameter(f"{str(text)[:20]!r} is not a size: write 35.34GiB, 512MiB or a number of bytes")
    base = 1000.0 if match["rest"].upper() == "B" else 1024.0
    number = float(match["number"]) * base ** " KMGT".index(match["unit"].upper() or " ")
    if not 1 <= number < _LARGEST_BYTES:
        raise click.BadParameter(f"{str(text)[:20]!r} is no size that memory has: write 35.34GiB or 512MiB")
    return round(number)


def printed_size(text: str | tuple[int, float]) -> tuple[int, float]:
    """Option type: a size as somebody printed it, in bytes, and how far the truth may be from it: half its last digit.

    A number of bytes, or of whole GiB, is exact. A number without a unit that no memory is as small as is a slip.
    """
    if isinstance(text, tuple):
        return text
    match, found = _SIZE.fullmatch(text.strip()), size(text)
    assert match is not None  # or `size` had refused it
    if not match["unit"]:
        if found < _SMALLEST_BYTES:
            raise click.BadParameter(f"{text!r} would be bytes: write 35.34GiB or 512MiB")
        return found, 0.0
    decimals = len(match["number"].partition(".")[2])
    if not decimals:
        return found, 0.0
    return found, round(found / float(match["number"])) * 10.0**-decimals / 2


def tokens(text: str | int) -> int:
    """Option type: a number of tokens; as vLLM reads them, 16k is 16,000 and 16K is 16,384."""
    match = _TOKENS.fullmatch(str(text).strip())
    number = int(match[1].replace(",", "")) * {"": 1, "k": 1000, "K": 1024}[match[2]] if match else 0
    if not 0 < number <= _MOST_TOKENS:
        raise click.BadParameter(f"{str(text)[:20]!r} is not a number of tokens: write 16000 or 16k")
    return number


def release(text: str) -> str:
    """Option type: an engine's release such as 0.11.0, v0.11.0rc1 or b5554 (llama.cpp); "" for none."""
    if text and not _RELEASE.fullmatch(text):
        raise click.BadParameter(f"{text[:20]!r} is not a release: write 0.11.0, or b5554 for llama.cpp")
    return text.removeprefix("v")


def combine(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several option decorators as one, shown in the order given."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


source_options: Callable[[F], F] = combine(
    click.argument("targets", nargs=-1, metavar="[TARGET]..."),
    click.option("--metrics", multiple=True, type=_READABLE, metavar="FILE",
                 help="A saved metrics page; given twice, the window is what lies between the two."),
    click.option("--log", "logs", multiple=True, metavar="PATH",
                 type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
                 help="An engine log; - reads standard input."),
    click.option("--args", default="", metavar="TEXT", help="The engine's command line, in quotes."),
    click.option("--pid", type=click.IntRange(min=1), help="An engine process on this machine."),
    click.option("--model", type=click.Path(path_type=Path, exists=True), metavar="DIR",
                 help="The served model: its folder, config.json or .gguf file; weights are not read."),
    click.option("--case", type=_READABLE, metavar="FILE", help="A case file: evidence typed by hand."),
    click.option("--symptom", "seen", multiple=True, metavar="ID",
                 help="What you see (llmedic explain lists the ids)."),
    click.option("--when", multiple=True, metavar="ID", help="A condition under which you see it."),
    click.option("--not-when", "not_when", multiple=True, metavar="ID",
                 help="A condition under which you do not see it."),
)  # fmt: skip

access_options: Callable[[F], F] = combine(
    click.option("--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="Sent with every request."),
    click.option("--bearer-env", metavar="VAR", default="", help="The environment variable that holds a bearer token."),
    click.option("--cacert", type=_READABLE, metavar="FILE", help="Certificates to trust."),
    click.option("--cert", type=_READABLE, metavar="FILE", help="Our client certificate."),
    click.option("--key", type=_READABLE, metavar="FILE", help="The key of --cert."),
)  # fmt: skip

window_options: Callable[[F], F] = combine(
    click.option("--window", type=duration, metavar="TIME", default=15.0, show_default="15s",
                 help="How long to watch a live target."),
    click.option("--compare-to", type=duration, metavar="AGO",
                 help="Hold the window against the same length this long ago, such as 24h (Prometheus only)."),
    click.option("--probe", is_flag=True, help="Send one short completion: the only request that costs tokens."),
)  # fmt: skip


def lang_option(function: F) -> F:
    """`--lang`, by default from the locale."""
    return click.option("--lang", type=click.Choice(["en", "zh"]), default=None,
                        help="Language of the report (default: from the locale).")(function)  # fmt: skip


def format_option(*choices: str) -> Callable[[F], F]:
    """`--format` with these choices, the first being the default."""
    return click.option("--format", "style", type=click.Choice(choices), default=choices[0], show_default=True)


fail_on_option: Callable[[F], F] = click.option(
    "--fail-on", type=click.Choice(["info", "warning", "critical", "never"]), default="critical", show_default=True,
    help="Exit with 1 for findings of this severity or above.",
)  # fmt: skip


def language(chosen: str | None, environment: Mapping[str, str] = os.environ) -> Lang:
    """The language asked for, else that of the locale, else English."""
    if chosen is None:
        locale = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "")
        chosen = "zh" if locale.lower().startswith("zh") else "en"
    return "zh" if chosen == "zh" else "en"


def access(
    *, headers: Iterable[str], bearer_env: str, cacert: Path | None, cert: Path | None, key: Path | None,
    environment: Mapping[str, str] = os.environ,
) -> Access:  # fmt: skip
    """How to get in. Raises UsageError for a header without a name or a variable that is not set."""
    from llmedic.wire.access import Access

    if key and not cert:
        raise errors.UsageError("--key needs --cert", hint="give the certificate that belongs to the key")
    bearer = environment.get(bearer_env, "") if bearer_env else ""
    if bearer_env and not bearer:
        raise errors.UsageError(
            f"--bearer-env: the environment variable {bearer_env} is not set or empty",
            hint=f"export {bearer_env}=… first: the option takes the variable's name, not the token",
        )
    files = {"cacert": str(cacert or ""), "cert": str(cert or ""), "key": str(key or "")}
    return Access(headers=dict(map(_header, headers)), bearer=bearer, **files)


def sources(
    *, targets: tuple[str, ...], metrics: tuple[Path, ...], logs: tuple[Path, ...], args: str, pid: int | None,
    case: Path | None, model: Path | None, symptoms: Symptoms,
) -> Sources:  # fmt: skip
    """Where evidence comes from. Raises UsageError or InputError when a target is no target."""
    from llmedic.app.request import Sources

    if len(metrics) > 2:
        raise errors.UsageError("--metrics can be given once or twice", hint="two pages make one window")
    return Sources(
        targets=tuple(map(_target, targets)),
        metrics=metrics,
        logs=logs,
        args=args,
        pid=pid,
        case=case,
        model=model,
        symptoms=symptoms,
    )


def ticked(*, seen: Iterable[str], when: Iterable[str], not_when: Iterable[str]) -> Symptoms:
    """What the person ticked, every id checked against the closed lists. Raises UsageError with the nearest ids."""
    from llmedic.model.evidence import Symptoms

    result = Symptoms(seen=frozenset(seen), when=frozenset(when), not_when=frozenset(not_when))
    if result:
        from llmedic.knowledge import symptoms

        check_ids("--symptom", result.seen, symptoms.ids("symptom"))
        check_ids("--when", result.when, symptoms.ids("condition"))
        check_ids("--not-when", result.not_when, symptoms.ids("condition"))
        both = sorted(result.when & result.not_when)
        if both:
            raise errors.UsageError(f"{both[0]} is given both as --when and as --not-when")
    return result


def check_ids(option: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise UsageError for the first id that is not known, with the ones that look like it."""
    known = tuple(known)
    for name in sorted(given):
        if name not in known:
            raise errors.UsageError(f"{option}: there is no {name!r}", hint=did_you_mean(name, known))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that names up to three ids that look like this one, or where they are listed."""
    import difflib

    known = tuple(known)
    near = (
        difflib.get_close_matches(name.lower().replace("_", "-"), known, n=3, cutoff=0.5)
        or [candidate for candidate in known if name.lower() in candidate][:3]
    )
    return f"did you mean {' or '.join(near)}?" if near else "llmedic explain lists all ids"


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or any(letter in text for letter in "\r\n"):
        raise errors.UsageError("--header: expected 'NAME: VALUE'", hint="--header 'X-Tenant: blue'")
    return name.strip(), value.strip()


def _target(target: str) -> str:
    scheme, separator, rest = target.partition("://")
    if separator:
        return _url(scheme.lower(), rest)
    if not target.strip():
        raise errors.UsageError("an empty TARGET", hint="is the variable set that should hold it?")
    if not _exists(target):
        hint = f"http://{target}" if re.fullmatch(r"[\w.-]+:\d+(/.*)?", target) else "an engine needs http:// in front"
        raise errors.InputError(f"{target}: no such file or directory", hint=hint)
    return target


def _url(scheme: str, rest: str) -> str:
    from urllib.parse import urlsplit

    if scheme not in ("http", "https", "prom+http", "prom+https"):
        raise errors.UsageError(
            f"{scheme}:// is not a kind of target", hint="http(s)://host:port or prom+http(s)://host:port?SELECTOR"
        )
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        host = parts.hostname if parts.port != 0 else ""
    except ValueError as error:  # its text may hold the password
        raise errors.UsageError(f"{scheme}://… is not a URL", hint=f"{scheme}://host:port") from error
    if not host:
        raise errors.UsageError(f"{scheme}://… names no host and port", hint=f"{scheme}://host:port")
    return f"{scheme}://{rest}"


def _exists(target: str) -> bool:
    try:
        return Path(target).exists()
    except OSError:  # too long a name, or a folder that may not be looked into
        return False
