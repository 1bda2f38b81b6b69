"""Reading config.json as what it should be: every field is checked when it is read, and a fault names the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmedic.errors import InputError

Switch = bool | tuple[str, bool]
"""A convention that always holds, or the field that decides and what holds when the field is absent."""

HINT = "give the config.json that belongs to the weights, unchanged, or name the model instead"

MOST_LAYERS = 2_000
MOST_HEADS = 65_536
MOST_EXPERTS = 65_536
MOST_WIDTH = 2**24
MOST_TOKENS = 2**40


def fault(message: str) -> InputError:
    """The error for a configuration that cannot be that of a model."""
    return InputError(f"the model's configuration: {message}", hint=HINT)


class Fields:
    """One level of a config.json. A null is an absent field, as transformers treats it.

    `known` holds what the model type's own defaults say for fields that a nested section may omit.
    """

    def __init__(self, values: Mapping[str, object], path: str = "", known: Mapping[str, object] | None = None) -> None:
        self.values = values
        self.path = path
        self._known = known or {}

    def get(self, *names: str) -> object:
        """The first of `names` that has a value, as it stands; None when none has. A null hides the default."""
        source = self.values if any(name in self.values for name in names) else self._known
        return next((value for name in names if (value := source.get(name)) is not None), None)

    def has(self, *names: str) -> bool:
        """One of `names` has a value."""
        return self.get(*names) is not None

    def _shown(self, *names: str) -> str:
        found = next((name for name in names if self.values.get(name) is not None), names[0])
        return f"{self.path}{found}"

    def optional(self, *names: str, least: int = 1, most: int = MOST_WIDTH) -> int | None:
        """A whole number, None when absent; `InputError` when it is no whole number within the limits."""
        value = self.get(*names)
        return None if value is None else whole(value, self._shown(*names), least, most)

    def count(self, *names: str, default: int | None = None, least: int = 1, most: int = MOST_WIDTH) -> int:
        """A whole number that must be there unless there is a `default`."""
        value = self.optional(*names, least=least, most=most)
        if value is None:
            value = default
        if value is None:
            raise fault(f"{self._shown(*names)} is missing")
        return value

    def first(self, *names: str, default: int | None = None, least: int = 1, most: int = MOST_WIDTH) -> int:
        """A whole number, or the largest of a list with one for each layer or modality."""
        if isinstance(self.get(*names), list | tuple) and (found := self.counts(*names, least=least, most=most)):
            return max(found)
        return self.count(*names, default=default, least=least, most=most)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A boolean."""
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise fault(f"{self._shown(name)} must be true or false, not {shown(value)}")
        return value

    def switch(self, switch: Switch) -> bool:
        """What a convention says for this model."""
        return switch if isinstance(switch, bool) else self.flag(switch[0], default=switch[1])

    def text(self, *names: str, default: str = "") -> str:
        """A string."""
        value = self.get(*names)
        if value is None:
            return default
        if not isinstance(value, str):
            raise fault(f"{self._shown(*names)} must be a text, not {shown(value)}")
        return value

    def items(self, *names: str, length: int | None = None) -> Sequence[object] | None:
        """A list, None when absent; of `length` entries at least when that is given."""
        value = self.get(*names)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise fault(f"{self._shown(*names)} must be a list, not {shown(value)}")
        if length is not None and len(value) != length:
            raise fault(f"{self._shown(*names)} has {len(value)} entries for {length} layers")
        return value

    def words(self, *names: str, length: int | None = None) -> tuple[str, ...] | None:
        """A list of strings, None when absent."""
        found = self.items(*names, length=length)
        if found is None:
            return None
        for value in found:
            if not isinstance(value, str):
                raise fault(f"{self._shown(*names)} must hold texts, not {shown(value)}")
        return tuple(str(value) for value in found)

    def counts(
        self, *names: str, length: int | None = None, least: int = 0, most: int = MOST_WIDTH
    ) -> tuple[int, ...] | None:
        """A list of whole numbers, None when absent."""
        found = self.items(*names, length=length)
        if found is None:
            return None
        return tuple(whole(value, self._shown(*names), least, most) for value in found)

    def section(self, *names: str, known: Mapping[str, object] | None = None) -> Fields | None:
        """A nested mapping, None when absent."""
        value = self.get(*names)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise fault(f"{self._shown(*names)} must be a section of fields, not {shown(value)}")
        return Fields(value, f"{self._shown(*names)}.", known)


def whole(value: object, name: str, least: int, most: int) -> int:
    """`value` as a whole number between `least` and `most`, else `InputError` that names the field."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise fault(f"{name} must be a whole number, not {shown(value)}")
    if not least <= value <= most:
        raise fault(f"{name} must be between {least} and {most}, not {shown(value)}")
    return value


def shown(value: object) -> str:
    """A wrong value in few characters."""
    if isinstance(value, Mapping):
        return "a section"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**18:
        return "a number of more than 18 digits"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def divided(total: int, parts: int, what: str) -> int:
    """`total / parts`, which must come out even."""
    if total % parts:
        raise fault(f"{what}: {total} does not divide by {parts}")
    return total // parts
