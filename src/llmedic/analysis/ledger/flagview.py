"""Flags of a deployment by name, as the numbers and words that an engine makes of them."""

from __future__ import annotations

from collections.abc import Mapping

from llmedic.errors import InputError
from llmedic.knowledge import flags, releases
from llmedic.model.deployment import Deployment, FlagValue
from llmedic.model.ledger import Setting
from llmedic.model.numbers import LARGEST, possible

_NO = ("off", "false", "0", "no", "none", "disabled")


class Flags:
    """What was set, by engine-neutral name; every reader takes several names, the first one that is set counts."""

    def __init__(self, deployment: Deployment) -> None:
        self._values: Mapping[str, FlagValue] = {flag.name: flag.value for flag in deployment.flags}

    def given(self, *names: str) -> bool:
        """Whether one of them is set to something."""
        return self.value(*names) is not None

    def value(self, *names: str) -> FlagValue:
        """The value of the first one that is set."""
        return next((self._values[name] for name in names if self._values.get(name) is not None), None)

    def word(self, *names: str, default: str = "") -> str:
        """As text in lower case."""
        found = self.value(*names)
        return default if found is None else _said(found)

    def number(self, *names: str, default: float = 0.0, low: float = 0.0) -> float:
        """As a number. Raises InputError when it is none, below `low`, or beyond what a server can have."""
        name = next((name for name in names if self.given(name)), names[0])
        found = self.value(name)
        if found is None:
            return default
        try:
            number = float(found)
        except OverflowError:
            number = float("inf")
        except ValueError:
            raise InputError(f"{name}: {found!r} is not a number", hint="give a number, such as 8192 or 0.9") from None
        if number < low or not possible(number):
            hint = f"give a number from {low:g} up" if number < low else f"give a number below {LARGEST:g}"
            raise InputError(f"{name}: {_said(found)} is out of range", hint=hint)
        return number

    def count(self, *names: str, default: int = 0, low: int = 0) -> int:
        """As a whole number, cut. Raises InputError as `number` does."""
        return int(self.number(*names, default=default, low=low))

    def switch(self, *names: str, default: bool = False) -> bool:
        """As yes or no ("on", "off", "1", a bare flag)."""
        found = self.value(*names)
        return default if found is None else _said(found) not in _NO


def shown(deployment: Deployment, used: Mapping[str, str]) -> tuple[Setting, ...]:
    """Settings by engine-neutral name as they were used -> as they are typed, with who set them; "" is left out."""
    origins = {flag.name: flag.origin for flag in deployment.flags if flag.value is not None}
    found = []
    for name, value in used.items():
        typed = flags.typed(name, deployment.engine, deployment.version) or name
        origin = origins.get(name)
        said = "default" if origin is None else "log" if origin == "log" else "given"
        if value:
            found.append(Setting(flag=typed, value=value, origin=said))
    return tuple(found)


def assumed_release(deployment: Deployment) -> tuple[str, ...]:
    """The note that no release was named; () where one was."""
    return () if releases.numbers(deployment.version) else ("no release was given: computed for a current one",)


def _said(value: FlagValue) -> str:
    """A value as it was typed: a log's "0" arrives as a number."""
    return f"{value:g}" if isinstance(value, float) else str(value).strip().lower()
