"""The condition language of rules: threshold, ratio, change, trend, pattern, setting, fact, symptom, absence, logic.

This is all there is. Anything more is a named, typed predicate in `analysis.predicates`. A condition is written as a
mapping whose first key says its kind; unknown kinds and unknown keys fail at load.

A quantity is written as a dotted name:
    requests_running.max        a statistic of an observation (`STATISTICS`), of the window unless a period leads:
    previous.ttft_s.p99         "previous.", "lifetime." or "baseline."
    flag.max_num_seqs           a setting
    hardware.memory_gib         a fact of the machine
    model.rope_scaling.factor   a key of the model's configuration
    log.ID.FIELD                a field of a recognised log line
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from llmedic.errors import KnowledgeError

STATISTICS = ("typical", "mean", "p50", "p90", "p95", "p99", "min", "max", "first", "last", "spread")
BOUNDS = ("above", "at_least", "below", "at_most", "equals")
TRENDS = ("rising", "falling", "flat", "constant", "recovered")
PERIODS = ("window", "previous", "lifetime", "baseline")

Trend = Literal["rising", "falling", "flat", "constant", "recovered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number to be looked up: where (observation, flag, hardware, model, log), its name and statistic or field."""

    where: str
    name: str
    statistic: str = "typical"
    period: str = "window"

    def __str__(self) -> str:
        prefix = "" if self.where == "observation" else f"{self.where}."
        period = "" if self.period == "window" else f"{self.period}."
        suffix = "" if self.statistic == "typical" else f".{self.statistic}"
        return f"{period}{prefix}{self.name}{suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits for a number; every one that is given must hold."""

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    equals: float | None = None

    def hold(self, number: float) -> bool:
        """Whether `number` keeps every given bound."""
        return (
            (self.above is None or number > self.above)
            and (self.at_least is None or number >= self.at_least)
            and (self.below is None or number < self.below)
            and (self.at_most is None or number <= self.at_most)
            and (self.equals is None or number == self.equals)
        )

    def __str__(self) -> str:
        signs = {"above": ">", "at_least": "≥", "below": "<", "at_most": "≤", "equals": "="}
        given = ((sign, getattr(self, name)) for name, sign in signs.items())
        return " and ".join(f"{sign} {bound:g}" for sign, bound in given if bound is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """{value: QUANTITY, above: N, …}"""

    quantity: Quantity
    bounds: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """{ratio: [QUANTITY, QUANTITY], above: N, …}: the first divided by the second."""

    numerator: Quantity
    denominator: Quantity
    bounds: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """{changed: NAME[.STATISTIC], above: N, against: [PERIODS], …}: after divided by before.

    Before is the observation's own before-value, else the first of `against` that was seen (the previous window, then
    the stored baseline). "lifetime" has to be asked for: it contains the window and every past incident.
    """

    quantity: Quantity
    bounds: Bounds
    against: tuple[str, ...] = ("previous", "baseline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trending:
    """{trend: NAME, is: rising}: the direction of a series over the window (see `analysis.trends`)."""

    name: str
    trends: tuple[Trend, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """{log: ID or [IDs], phase: load, first: true}: a recognised line; `first` leaves echoes out."""

    ids: tuple[str, ...]
    phases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """{flag: NAME, is: VALUE | in: [VALUES] | set: BOOL | above: N …}: a setting, its default where nobody set it."""

    name: str
    values: tuple[object, ...] = ()
    contains: tuple[str, ...] = ()
    is_set: bool | None = None
    bounds: Bounds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactIs:
    """{fact: PATH, contains: [WORDS]}: a textual fact (accelerator, interconnect, model name, configuration key)."""

    path: str
    contains: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """{seen: ID or [IDs]}, {when: …}, {not_when: …}: what a person ticked; any of the ids."""

    kind: Literal["seen", "when", "not_when"]
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineIs:
    """{engine: NAME or [NAMES], since: "0.8", before: "0.12"}"""

    engines: tuple[str, ...]
    since: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InKubernetes:
    """{kubernetes: PATH, is: VALUE | contains: [WORDS] | absent: true | above: N}: a leaf of a Kubernetes object."""

    path: str
    values: tuple[object, ...] = ()
    contains: tuple[str, ...] = ()
    absent: bool = False
    bounds: Bounds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """{absent: NAME}: nobody observed it. Never unknown."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """{present: QUANTITY}: somebody observed it, whatever its value. Unknown where nobody did."""

    quantity: Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """{predicate: NAME}: a typed function of `analysis.predicates`."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class All:
    """{all: [CONDITIONS]}"""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """{any: [CONDITIONS]}"""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    """{not: CONDITION}"""

    part: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Unless:
    """{unless: CONDITION}: holds when the condition is false *or not known*: for exceptions that need no proof."""

    part: Condition


Condition = (
    Threshold | Ratio | Changed | Trending | Logged | Setting | FactIs | Ticked | EngineIs | InKubernetes | Absent
    | Present | Predicate | All | AnyOf | Not | Unless
)  # fmt: skip


def parse(raw: object, where: str) -> Condition:
    """The condition that a data file wrote.

    Raises:
        KnowledgeError: unknown kind, unknown or missing keys; `where` names the rule.
    """
    if not isinstance(raw, Mapping) or not raw:
        raise KnowledgeError(f"{where}: a condition is a mapping, not {raw!r}")
    keys = cast("dict[str, object]", dict(raw))
    kind = next((name for name in PARSERS if name in keys), None)
    if kind is None:
        raise KnowledgeError(f"{where}: no kind of condition in {sorted(keys)}")
    condition = PARSERS[kind](keys, where)
    if keys:
        raise KnowledgeError(f"{where}: unknown keys {sorted(keys)} in a '{kind}' condition")
    return condition


def quantity(text: object, where: str) -> Quantity:
    """The quantity that a dotted name stands for."""
    if not isinstance(text, str) or not text:
        raise KnowledgeError(f"{where}: a quantity is a dotted name, not {text!r}")
    period, _, rest = text.partition(".")
    if period not in PERIODS or not rest:
        period, rest = "window", text
    head, _, tail = rest.partition(".")
    if head in ("flag", "hardware", "model"):
        return Quantity(where=head, name=tail, period=period)
    if head == "log":
        pattern, _, group = tail.rpartition(".")
        return Quantity(where="log", name=pattern, statistic=group, period=period)
    if tail and tail not in STATISTICS:
        raise KnowledgeError(f"{where}: {tail!r} is not a statistic ({', '.join(STATISTICS)})")
    return Quantity(where="observation", name=head, statistic=tail or "typical", period=period)


def _bounds(keys: dict[str, object], where: str) -> Bounds | None:
    found = {name: keys.pop(name) for name in BOUNDS if name in keys}
    for name, bound in found.items():
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise KnowledgeError(f"{where}: {name} takes a number, not {bound!r}")
    return Bounds(**cast("dict[str, float]", found)) if found else None


def _some_bounds(keys: dict[str, object], where: str) -> Bounds:
    bounds = _bounds(keys, where)
    if bounds is None:
        raise KnowledgeError(f"{where}: a bound is missing (one of {', '.join(BOUNDS)})")
    return bounds


def _words(raw: object, where: str) -> tuple[str, ...]:
    words = raw if isinstance(raw, Sequence) and not isinstance(raw, str) else [raw]
    if not words or not all(isinstance(word, str) for word in words):
        raise KnowledgeError(f"{where}: expected a word or a list of words, not {raw!r}")
    return tuple(cast("Sequence[str]", words))


def _values(keys: dict[str, object]) -> tuple[object, ...]:
    if "is" in keys:
        return (keys.pop("is"),)
    return tuple(cast("Sequence[object]", keys.pop("in", ())))


def _threshold(keys: dict[str, object], where: str) -> Condition:
    return Threshold(quantity=quantity(keys.pop("value"), where), bounds=_some_bounds(keys, where))


def _ratio(keys: dict[str, object], where: str) -> Condition:
    pair = keys.pop("ratio")
    if not isinstance(pair, Sequence) or len(pair) != 2:
        raise KnowledgeError(f"{where}: ratio takes two quantities")
    return Ratio(
        numerator=quantity(pair[0], where), denominator=quantity(pair[1], where), bounds=_some_bounds(keys, where)
    )


def _changed(keys: dict[str, object], where: str) -> Condition:
    against = _words(keys.pop("against", ("previous", "baseline")), where)
    if not set(against) <= set(PERIODS):
        raise KnowledgeError(f"{where}: against takes periods ({', '.join(PERIODS)})")
    return Changed(quantity=quantity(keys.pop("changed"), where), bounds=_some_bounds(keys, where), against=against)


def _trending(keys: dict[str, object], where: str) -> Condition:
    name, trends = str(keys.pop("trend")), _words(keys.pop("is", ()), where)
    if not set(trends) <= set(TRENDS):
        raise KnowledgeError(f"{where}: a trend is one of {', '.join(TRENDS)}")
    return Trending(name=name, trends=cast("tuple[Trend, ...]", trends))


def _logged(keys: dict[str, object], where: str) -> Condition:
    phases = _words(keys.pop("phase"), where) if "phase" in keys else ()
    return Logged(ids=_words(keys.pop("log"), where), phases=phases)


def _setting(keys: dict[str, object], where: str) -> Condition:
    name, is_set = str(keys.pop("flag")), keys.pop("set", None)
    contains = _words(keys.pop("contains"), where) if "contains" in keys else ()
    setting = Setting(
        name=name,
        values=_values(keys),
        contains=contains,
        is_set=None if is_set is None else bool(is_set),
        bounds=_bounds(keys, where),
    )
    if not setting.values and not contains and is_set is None and setting.bounds is None:
        raise KnowledgeError(f"{where}: flag {name}: say is, in, contains, set or a bound")
    return setting


def _fact(keys: dict[str, object], where: str) -> Condition:
    return FactIs(path=str(keys.pop("fact")), contains=_words(keys.pop("contains", ()), where))


def _ticked(kind: Literal["seen", "when", "not_when"]) -> Callable[[dict[str, object], str], Condition]:
    return lambda keys, where: Ticked(kind=kind, ids=_words(keys.pop(kind), where))


def _engine(keys: dict[str, object], where: str) -> Condition:
    return EngineIs(
        engines=_words(keys.pop("engine"), where),
        since=str(keys.pop("since", "")),
        before=str(keys.pop("before", "")),
    )


def _kubernetes(keys: dict[str, object], where: str) -> Condition:
    path = str(keys.pop("kubernetes"))
    contains = _words(keys.pop("contains"), where) if "contains" in keys else ()
    absent = bool(keys.pop("absent", False))
    return InKubernetes(path=path, values=_values(keys), contains=contains, absent=absent, bounds=_bounds(keys, where))


def _parts(raw: object, where: str) -> tuple[Condition, ...]:
    if not isinstance(raw, Sequence) or isinstance(raw, str) or not raw:
        raise KnowledgeError(f"{where}: expected a list of conditions")
    return tuple(parse(part, where) for part in raw)


PARSERS: Mapping[str, Callable[[dict[str, object], str], Condition]] = {
    "all": lambda keys, where: All(parts=_parts(keys.pop("all"), where)),
    "any": lambda keys, where: AnyOf(parts=_parts(keys.pop("any"), where)),
    "not": lambda keys, where: Not(part=parse(keys.pop("not"), where)),
    "unless": lambda keys, where: Unless(part=parse(keys.pop("unless"), where)),
    "value": _threshold,
    "ratio": _ratio,
    "changed": _changed,
    "trend": _trending,
    "log": _logged,
    "flag": _setting,
    "fact": _fact,
    "seen": _ticked("seen"),
    "when": _ticked("when"),
    "not_when": _ticked("not_when"),
    "engine": _engine,
    "kubernetes": _kubernetes,
    "absent": lambda keys, _: Absent(name=str(keys.pop("absent"))),
    "present": lambda keys, where: Present(quantity=quantity(keys.pop("present"), where)),
    "predicate": lambda keys, _: Predicate(name=str(keys.pop("predicate"))),
}
"""Kinds in the order in which a mapping is searched for them; "absent" also is a key of "kubernetes", so it is last."""
