"""What the terminal in front of us can show."""

from __future__ import annotations

import os
import shutil
import sys


def colour() -> bool:
    """Whether standard output is a terminal that may be coloured."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def width() -> int:
    """80 columns, or what the terminal has, up to a line that is still read easily."""
    columns = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80
    return max(60, min(columns, 100))
