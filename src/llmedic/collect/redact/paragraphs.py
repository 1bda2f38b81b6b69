"""Finds the few lines of a long log in which there could be something to hide.

The careful expressions read about a megabyte a second; a log has hundreds. One pass with every literal that a
secret, a prompt or a caller cannot do without leaves them the paragraphs that matter.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import ahocorasick_rs

Kind = Literal["prompt", "secret", "client"]

_MARKS = (":", "=", '"', "'", "\\", " :", " =", "\t")

# fmt: off
_PROMPT_NAMES = (
    "messages", "prompt", "prompts", "token_ids", "input_ids", "output_ids", "input", "inputs", "input_text",
    "output_text", "generated", "generated_text", "reasoning", "reasoning_content", "text", "texts", "content",
    "output", "outputs", "delta", "query", "queries", "documents", "instruction", "instructions", "arguments", "suffix",
    "completion", "thinking", "response", "logprobs", "image_data", "audio_data", "video_data", "input_value",
)
_PROMPT_PHRASES = (
    "prompt token", "next token", "accepted token", "sampled token",
    "draft token", "inserted token", "parsing chat message",
    "parsing input with", "parsing peg input", "partial parse", ";base64,", "streaming_complete",
)
_SECRET_NAMES = (
    "key", "keys", "key_id", "key-id", "keyid", "secret", "secrets", "password", "passwords", "passwd", "pwd",
    "passphrase", "credential", "credentials", "auth", "signature", "sig", "sas", "token", "tokens", "pass", "pat",
)
# fmt: on
_SECRET_FLAGS = tuple(
    f"{name}{after}"
    for name in ("api-key", "api_key", "api-keys", "-token", "-secret", "-password", "-passwd", "-credentials", "-key")
    for after in (" ", "\0", "\n", ",")
)
_SECRET_PHRASES = (
    *(
        "authorization",
        "cookie",
        "bearer",
        "basic ",
        "digest ",
        "negotiate ",
        "://",
        "value",
        "code=",
        "session",
        "jwt=",
        "x-amz-",
    ),
    *(
        "hf_",
        "sk-",
        "sk_",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xox",
        "akia",
        "asia",
        "aiza",
    ),
    *("eyj", "nvapi-", "gsk_", "r8_", "npm_", "pypi-", "dckr_pat_", "wandb_v1_"),
)
_CLIENT_PHRASES = (
    *(' - "', '] "', "request: ", "[gin]", "client", "remote", "peer", "forwarded", "real_ip", "real-ip", "src_ip"),
    *("srcip", "src-ip", "source_ip", "source-ip", "@"),
)


def _literals() -> tuple[tuple[str, Kind], ...]:
    prompts = {*_PROMPT_PHRASES, *(name + mark for name in _PROMPT_NAMES for mark in _MARKS)}
    secrets = {*_SECRET_PHRASES, *_SECRET_FLAGS, *(name + mark for name in _SECRET_NAMES for mark in _MARKS)}
    return (
        *((literal, "prompt") for literal in sorted(prompts)),
        *((literal, "secret") for literal in sorted(secrets)),
        *((literal, "client") for literal in _CLIENT_PHRASES),
    )


_LITERALS = _literals()
_SCANNER = ahocorasick_rs.AhoCorasick([literal for literal, _ in _LITERALS])

# What starts like this goes on with the line before: pretty-printed JSON, YAML lists, indented tracebacks.
_BREAK = re.compile(r"\n(?<!\\\n)(?![ \t\]})\"\n]|- )")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A line and the lines that belong to it, with what could be in it; nothing to do when `kinds` is empty."""

    start: int
    end: int
    kinds: frozenset[Kind]


def suspicious(text: str) -> Iterable[Paragraph]:
    """The paragraphs of the text, in order, that could hold something to hide."""
    # The literals are ASCII, and one letter stays one letter this way: lower() alone can make two of it.
    lowered = text.encode("ascii", "replace").decode("ascii").lower()
    hits = _SCANNER.find_matches_as_indexes(lowered, overlapping=True)
    if not hits:
        return
    starts = [0, *(found.end() for found in _BREAK.finditer(text))]
    kinds: dict[int, set[Kind]] = {}
    for literal, position, _ in hits:
        kinds.setdefault(bisect_right(starts, position) - 1, set()).add(_LITERALS[literal][1])
    ends = [*starts[1:], len(text)]
    for number in sorted(kinds):
        yield Paragraph(start=starts[number], end=ends[number], kinds=frozenset(kinds[number]))
