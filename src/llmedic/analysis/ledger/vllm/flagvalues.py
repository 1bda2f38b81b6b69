"""The values of vLLM's flags as numbers, words and switches; what the engine would not take is a UsageError."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from llmedic.errors import UsageError
from llmedic.model.deployment import Deployment, FlagValue

ABSURD = 10**9
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([kKmMgGtT])", re.ASCII)
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
"""vLLM reads 16k as 16,000 and 16K as 16,384 (vllm/engine/arg_utils.py, human_readable_int)."""


class FlagValues:
    """The flags of a deployment by engine-neutral name."""

    def __init__(self, deployment: Deployment) -> None:
        self._values: Mapping[str, FlagValue] = {flag.name: flag.value for flag in deployment.flags}

    def given(self, name: str) -> bool:
        """Whether it is set."""
        return self._values.get(name) is not None

    def word(self, name: str) -> str:
        """In lower case; "" when it is not set."""
        value = self._values.get(name)
        return "" if value is None else str(value).strip().lower()

    def switch(self, name: str) -> bool:
        """Whether it is set, and not to "false" or its like."""
        return self.word(name) not in ("", "false", "0", "no", "off")

    def share(self, name: str) -> float | None:
        """A share of the card, above 0 and at most 1; None when it is not set."""
        value = self._values.get(name)
        if value is None:
            return None
        number = _number(name, value)
        if not 0 < number <= 1:
            raise UsageError(f"{name}: {value} is not a share of the card", hint="give more than 0 and at most 1")
        return number

    def count(self, name: str, *, most: int = ABSURD) -> int:
        """A whole number from 1 up; 0 when it is not set."""
        return whole(name, self._values.get(name), most=most)

    def mapping(self, name: str) -> Mapping[str, object]:
        """A JSON object; empty when it is not set."""
        value = self._values.get(name)
        if value is None:
            return {}
        try:
            found = json.loads(str(value))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            hint = 'write it like {"method": "mtp", "num_speculative_tokens": 2}'
            raise UsageError(f"{name} is not a JSON object: {str(value)[:80]}", hint=hint)
        return found


def whole(name: str, value: object, *, most: int = ABSURD) -> int:
    """A whole number from 1 up, "16k" and "16K" included; 0 for None. Raises UsageError for anything else."""
    if value is None:
        return 0
    number = _number(name, value)
    if not 1 <= number <= most or number != int(number):
        raise UsageError(f"{name}: {value} is out of range", hint=f"give a whole number from 1 to {most}")
    return int(number)


def _number(name: str, value: object) -> float:
    text = str(value).strip()
    if match := _SIZE.fullmatch(text):
        return float(int(float(match[1]) * _UNITS[match[2]]))
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(text)
    except ValueError:
        raise UsageError(f"{name}: {text[:80]!r} is not a number") from None
