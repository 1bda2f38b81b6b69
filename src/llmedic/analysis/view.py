"""Evidence, indexed for rules: one number per quantity, with the fact that shows where it came from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING

from llmedic.knowledge.conditions import Quantity
from llmedic.model import units
from llmedic.model.deployment import Flag, FlagValue, ModelFacts
from llmedic.model.evidence import Evidence, KubernetesFact, LogEvent
from llmedic.model.finding import Fact
from llmedic.model.observation import Change, Observation, Quantiles, Series, Value

if TYPE_CHECKING:
    from llmedic.analysis.ledger.vllm.candidate import Candidate
    from llmedic.model.ledger import Ledger

SOURCES = ("metrics", "engine", "prometheus", "process", "probe", "case", "requests", "bench", "log")
"""Whom to believe first when several sources give the same name: live counters before log lines."""
LARGEST = 1e18
"""A file can hold any number; beyond this it is no size, rate or time of anything."""
BEFORE = ("previous", "baseline")
"""What a value is compared with unless a rule asks for the lifetime, which contains the window and every past day."""
STATED = frozenset({"args", "process", "log", "case", "server-info"})
"""Origins that list what the user set: a flag that is missing there has its default."""
WHOLE = frozenset({"args", "process", "server-info"})
"""Origins that list all of it; of a case or a log there may be an excerpt only."""
DIVIDING = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
"""Settings that tell over how many cards a model is divided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A number and the fact that shows it."""

    number: float
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A value before and after, where the before was found, and the observation it is about."""

    before: float
    after: float
    origin: str
    observation: Observation


