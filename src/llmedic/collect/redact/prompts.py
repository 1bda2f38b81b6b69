"""What people asked and what the model answered, as engines print it: found by the names it is printed under.

Request logs are switched on while an incident is being looked at, so bundles of incidents have prompts in them.
Chat templates are not prompts: they stay, since a wrong one is a cause.
"""

from __future__ import annotations

import re

from llmedic.collect.redact.values import is_harmless, line_end, replace_value

# Under these names nothing but a prompt or an answer is printed.
_ALWAYS = (
    "messages|prompts?|prompt_token_ids|output_token_ids|token_ids|input_ids|output_ids|inputs|input_text|output_text|"
    "generated|generated_text|reasoning|reasoning_content|system_prompt|prompt_logprobs|image_data|audio_data|video_data"
)
# These are common words: they count only before a quoted string, a list or an object.
_WHEN_QUOTED = (
    r"text|texts|content|output|outputs|input|delta|query|queries|documents|instruction|instructions|arguments|suffix|"
    r"completion|thinking|response|logprobs|top_logprobs|\w+_prompt|input_value"
)
_KEY = re.compile(
    rf"""(?<![\w.\-])(?P<quote>(?:\\*["'])?)"""
    rf"""(?P<name>chat_template|(?P<always>{_ALWAYS})|{_WHEN_QUOTED})(?P=quote)(?P<mark>\s*[:=]\s*)"""
)
_BARE_WORD = re.compile(r"[^\s&,)\]}\"'<]+")
_LINE_HEAD = re.compile(r"[ \t]*(?:- )?\Z")
_BLOCK_SCALAR = re.compile(
    r"[|>][+-]?\d*[ \t]*\n(?P<body>(?P<indent>[ \t]+)[^\n]*(?:\n(?:(?P=indent)[^\n]*|[ \t]*(?=\n)))*)"
)

_REST_OF_LINE = re.compile(
    # llama.cpp with -v: one token, one partial answer or one raw answer a line.
    r"(?P<kept>\b(?:prompt|next|accepted|sampled|draft|inserted) token[ \d]*:\s*-?\d+ |"
    r"\bParsing (?:chat message|input with format [^:\n]+|PEG input with format [^:\n]+): |\bPartial parse: )"
    r"(?P<hidden>[^\n]+)"
)
# A value between two marks of a line, its own quotes broken: up to the first end, and up to the last.
_CUT_VALUE = (re.compile(r"\binput_value="), re.compile(r", input_type="), 0)
_STREAMED = (re.compile(r"\bstreaming_complete: content="), re.compile(r", chunks=\d"), -1)
_DATA_URL = re.compile(r"(?P<kept>\bdata:[\w.+-]+/[\w.+-]+;base64,)(?P<hidden>[A-Za-z0-9+/=_-]+)")
_SIMPLE = (_REST_OF_LINE, _DATA_URL)


def hide_prompts(text: str) -> tuple[str, int]:
    """The text without prompts and answers, and how many values were hidden."""
    hidden = 0
    for opening, closing, which in (_CUT_VALUE, _STREAMED):
        text, count = _hide_between(opening, closing, which, text)
        hidden += count
    for pattern in _SIMPLE:
        text, count = _hide_group(pattern, text)
        hidden += count
    text, count = _hide_by_name(text)
    return text, hidden + count


def _hide_group(pattern: re.Pattern[str], text: str) -> tuple[str, int]:
    count = 0

    def replacement(match: re.Match[str]) -> str:
        nonlocal count
        if is_harmless(match["hidden"], 0):
            return match[0]
        count += 1
        return f"{match['kept']}<redacted>"

    return pattern.sub(replacement, text), count


def _hide_between(opening: re.Pattern[str], closing: re.Pattern[str], which: int, text: str) -> tuple[str, int]:
    """Every line is looked through once: as one expression, this would try every end for every beginning."""
    parts: list[str] = []
    done = 0
    count = 0
    position = 0
    while start := opening.search(text, position):
        end = line_end(text, start.end())
        ends = [match.start() for match in closing.finditer(text, start.end(), end)]
        position = ends[which] if ends else end
        if ends and position > start.end() and not is_harmless(text, start.end()):
            parts += (text[done : start.end()], "<redacted>")
            done = position
            count += 1
    return "".join((*parts, text[done:])), count


def _hide_by_name(text: str) -> tuple[str, int]:
    parts: list[str] = []
    done = 0
    hidden = 0
    position = 0
    while key := _KEY.search(text, position):
        replaced = replace_value(text, key.end(), key_quote=key["quote"])
        if key["name"] == "chat_template":
            position = replaced.end if replaced else key.end()
            continue
        end, shown = (replaced.end, replaced.text) if replaced else _replace_bare(text, key)
        changed = shown != text[key.end() : end]
        hidden += changed
        parts += (text[done : key.end()], shown)
        done = position = end
    return "".join((*parts, text[done:])), hidden


def _replace_bare(text: str, key: re.Match[str]) -> tuple[int, str]:
    """An unquoted value: one word after `name=`, the whole line (or YAML block) after a `name:` that opens a line."""
    start = key.end()
    if not key["always"] or is_harmless(text, start):
        return start, ""
    if key["mark"] == "=":
        word = _BARE_WORD.match(text, start)
        return (word.end(), "<redacted>") if word else (start, "")
    opens_line = _LINE_HEAD.search(text, text.rfind("\n", 0, key.start()) + 1, key.start())
    if "\n" in key["mark"] or ":" not in key["mark"] or not opens_line:
        return start, ""
    if block := _BLOCK_SCALAR.match(text, start):
        return block.end(), "<redacted>"
    end = line_end(text, start)
    return (end, "<redacted>") if text[start:end].strip() else (start, "")
