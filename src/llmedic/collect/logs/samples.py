"""Collects measurements and settings that lines tell, and makes observations and flags of them."""

from __future__ import annotations

from collections.abc import Mapping

from llmedic.knowledge import vocabulary
from llmedic.knowledge.schema import LogPattern
from llmedic.model.deployment import Flag
from llmedic.model.observation import Observation, Series

Fields = Mapping[str, str | float]

_NOMINAL_INTERVAL_S = 10.0
"""vLLM prints its statistics every ten seconds; it is assumed where a log has no times."""

_SUMMED = ("requests_", "prompt_tokens_per_s", "output_tokens_per_s", "preemptions_")
_HIGHEST = ("kv_cache_usage_ratio", "cpu_kv_cache_usage_ratio")


class Samples:
    """The values of one log, by name and rank, in order."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._series: dict[tuple[str, str], list[tuple[float | None, float]]] = {}
        self._single: dict[str, float] = {}

    def take(self, pattern: LogPattern, fields: Fields, at: float | None) -> None:
        """Keep what a line measured; a field that is not a number is left out."""
        rank = fields.get("rank", "")
        instance = f"#{int(rank)}" if isinstance(rank, float) else str(rank)
        for name, field in pattern.observes.items():
            value = fields.get(field)
            if not isinstance(value, float):
                continue
            if pattern.series:
                self._series.setdefault((name, instance), []).append((at, value))
            else:
                self._single[name] = value

    def observations(self) -> tuple[Observation, ...]:
        """Series per rank and for the service as a whole, and single readings."""
        found = [self._observation(name, value) for name, value in self._single.items()]
        for name in dict.fromkeys(name for name, _ in self._series):
            ranks = {instance: points for (key, instance), points in self._series.items() if key == name}
            timed = {instance: _timed(points) for instance, points in ranks.items()}
            if len(timed) > 1:
                found += [self._series_of(name, points, instance) for instance, points in timed.items()]
            found.append(self._series_of(name, _joined(name, list(timed.values())), ""))
        return tuple(found)

    def _series_of(self, name: str, points: list[tuple[float, float]], instance: str) -> Observation:
        if len(points) == 1:
            return self._observation(name, points[0][1], instance)
        span = points[-1][0] - points[0][0]
        return Observation(
            name=name,
            value=Series(points=tuple(points)),
            unit=vocabulary.unit(name),
            source=self._source,
            window_s=span if span > 0 else None,
            instance=instance,
        )

    def _observation(self, name: str, value: float, instance: str = "") -> Observation:
        return Observation(name=name, value=value, unit=vocabulary.unit(name), source=self._source, instance=instance)


def _timed(points: list[tuple[float | None, float]]) -> list[tuple[float, float]]:
    """Seconds since the first point; nominal ones where a time is missing or runs backwards."""
    times = [at for at, _ in points]
    known = [at for at in times if at is not None]
    if len(known) == len(times) and known == sorted(known):
        return [(at - known[0], value) for at, (_, value) in zip(known, points, strict=True)]
    return [(index * _NOMINAL_INTERVAL_S, value) for index, (_, value) in enumerate(points)]


def _joined(name: str, ranks: list[list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """The service as a whole: ranks print one after the other, so their n-th samples belong together."""
    if len(ranks) == 1:
        return ranks[0]
    rows = zip(*ranks, strict=False)
    return [(row[0][0], _join(name, [value for _, value in row])) for row in rows]


def _join(name: str, values: list[float]) -> float:
    if name.startswith(_SUMMED):
        return sum(values)
    return max(values) if name in _HIGHEST else sum(values) / len(values)


def flag_of(name: str, told: str, fields: Fields) -> Flag | None:
    """The setting a line tells: a constant ("=true") or the value of a field; None when the field is missing."""
    value: str | float | bool
    if told.startswith("="):
        word = told[1:]
        value = word == "true" if word in ("true", "false") else word
    else:
        field = fields.get(told)
        if field is None:
            return None
        value = int(field) if isinstance(field, float) and field == int(field) else field
    return Flag(name=name, value=value, origin="log")
