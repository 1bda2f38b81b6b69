"""The engine itself as a source: its metrics page at both ends of a window, and what its API says about it.

capture     live servers -> raw answers
read_saved  saved metrics pages -> the same raw answers
read        raw answers -> evidence, pure
"""

from llmedic.collect.engine.capture import capture
from llmedic.collect.engine.reading import read
from llmedic.collect.engine.saved import read_saved

__all__ = ["capture", "read", "read_saved"]
