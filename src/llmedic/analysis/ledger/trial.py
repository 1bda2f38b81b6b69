"""A change is tried on the ledger before it is advised: of SGLang, llama.cpp, Ollama and TGI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from llmedic.analysis.ledger.vllm.candidate import MOST_DEVICES
from llmedic.analysis.ledger.vllm.placement import allowed_degrees
from llmedic.analysis.ledger.vllm.variants import Values
from llmedic.errors import InputError, UsageError
from llmedic.knowledge import flags
from llmedic.model.deployment import Deployment, Flag
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import Starts

Verdict = Callable[[Deployment], Starts]
"""Whether a deployment starts, by its engine's own ledger; may raise InputError or UsageError."""


def changed(deployment: Deployment, values: Values) -> Deployment:
    """The deployment with flags, by engine-neutral name, in place of those that were set."""
    kept = tuple(flag for flag in deployment.flags if flag.name not in values)
    return replace(deployment, flags=kept + tuple(Flag(name=name, value=value) for name, value in values.items()))


def holds(values: Values, deployment: Deployment, verdict: Verdict) -> bool:
    """Whether the server surely starts with these flags."""
    try:
        return verdict(changed(deployment, values)) == "yes"
    except (InputError, UsageError):
        return False


def first(options: Iterable[Values], deployment: Deployment, verdict: Verdict) -> str:
    """The first change with which the server surely starts, as it is typed; "" when there is none."""
    for values in options:
        typed = [(flags.typed(name, deployment.engine, deployment.version), value) for name, value in values.items()]
        if all(flag for flag, _ in typed) and holds(values, deployment, verdict):
            return " ".join(f"{flag} {value}" for flag, value in typed)
    return ""


def wider(geometry: Geometry, deployment: Deployment, tensor: int, others: int = 1) -> Iterator[Values]:
    """More tensor parallel ranks than now: powers of two over which the model divides, as far as there are cards.

    others: ranks that each tensor parallel group is repeated for (pipeline stages)
    """
    most = (deployment.hardware.count or MOST_DEVICES) // others
    for degree in allowed_degrees(geometry, most):
        if degree > tensor and degree & (degree - 1) == 0:
            yield {"tensor_parallel_size": degree}
