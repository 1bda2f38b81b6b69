"""The memory of the server that evidence is about: the ledger as a witness in a diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.errors import InputError, UsageError
from llmedic.knowledge import models
from llmedic.model.deployment import Deployment, Flag, ModelFacts
from llmedic.model.evidence import LogEvent
from llmedic.model.ledger import Printed, Range

if TYPE_CHECKING:
    from llmedic.analysis.ledger.vllm.candidate import Candidate


def completed(deployment: Deployment) -> Deployment:
    """The deployment with the catalogue's shape of its model, where no file tells it and the catalogue knows it."""
    model = deployment.model
    if model.config or model.tensors:
        return deployment
    flag = next((flag.value for flag in deployment.flags if flag.name == "model"), None)
    name = model.name or (flag if isinstance(flag, str) else "")
    known = models.find(name) if name else None
    if known is None:
        return deployment
    found = ModelFacts(name=name, config=known.config, width_known=known.width_known, notes=known.unsure)
    return replace(deployment, model=found)


def trusted(deployment: Deployment) -> Deployment:
    """The deployment with each flag once, as the most trusted source has it; of one source the later counts."""
    flags: dict[str, Flag] = {}
    for flag in deployment.flags:
        if flag.name not in flags or flags[flag.name].origin == flag.origin:
            flags[flag.name] = flag
    return replace(deployment, flags=tuple(flags.values()))


def server(
    deployment: Deployment, events: Sequence[LogEvent], *, blocks: float | None = None, pool_gib: float | None = None
) -> Candidate | None:
    """The vLLM server as it was started; None where its model is not known or the flags make no sense.

    blocks    in the pool, as the engine says; pool_gib: its size in GiB of one device, as the log says
    """
    if deployment.engine not in ("vllm", ""):
        return None
    whole = trusted(completed(deployment))
    if not whole.model.config and not whole.model.tensors:
        return None
    # The arithmetic takes longer to import than the rest of a diagnosis, and most evidence names no known model.
    from llmedic.analysis.ledger import startup, subject
    from llmedic.analysis.ledger.vllm import settings

    try:
        shape = subject.shape(whole)
        if shape is None:
            return None
        resolved = settings.resolve(whole, shape)
        found = startup.printed(events, whole.version)
        candidate = subject.server(shape, resolved, subject.card(whole.hardware, found), whole)
    except (InputError, UsageError):
        return None
    pool = _pool(candidate, found, blocks, pool_gib)
    return candidate if pool is None else replace(candidate, known_pool=pool)


def _pool(candidate: Candidate, found: Sequence[Printed], blocks: float | None, pool_gib: float | None) -> Range | None:
    """What is known of the pool, the most exact first."""
    from llmedic.analysis.ledger import startup

    if blocks:
        return exact(blocks * candidate.plan().bytes_per_block)
    printed = next((one.value for one in found if one.id == "kv_cache"), None)
    if printed is not None:
        return startup.rounded(printed)
    return startup.rounded(pool_gib * GIB) if pool_gib is not None else None