class View:
    """Looks quantities up in evidence. `default` gives a flag's default for the engine and version in use."""

    def __init__(self, evidence: Evidence, default: Callable[[str], FlagValue] = lambda _: None) -> None:
        self.evidence = evidence
        self._default = default
        self._observations: dict[tuple[str, str, str], list[Observation]] = defaultdict(list)
        for observation in evidence.observations:
            key = observation.name, observation.period, observation.instance
            self._observations[key].append(observation)
        for found in self._observations.values():
            found.sort(key=lambda o: SOURCES.index(o.source) if o.source in SOURCES else len(SOURCES))
        self.events: dict[str, list[LogEvent]] = defaultdict(list)
        for event in evidence.events:
            self.events[event.id].append(event)
        self.flags: dict[str, Flag] = {flag.name: flag for flag in reversed(evidence.deployment.flags)}
        self.flags_stated = any(flag.origin in STATED for flag in evidence.deployment.flags)

    @cached_property
    def server(self) -> Candidate | None:
        """The memory of the vLLM server that this is about; None where its model or its share of it is not known."""
        if not self.knows_shards:
            return None
        from llmedic.analysis.ledger import deployed

        evidence = self.evidence
        return deployed.server(
            evidence.deployment,
            evidence.events,
            blocks=self.number("kv_blocks_count"),
            pool_gib=self.number("kv_cache_gib"),
        )

    @cached_property
    def startup(self) -> Ledger | None:
        """The ledger of the start that failed; None where no log and nobody says so, or not for want of memory."""
        logged = any(event.level in ("error", "fatal") and not event.is_echo for event in self.evidence.events)
        said = "start-fails" in self.evidence.symptoms.seen and self.server is not None
        if not logged and not said:
            return None
        from llmedic.analysis.ledger import witness

        deployment = self.evidence.deployment
        if not self.knows_shards:
            # What the log prints counts all the same: only the model's arithmetic would be of the wrong share.
            unnamed = tuple(flag for flag in deployment.flags if flag.name != "model")
            deployment = replace(deployment, model=ModelFacts(), flags=unnamed)
        return witness.failed(deployment, self.evidence.events, said=said)

    @cached_property
    def knows_shards(self) -> bool:
        """Whether it is known over how many cards the model is divided: a machine with several may use any of them."""
        several = (self.evidence.deployment.hardware.count or 1) > 1
        named = any(flag.name in DIVIDING or flag.origin in WHOLE for flag in self.evidence.deployment.flags)
        return named or not several

    def observation(self, name: str, period: str = "window", instance: str = "") -> Observation | None:
        """The most trusted observation of that name, or None."""
        found = self._observations.get((name, period, instance))
        return found[0] if found else None

    def all_of(self, name: str, period: str = "window") -> list[Observation]:
        """Every source's observation of the service-level value."""
        return list(self._observations.get((name, period, ""), ()))

    def instances(self, name: str, period: str = "window") -> dict[str, Observation]:
        """The observation of each replica or data-parallel engine."""
        return {
            instance: found[0]
            for (key, when, instance), found in self._observations.items()
            if key == name and when == period and instance
        }

    def change(self, name: str, statistic: str = "typical", against: Sequence[str] = BEFORE) -> Move | None:
        """How a value moved: from its own before-value, else from the first period of `against` that has it."""
        now = self.observation(name)
        if now is None:
            return None
        if isinstance(now.value, Change):
            return _move(now.value.before, now.value.after, statistic, "before", now)
        earlier = (found for period in against if (found := self.observation(name, period)) is not None)
        moves = (_move(one.value, now.value, statistic, one.period, now) for one in earlier)
        return next((move for move in moves if move is not None), None)

    def read(self, quantity: Quantity) -> Reading | None:
        """The number that a quantity stands for; None when it was not seen."""
        match quantity.where:
            case "observation":
                return self._observed(quantity)
            case "flag":
                return self._number_fact(str(quantity), self.flag(quantity.name), source=self.origin(quantity.name))
            case "log":
                return self._logged(quantity)
            case _:
                return self._number_fact(str(quantity), self.fact(str(quantity)), source="facts")

    def number(self, name: str, statistic: str = "typical", period: str = "window") -> float | None:
        """Shorthand for an observation's statistic."""
        reading = self.read(Quantity(where="observation", name=name, statistic=statistic, period=period))
        return reading.number if reading else None

    def flag(self, name: str) -> FlagValue:
        """The flag's value, its default when the user's settings are known and do not name it, else None."""
        if name in self.flags:
            return self.flags[name].value
        return self._default(name) if self.flags_stated else None

    def setting(self, name: str) -> float | None:
        """The flag's value where it is a number, else None."""
        return as_number(self.flag(name))

    def size(self, path: str) -> float | None:
        """A fact where it is a number, else None."""
        return as_number(self.fact(path))

    def knows_flag(self, name: str) -> bool:
        """Whether the flag's state is known, set or not."""
        return name in self.flags or self.flags_stated

    def origin(self, name: str) -> str:
        """Where the flag's value was read."""
        return self.flags[name].origin if name in self.flags else "default"

    @property
    def has_log(self) -> bool:
        """Whether any log was read, so that a line that is not there says something."""
        return self.evidence.log_lines > 0

    def kubernetes(self, path: str) -> list[KubernetesFact]:
        """The leaves whose dotted path ends in `path` or passes through it."""
        wanted = f".{path}."
        return [leaf for leaf in self.evidence.kubernetes if wanted in f".{leaf.path}."]

    def fact(self, path: str) -> object:
        """A fact by its dotted path ("hardware.count", "model.name", "model.rope_scaling.factor"), or None."""
        head, _, tail = path.partition(".")
        deployment = self.evidence.deployment
        if head == "hardware":
            found = getattr(deployment.hardware, tail, None)
            return None if found == "" else found
        if head == "model" and tail == "name":
            return deployment.model.name or None
        if head == "model":
            return _nested(deployment.model.config, tail)
        if head == "environment":
            return deployment.environment.get(tail)
        return getattr(deployment, head, "") or None

    def _observed(self, quantity: Quantity) -> Reading | None:
        observation = self.observation(quantity.name, quantity.period)
        number = statistic(observation.value, quantity.statistic) if observation else None
        if observation is None or number is None:
            return None
        return Reading(number=number, fact=fact_of(observation, quantity.statistic, number))

    def _logged(self, quantity: Quantity) -> Reading | None:
        for event in self.events.get(quantity.name, ()):
            found = event.fields.get(quantity.statistic)
            if isinstance(found, float | int):
                return self._number_fact(quantity.statistic, found, source=event.source)
        return None

    @staticmethod
    def _number_fact(name: str, found: object, *, source: str) -> Reading | None:
        number = as_number(found)
        if number is None:
            return None
        return Reading(number=number, fact=Fact(name=name, value=units.show(number), source=source))


