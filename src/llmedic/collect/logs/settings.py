"""Reads the lines in which an engine dumps its settings as Python text: a dictionary, a Namespace, a dataclass."""

from __future__ import annotations

import ast
import re

from llmedic.collect import redact
from llmedic.knowledge import flags, logs
from llmedic.model.deployment import Flag, FlagValue
from llmedic.model.numbers import possible

DUMPS = {
    "vllm-args": "vllm",
    "vllm-args-namespace": "vllm",
    "vllm-config": "vllm",
    "vllm-version": "vllm",
    "sglang-args": "sglang",
}
"""Pattern id -> engine whose names stand in the dump."""
LISTS = frozenset({*DUMPS, "tgi-args"})
"""Patterns of the lines that list what the server was started with: what is not in them is at its default."""

_PAIR = re.compile(
    r"(?:'(?P<quoted>\w+)': |\b(?P<bare>[a-z]\w*)=)"
    r"(?P<value>'[^']*'|\"[^\"]*\"|\{[^{}]*\}|\[[^\]]*\]|[\w./+:-]+(?![\w./+:(-]))"
)
_NESTED = ("vllm-config", "vllm-version")
"""These print every configuration object: only what the library knows is worth keeping."""

_RENAMED = {"max_seq_len": "max_model_len"}
_CHARS = 16_000


def dumped(key: str, text: str) -> tuple[Flag, ...]:
    """The settings in a line; what is not a plain value is kept as text, secrets and impossible numbers are dropped."""
    engine = DUMPS[key]
    found: dict[str, Flag] = {}
    pattern = logs.pattern(key)
    start = text.find(pattern.literal) if pattern else 0
    for match in _PAIR.finditer(text[max(0, start) :][:_CHARS]):
        own = match["quoted"] or match["bare"]
        if redact.is_secret_name(own):
            continue
        value = _plain(match["value"])
        if value is None:
            continue
        name, switched, known = _name(own, engine)
        if key in _NESTED and not known:
            continue
        if not switched and isinstance(value, bool):
            value = not value
        found.setdefault(name, Flag(name=name, value=value, spelled="--" + own.replace("_", "-"), origin="log"))
    return tuple(found.values())


def _name(own: str, engine: str) -> tuple[str, bool, bool]:
    """The neutral name, whether this spelling means yes, and whether the library knows it at all."""
    own = _RENAMED.get(own, own)
    found = flags.by_spelling(engine).get("--" + own.replace("_", "-"))
    return (found[0].name, found[1], True) if found else (own, True, False)


def _plain(text: str) -> FlagValue:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return redact.text(text.removeprefix("torch."))
    if isinstance(value, float | int):
        return value if possible(value) else None
    if value is None:
        return None
    return redact.text(value if isinstance(value, str) else text)
