"""Which engine a command line starts: its program, module, image or variables name it, else a flag only it has."""

from __future__ import annotations

import re

from llmedic.knowledge import flags, otherflags

_PROGRAM = re.compile(
    r"""(?:^|[\s"'/=@])(vllm|sglang|llama-server|llama-cli|llama\.cpp|text-generation-(?:launcher|inference)|ollama)"""
    r"""(?=[\s"':./_]|$)""",
    re.ASCII | re.IGNORECASE,
)
_OF_PROGRAM = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llama-server": "llama.cpp",
    "llama-cli": "llama.cpp",
    "llama.cpp": "llama.cpp",
    "text-generation-launcher": "tgi",
    "text-generation-inference": "tgi",
    "ollama": "ollama",
}
_FLAG = re.compile(r"""(?:^|[\s"'])(-{1,2}[A-Za-z][\w.-]*)""", re.ASCII)
_ENGINES = ("vllm", "sglang", "llama.cpp", "tgi")


def engine_of(command_line: str) -> str:
    """The engine that is started; "" where neither a program nor a flag tells."""
    program = _PROGRAM.search(command_line)
    if program is not None:
        return _OF_PROGRAM[program[1].lower()]
    for flag in _FLAG.findall(command_line):
        having = [engine for engine in _ENGINES if _has(engine, flag)]
        if len(having) == 1:
            return having[0]
    return ""


def _has(engine: str, flag: str) -> bool:
    return flag in flags.by_spelling(engine) or flag in otherflags.takes_value(engine)