def fact_of(observation: Observation, statistic: str, number: float, compared_to: str = "") -> Fact:
    """The observation's statistic as a fact to show."""
    name = observation.name if statistic in ("typical", "") else f"{observation.name} {statistic}"
    window = f"{observation.window_s:.0f} s" if observation.window_s else ""
    if observation.period != "window":
        window = f"{observation.period} {window}".strip()
    return Fact(
        name=name,
        value=units.show(number, observation.unit),
        unit=observation.unit,
        window=window,
        source=observation.source,
        compared_to=compared_to,
    )


def is_measured(number: float) -> bool:
    """Whether a number can have been measured: NaN and infinity cannot, whatever size of number Python holds."""
    return abs(number) < LARGEST


def as_number(found: object) -> float | None:
    """What was written somewhere, if it is a number that something can be computed with."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if is_measured(found) else None


def statistic(value: Value, name: str) -> float | None:
    """One number out of a value; None when the value does not have it.

    "typical" is the number itself, the mean (else the median) of a distribution, the mean of a series, and
    the after-side of a change. Infinity and NaN are no measurements: a value that is one of them was not seen.
    """
    if isinstance(value, Change):
        return statistic(value.after, name)
    if isinstance(value, Series):
        points = [number for _, number in value.points if is_measured(number)]
        return _of_series(points, name) if points else None
    found = _of_quantiles(value, name) if isinstance(value, Quantiles) else None if name == "spread" else float(value)
    return found if found is not None and is_measured(found) else None


def pair(before: Value, after: Value, name: str) -> tuple[float, float] | None:
    """The same statistic of two values; None when they do not both have it.

    A distribution without its mean stands for itself by another statistic, but never a median against a P99.
    """
    if isinstance(before, Quantiles) and isinstance(after, Quantiles):
        for field in _fields(name):
            first, second = getattr(before, field), getattr(after, field)
            if first is not None and second is not None and is_measured(first) and is_measured(second):
                return first, second
        return None
    first, second = statistic(before, name), statistic(after, name)
    return None if first is None or second is None else (first, second)


def _move(before: Value, after: Value, name: str, origin: str, about: Observation) -> Move | None:
    found = pair(before, after, name)
    return Move(before=found[0], after=found[1], origin=origin, observation=about) if found else None


def _of_series(values: Sequence[float], name: str) -> float | None:
    match name:
        case "typical" | "mean":
            return fmean(values)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "first":
            return values[0]
        case "last":
            return values[-1]
        case "spread":
            return max(values) - min(values)
        case _:
            return sorted(values)[min(len(values) - 1, int(len(values) * float(name.removeprefix("p")) / 100))]


def _of_quantiles(value: Quantiles, name: str) -> float | None:
    return next((found for field in _fields(name) if (found := getattr(value, field)) is not None), None)


def _fields(name: str) -> tuple[str, ...]:
    """The fields of a distribution that can stand for a statistic, the best first."""
    match name:
        case "typical" | "mean" | "last":
            return ("mean", "p50", "p90", "p99", "max")
        case "max":
            return ("max", "p99", "p95", "p90")
        case "min" | "p50" | "p90" | "p95" | "p99":
            return (name,)
        case _:
            return ()


def _nested(tree: object, path: str) -> object:
    for key in path.split("."):
        if not isinstance(tree, Mapping) or key not in tree:
            return None
        tree = tree[key]
    return tree
