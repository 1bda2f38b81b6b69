"""The shape of the data files. Unknown keys fail at load: a misspelt rule must never be a silent one."""

from __future__ import annotations

from typing import Literal

import msgspec

from llmedic.model.evidence import Level
from llmedic.model.finding import Witness
from llmedic.model.verdict import Severity


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every record: frozen, by keyword, strict."""


class Text(Record, frozen=True):
    """A sentence in both languages."""

    en: str
    zh: str

    def say(self, lang: Literal["en", "zh"]) -> str:
        """The sentence in one of them."""
        return self.zh if lang == "zh" else self.en


class Advice(Record, frozen=True):
    """One change of one variable.

    variable  an engine-neutral flag name (`max_num_seqs`), or a thing outside the engine ("gateway read timeout")
    value     name of a function of `analysis.change` that computes the new value; empty: no number is claimed
    expected  what should happen after it; verify: the command that shows it

    How the variable is typed, and whether an engine and release have it at all, is in `knowledge/data/flags.yaml`.
    """

    variable: str
    expected: Text
    verify: str
    value: str = ""


class CauseText(Record, frozen=True):
    """A cause of the closed list.

    explains  causes and symptoms downstream that this one brings about: they are shown beneath it
    """

    id: str
    layer: Literal["load", "capacity", "hardware", "params", "deployment", "gateway"]
    severity: Severity
    title: Text
    what: Text
    decided_by: Text
    remedy: Text
    change: Advice
    explains: tuple[str, ...] = ()
    destroys_evidence: bool = False
    """The usual remedy is a restart: the report says to take a snapshot first."""


class LogPattern(Record, frozen=True):
    """A line that an engine, the driver or the kernel prints.

    literal   a substring every matching line has: the scanner looks for it first (case-sensitive, ASCII)
    regex     optional; groups become the event's fields; numbers are turned into floats
    engine    who prints it: vllm, sglang, llama.cpp, tgi, ollama, nccl, cuda, driver, kernel, python, proxy, kubernetes
    versions  which releases print it, as read in their sources ("0.6.0-0.8.5", "0.9.2 and later", "all sampled")
    where     file in the source tree, or the vendor's page
    level     what the line means; a fatal one ends a process
    echo      only repeats an earlier error, never a cause of its own
    phase     start, load, run or any: when it is printed
    cause     the cause it speaks for, with confidence; empty when a rule has to decide
    observes  vocabulary name -> field: the line is a measurement
    sets      flag name -> field: the line tells a setting
    facts     fact path -> field ("hardware.memory_gib", "engine.version")
    series    the line is one sample of a time series (the 10-second statistics)
    begins    a server prints it as it begins: after a load or an error, a new start of it
    """

    id: str
    literal: str
    engine: str
    versions: str
    where: str
    level: Level
    regex: str = ""
    echo: bool = False
    phase: Literal["start", "load", "run", "any"] = "any"
    cause: str = ""
    confidence: float = 0.0
    observes: dict[str, str] = {}
    sets: dict[str, str] = {}
    facts: dict[str, str] = {}
    series: bool = False
    begins: bool = False
    example: str = ""


class Word(Record, frozen=True):
    """An observation's name."""

    name: str
    unit: str
    meaning: Text


class Rule(Record, frozen=True):
    """A condition over the evidence that speaks for or against a cause.

    confidence      how often the cause is right when this fires and nothing else is known; below 0.5 it speaks against
    when            the condition (see `knowledge.conditions`)
    false_positives known ways in which it fires wrongly

    The evidence that fires it, leaves it quiet or leaves it unknown is in `tests/rules`: a diagnosis does not need it.
    """

    id: str
    cause: str
    witness: Witness
    confidence: float
    when: dict[str, object]
    references: tuple[str, ...] = ()
    false_positives: str = ""
