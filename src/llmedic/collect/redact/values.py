"""One value in the shapes in which programs print values: repr, JSON, JSON inside a string, key=value.

Redaction replaces values and leaves the text around them readable by the same parser as before. So a string
stays a string with the same quotes, a list stays a list, and only what they hold is gone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PLACEHOLDER = re.compile(r"<redacted(?: \d+ (?:characters|items))?>")

_OPENING = re.compile(r"[bBrRuUfF]{0,2}(?P<slashes>\\*)(?P<quote>[\"'])")
_PLAIN_STRING_REST = {
    '"': re.compile(r'(?:[^"\\\n]|\\[^\n])*(?P<close>")'),
    "'": re.compile(r"(?:[^'\\\n]|\\[^\n])*(?P<close>')"),
}
_KEPT = re.compile(r"(?:-?\d[\d.eE+-]*|[Nn]one|null|[Tt]rue|[Ff]alse|nan|NaN)(?![\w<])")
_STRUCTURE = re.compile(r"[\[\](){}\n\"'\\]")
_NUMBERS = re.compile(r"[\s\d,.+-]*")
_ELISION = re.compile(r"\s\.\.\.\s(?=[\[({\"'])")
_CLOSING = {"[": "]", "{": "}", "(": ")"}
_AFTER_STRING = frozenset(" \t\r\n,)]};:.\\\"'|<>&")
_CONTINUES = frozenset(" \t]})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """Where the value ended, and what stands there now. `hidden` is False when there was nothing to hide."""

    end: int
    text: str
    hidden: bool


def replace_value(text: str, start: int, *, key_quote: str) -> Replaced | None:
    """Replace the quoted string, list, object or tuple at `start`; None when something else stands there.

    key_quote is the quote around the key, escapes included: what is put inside a list is quoted the same way.
    A value that is cut off in the middle ends with its line. Two halves joined by " ... " count as one value.
    """
    replaced = _replace_one(text, start, key_quote)
    if replaced is None:
        return None
    while elision := _ELISION.match(text, replaced.end):
        second = _replace_one(text, elision.end(), key_quote)
        if second is None:
            break
        replaced = Replaced(end=second.end, text=replaced.text, hidden=True)
    return replaced


def is_harmless(text: str, start: int) -> bool:
    """Whether a bare number, None, null, true, false or a placeholder stands at `start`."""
    return bool(_KEPT.match(text, start) or PLACEHOLDER.match(text, start))


def line_end(text: str, start: int) -> int:
    """Where the line that `start` is in ends, its newline not included."""
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _replace_one(text: str, start: int, key_quote: str) -> Replaced | None:
    if opening := _OPENING.match(text, start):
        return _replace_string(text, start, opening)
    if text[start : start + 1] in _CLOSING:
        return _replace_group(text, start, key_quote)
    return None


def _replace_string(text: str, start: int, opening: re.Match[str]) -> Replaced:
    body_end, end = _string_end(text, opening)
    body = text[opening.end() : body_end]
    if not body or PLACEHOLDER.fullmatch(body):
        return Replaced(end=end, text=text[start:end], hidden=False)
    quote = opening["slashes"] + opening["quote"]
    return Replaced(end=end, text=f"{text[start : opening.end()]}<redacted {len(body)} characters>{quote}", hidden=True)


def _string_end(text: str, opening: re.Match[str]) -> tuple[int, int]:
    """Where the string's contents end, and where the string does."""
    slashes, quote = opening["slashes"], opening["quote"]
    if not slashes:
        closing = _plain_closing(text, opening.end(), quote)
    else:
        # Inside a string, the quote that closes has as many backslashes as the one that opened; an inner one has more.
        escaped = re.compile(rf"[^\n]*?(?<!\\)(?P<close>\\{{{len(slashes)}}}{quote})")
        closing = escaped.match(text, opening.end())
    if closing is None:
        end = line_end(text, opening.end())
        return end, end
    return closing.start("close"), closing.end()


def _plain_closing(text: str, start: int, quote: str) -> re.Match[str] | None:
    """The quote that closes the string; when in doubt a later one of the line, so that too much is hidden.

    A log line that was packed into JSON has its backslashes doubled, and the apostrophe of 'it\\'s' looks closing.
    """
    closing = None
    position = start
    while found := _PLAIN_STRING_REST[quote].match(text, position):
        closing = found
        position = found.end()
        after = text[position : position + 1]
        if text[position - 2] != "\\" and (not after or after in _AFTER_STRING):
            break
    return closing


def _replace_group(text: str, start: int, key_quote: str) -> Replaced:
    end = _group_end(text, start)
    opener = text[start]
    body = text[start + 1 : end - 1] if text[end - 1] == _CLOSING[opener] else text[start + 1 : end]
    quote = key_quote or "'"
    if not body.strip() or PLACEHOLDER.fullmatch(body.strip(" \\\"':0")):
        return Replaced(end=end, text=text[start:end], hidden=False)
    count = f" {body.count(',') + 1} items" if opener != "{" and _NUMBERS.fullmatch(body) else ""
    inner = f"{quote}<redacted{count}>{quote}"
    filled = f"{inner}: 0" if opener == "{" else inner
    return Replaced(end=end, text=f"{opener}{filled}{_CLOSING[opener]}", hidden=True)


def _group_end(text: str, start: int) -> int:
    """Where the bracket at `start` is closed; the end of the line when it is not, or when a log line intervenes."""
    depth = 0
    position = start
    while mark := _STRUCTURE.search(text, position):
        position = mark.end()
        symbol = mark[0]
        if symbol in "[{(":
            depth += 1
        elif symbol in "]})":
            depth -= 1
            if depth == 0:
                return position
        elif symbol == "\n":
            if text[position : position + 1] not in _CONTINUES:
                break
        elif opening := _OPENING.match(text, mark.start()):
            position = _string_end(text, opening)[1]
    return line_end(text, start)
