"""A vLLM server as it is deployed, and what it would be with other flags: what a change is tried out on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, floor

from llmedic.analysis.ledger.vllm import placement, settings
from llmedic.analysis.ledger.vllm.candidate import ALWAYS_FREE_BYTES, Candidate, Load, holds, room_beside, starts
from llmedic.analysis.ledger.vllm.terms import Card
from llmedic.errors import UsageError
from llmedic.knowledge import accelerators, flags
from llmedic.model.deployment import Deployment, Flag, FlagValue

LENGTH_STEP = 256
"""Lengths are rounded down to it: nobody types 40,513."""
MOST_SEQS = 4096
"""A higher cap of requests is not looked for."""
LEAST_LENGTH = 1024
"""A shorter context makes a server that starts and is of no use."""

Values = Mapping[str, FlagValue]
"""Settings by their engine-neutral names, changed together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants:
    """A deployment, and the server that it is.

    free_bytes  free on the card before the start; None where nobody said
    load        what has to fit at once; None where nobody said
    """

    candidate: Candidate
    deployment: Deployment
    free_bytes: float | None = None
    load: Load | None = None

    @property
    def card(self) -> accelerators.Accelerator | None:
        """The card by its name; None where nobody said, or it is not a known one."""
        name = self.deployment.hardware.accelerator
        return accelerators.find(name) if name else None

    @property
    def devices(self) -> int | None:
        """Cards in the machine; None where nobody said."""
        return self.deployment.hardware.count

    def typed(self, values: Values) -> str:
        """Settings as they are typed for this release; "" when it has no spelling for one of them."""
        version = self.deployment.version
        words = [
            (flags.typed(name, "vllm", version, negated=value is False), "" if isinstance(value, bool) else f" {value}")
            for name, value in values.items()
        ]
        return " ".join(flag + value for flag, value in words) if all(flag for flag, _ in words) else ""

    def other(self, values: Values) -> Candidate | None:
        """The server with other flags, its defaults resolved anew; None when no server can have them."""
        found = self.changed(values)
        return None if found is None else found.candidate

    def changed(self, values: Values) -> Variants | None:
        """The deployment with other flags; None when no server can have them."""
        kept = tuple(flag for flag in self.deployment.flags if flag.name not in values)
        added = tuple(Flag(name=name, value=value) for name, value in values.items())
        return self._resolved(replace(self.deployment, flags=kept + added))

    def on(self, card: accelerators.Accelerator) -> Variants:
        """The deployment on another card, with the defaults of that one."""
        hardware = replace(
            self.deployment.hardware, accelerator=card.name, memory_gib=None, compute_capability=card.capability
        )
        seen = Card(total_bytes=card.memory, compute_capability=card.capability, unified=card.unified)
        moved = replace(self, candidate=replace(self.candidate, card=seen, known_pool=None), free_bytes=None)
        return moved._resolved(replace(self.deployment, hardware=hardware)) or moved

    def _resolved(self, deployment: Deployment) -> Variants | None:
        try:
            found = settings.resolve(deployment, self.candidate.geometry)
        except UsageError:
            return None
        return replace(self, candidate=self.candidate.resettled(found), deployment=deployment)

    def plan(self, candidate: Candidate) -> placement.Plan:
        """How a server is divided over the machine."""
        return placement.Plan(
            geometry=candidate.geometry,
            settings=candidate.settings,
            accelerator=self.card,
            count=self.devices or 0,
            group_size=candidate.group_size,
            engine="vllm",
            version=self.deployment.version,
            answer=self.first,
        )

    def sound(self, candidate: Candidate, *, spare: bool = False) -> bool:
        """Whether a server surely starts, what is taken beside its budget included.

        spare  also where that takes the most that was seen
        """
        asked, room, plan = candidate.memory().requested.size.likely, room_beside(candidate), candidate.plan()
        scarce = self.free_bytes is not None and not candidate.settings.cache_bytes and self.free_bytes < asked
        return (
            not scarce
            and candidate.settings.max_num_batched_tokens >= candidate.settings.max_num_seqs
            and starts(candidate) == "yes"
            and plan.blocks_per_request(candidate.settings.checked_length)
            <= plan.usable(plan.blocks(candidate.pool().low))
            and (candidate.card.total_bytes.likely <= 0 or (room.low if spare else room.likely) >= 0)
            and placement.possible(self.plan(candidate))
        )

    def loaded(self, candidate: Candidate) -> bool:
        """Whether the load, if there is one, surely fits."""
        return self.load is None or holds(candidate, self.load) == "yes"

    def first(self, options: Iterable[Values], /, *, alone: bool = False, spare: bool = False) -> str:
        """The first of several changes with which the server surely starts, as it is typed; "" when none does.

        When none is enough by itself, the first that is with a shorter context or a smaller share of the card, unless
        `alone`: then it is advice on a server that starts anyway, and the load has to fit with it.
        """
        tried: list[Values] = []
        for values in options:
            found = self.other(values) if self.typed(values) else None
            if found is not None and self.sound(found, spare=spare) and (not alone or self.loaded(found)):
                return self.typed(values)
            tried.append(values)
        for values in () if alone else tried:
            whole = self._completed(values)
            found = self.other(whole) if self.typed(whole) else None
            if (
                found is not None
                and found.settings.max_model_len >= self.least_length
                and self.sound(found, spare=spare)
            ):
                return self.typed(whole)
        return ""

    def _completed(self, values: Values) -> Values:
        """A change, and what it needs beside it: room beside the budget, then a context that fits."""
        found = self.other(values)
        if found is None:
            return values
        if room_beside(found).likely < 0 and (share := self.largest_share(found)) > 0:
            values = {"gpu_memory_utilization": share, **values}
            found = self.other(values) or found
        if starts(found) != "yes":
            values = {"max_model_len": self.servable(found), **values}
        return values

    def most_requests(self, tokens: int) -> int:
        """The largest max_num_seqs with which as many requests of so many tokens surely fit at once; 0: none."""

        def fits(count: int) -> bool:
            other = self.other({"max_num_seqs": count})
            load = Load(concurrency=count * self.candidate.settings.data_parallel, context_tokens=tokens)
            return other is not None and holds(other, load) == "yes" and self.sound(other)

        return largest(1, MOST_SEQS, fits)

    def largest_share(self, candidate: Candidate) -> float:
        """The share of the card that leaves room for what is taken beside it, to two decimals; 0: none."""
        outside, total = sum(term.size.high for term in candidate.memory().outside), candidate.card.total_bytes.low
        share = floor((total - outside - ALWAYS_FREE_BYTES) / total * 100) / 100 if total > 0 else 0
        return max(share, 0) if share < candidate.settings.utilization and not candidate.asked_bytes else 0

    @property
    def least_length(self) -> int:
        """The shortest context that a change may leave: the load's, else one that is of some use."""
        wanted = self.load.context_tokens if self.load else LEAST_LENGTH
        return min(wanted, self.candidate.settings.max_model_len)

    def servable(self, candidate: Candidate) -> int:
        """The longest context with which a server surely starts, up to its own, rounded down; 0: none."""
        plan, length = candidate.plan(), candidate.settings.max_model_len
        low = max(candidate.pool().low, 0)
        found = min(plan.longest_request(low, length), plan.servable(plan.usable(plan.blocks(low)), length))
        return found // LENGTH_STEP * LENGTH_STEP if found > LENGTH_STEP else found


def largest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """The largest number in an interval for which something holds that holds for all smaller ones; 0: for none."""
    if not fits(low):
        return 0
    while low < high:
        middle = ceil((low + high) / 2)
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
