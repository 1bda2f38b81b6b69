"""Text from outside, where it is shown: a log line or a file name must not steer the terminal that shows it."""

from __future__ import annotations

STEERING = dict.fromkeys(
    (*range(9), *range(11, 32), *range(127, 160), 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
)
"""What moves the cursor, colours the terminal or turns the direction of the text; tab and line feed do not."""


def plain(text: str) -> str:
    """The text without anything that steers a terminal."""
    return text.translate(STEERING)


def escaped(document: str) -> str:
    """A JSON document with the same letters spelled as JSON spells them."""
    return document.translate({letter: f"\\u{letter:04x}" for letter in STEERING})
