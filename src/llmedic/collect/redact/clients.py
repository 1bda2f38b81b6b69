"""Who called: client addresses in access lines and e-mail addresses, replaced so that callers can still be counted."""

from __future__ import annotations

import re
from collections.abc import Callable

_ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})"
_METHOD = r"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)"
_PORT = r"(?::\d{1,5})?"

# Each with the literals of which one must be there; the first that fits a line is tried first.
_PATTERNS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (  # uvicorn, hypercorn
        (' - "',),
        re.compile(
            r"(?<![\w.:\[])(?P<who>\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Fa-f:.]{2,45}?)"
            rf"(?=:\d{{1,5}} - \"{_METHOD} )"
        ),
    ),
    (  # nginx, Apache, gunicorn
        ('] "',),
        re.compile(rf"(?<![\w.:\[])(?P<who>{_ADDRESS})(?= - [^\s\[]+ \[[^\]\n]+\] \")"),
    ),
    (  # llama-server
        ("request: ",),
        re.compile(rf"(?<=request: )(?P<kept>{_METHOD} \S+ )(?P<who>{_ADDRESS})(?= \d{{3}}\b)"),
    ),
    (  # gin (Ollama)
        ("[GIN]",),
        re.compile(rf"(?P<kept>\|\s+)(?P<who>{_ADDRESS})(?=\s+\|\s+{_METHOD}\s)"),
    ),
    (  # named fields of JSON and logfmt access logs
        ("lient", "emote", "LIENT", "EMOTE", "eer", "orwarded", "ORWARDED", "eal", "EAL", "src", "ource"),
        re.compile(
            r"(?P<kept>(?<![\w.-])(?:client(?:[_-]?(?:ip|addr(?:ess)?|host))?|remote(?:[_-]?(?:ip|addr(?:ess)?|host))?|"
            r"downstream_remote_address|peer|x[_-]forwarded[_-]for|x[_-]real[_-]ip|src[_-]?ip|source[_-]ip)"
            rf"\\*[\"']?\s*[:=,]\s*b?\\*[\"']?)(?P<who>{_ADDRESS})(?={_PORT}(?![\w.]))",
            re.IGNORECASE,
        ),
    ),
    (  # further hops of a forwarded-for list
        ("<client",),
        re.compile(rf"(?P<kept><client(?:-\d+)?>,\s*)(?P<who>{_ADDRESS})(?![\w.])"),
    ),
    (  # user@1000.service and the like are names of systemd's, not people
        ("@",),
        re.compile(
            r"(?<![\w.+-])(?P<who>[A-Za-z0-9][\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.)+"
            r"(?!(?:service|slice|scope|socket|target|py)\b)[A-Za-z]{2,24})(?![\w@])"
        ),
    ),
)
_PLACEHOLDER = re.compile(r"<client-\d+>")


def hide_clients(text: str, name_of: Callable[[str], str]) -> tuple[str, int]:
    """The text with every client replaced by what `name_of` calls it, and how many were."""
    count = 0

    def replacement(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"{match.groupdict().get('kept') or ''}{name_of(match['who'].strip('[]').lower())}"

    for literals, pattern in _PATTERNS:
        if any(literal in text for literal in literals):
            text = pattern.sub(replacement, text)
    return text, count


def forget_numbers(text: str) -> str:
    """Every numbered client as "<client>": what is shown reads the same before and after a bundle."""
    return _PLACEHOLDER.sub("<client>", text)
