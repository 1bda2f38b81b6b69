"""Reads an engine's command line as a user typed it: `--args`, `launch.args` of a case file, or /proc/PID/cmdline."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence

from llmedic.collect import redact
from llmedic.knowledge import flags as known
from llmedic.model.deployment import Deployment, Flag, FlagValue
from llmedic.model.evidence import Evidence, Gap
from llmedic.model.numbers import possible
from llmedic.model.raw import Raw

SOURCE = "flags"
_Table = dict[str, tuple[known.FlagSpec, bool]]
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_SIZE = re.compile(r"(?P<number>\d{1,12}(?:\.\d{1,6})?)(?P<unit>[kKmMgGtT])(?:i?[bB])?", re.ASCII)
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_WORDS = {"true": True, "false": False, "none": None, "null": None}
_WINDOW_CHARS = 20_000


def capture(args_text: str, *, origin: str = "args", engine: str = "") -> tuple[Raw, ...]:
    """The typed command line as raw input. Nothing is read from anywhere; secrets are taken out when it is read."""
    if not args_text.strip():
        return ()
    words = json.dumps(split(args_text)).encode()
    meta = {"origin": origin} | ({"engine": engine} if engine else {})
    return (Raw(source=SOURCE, kind="args", body=words, meta=meta),)


def read(raws: Sequence[Raw]) -> Evidence:
    """The settings of every command line; one that cannot be read is a gap."""
    found: list[Flag] = []
    gaps: list[Gap] = []
    for raw in raws:
        if raw.error:
            gaps.append(Gap(what="settings", why=raw.error, how=raw.hint))
            continue
        text = raw.body.decode("utf-8", "replace")
        found += parse_args(_words(text), raw.meta.get("engine", ""), raw.meta.get("origin", "args"))
    return Evidence(deployment=Deployment(flags=tuple(found)), gaps=tuple(gaps))


def parse_args(argv: Sequence[str] | str, engine: str, origin: str) -> tuple[Flag, ...]:
    """The settings of a command line under their neutral names, the last one of each name.

    `--a=b`, `--a b`, `-a b`, JSON values, dotted keys (`--compilation-config.level 3`), `KEY=VALUE` of Ollama and
    switches are understood; a flag nobody knows keeps its own name in snake case. Values that may be secrets become
    "<redacted>". Never raises.
    """
    words = split(argv) if isinstance(argv, str) else [str(word) for word in argv]
    found: dict[str, Flag] = {}
    for spelled, value in _pairs(words, engine):
        flag = _flag(spelled, value, engine, origin)
        found[flag.name] = flag
    return tuple(found.values())


def split(text: str) -> list[str]:
    """Words as a shell would see them; where the quotes do not close, words at white space."""
    joined = text.replace("\\\r\n", " ").replace("\\\n", " ")[:_WINDOW_CHARS]
    try:
        return shlex.split(joined)
    except ValueError:
        return joined.split()


def _words(text: str) -> list[str]:
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return split(text)
    return [str(word) for word in words] if isinstance(words, list) else split(text)


def _pairs(words: Sequence[str], engine: str) -> Iterator[tuple[str, str | None]]:
    table = known.by_spelling(engine)
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not _is_flag(word, table):
            yield from _bare(word, words[:position], table)
            continue
        name, equals, value = word.partition("=")
        if equals:
            yield name, value
        elif position < len(words) and _takes_value(name, words[position], table):
            yield name, words[position]
            position += 1
        else:
            yield name, None


def _bare(word: str, before: Sequence[str], table: _Table) -> Iterator[tuple[str, str | None]]:
    """A word that is no flag: `vllm serve MODEL`, or a variable that an engine reads as a setting."""
    if len(before) >= 2 and before[-2] == "serve" and "--model" in table:
        yield "--model", word
    name, equals, value = word.partition("=")
    if equals and name in table:
        yield name, value


def _is_flag(word: str, table: _Table) -> bool:
    if word.startswith("--") and len(word) > 2:
        return True
    return word.partition("=")[0] in table or (len(word) > 1 and word[0] == "-" and word[1].isalpha())


def _takes_value(name: str, following: str, table: _Table) -> bool:
    spec = table.get(name)
    if following.startswith("-") and not _NUMBER.fullmatch(following):
        return False
    if spec is not None and (spec[0].type == "bool" or not spec[1]):
        return following.lower() in _WORDS
    return True


def _flag(spelled: str, value: str | None, engine: str, origin: str) -> Flag:
    head, dot, rest = spelled.partition(".")
    spec = known.by_spelling(engine).get(spelled) or (None if dot else _underscored(spelled, engine))
    if spec is None:
        name = known.neutral(engine, head) + (f".{rest.replace('-', '_')}" if dot else "")
        name, switched = (name[3:], False) if value is None and name.startswith("no_") else (name, True)
    else:
        name, switched = spec[0].name, spec[1]
    if spec and spec[0].type == "secret":
        return Flag(name=name, value=redact.HIDDEN, spelled=spelled, origin=origin)
    if value is None:
        return Flag(name=name, value=switched, spelled=spelled, origin=origin)
    parsed = _value(redact.setting(spelled, value), spec[0].type if spec else "")
    if not switched and isinstance(parsed, bool):
        parsed = not parsed
    return Flag(name=name, value=parsed, spelled=spelled, origin=origin)


def _underscored(spelled: str, engine: str) -> tuple[known.FlagSpec, bool] | None:
    """vLLM and SGLang take --max_num_seqs for --max-num-seqs."""
    return known.by_spelling(engine).get(spelled.replace("_", "-")) if spelled.startswith("--") else None


def _value(text: str, kind: str) -> FlagValue:
    if kind in ("text", "json"):
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _NUMBER.fullmatch(text):
        number = float(text)
        if not possible(number):
            return text  # a word that is refused where a number is wanted
        return int(text) if text.lstrip("-").isdigit() and len(text) < 18 else number
    if kind in ("int", "size") and (match := _SIZE.fullmatch(text)):
        unit = match["unit"]
        # vLLM: 16k is 16,000 and 16K is 16,384.
        return int(float(match["number"]) * (_BINARY[unit] if unit in _BINARY else _DECIMAL[unit]))
    return text
