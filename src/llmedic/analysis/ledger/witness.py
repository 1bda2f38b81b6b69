"""The ledger's word in a diagnosis on a start that failed: the same as `llmedic ledger` says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from llmedic.analysis.ledger import failure
from llmedic.analysis.ledger.deployed import completed, trusted
from llmedic.errors import InputError, UsageError
from llmedic.model.deployment import Deployment
from llmedic.model.evidence import LogEvent

if TYPE_CHECKING:
    from llmedic.model.ledger import Ledger, Problem


def failed(deployment: Deployment, events: Sequence[LogEvent], *, said: bool = False) -> Ledger | None:
    """The ledger of a start that failed; None where the log does not end so, or not for want of memory.

    said  that it failed, by somebody who saw it: then a log that tells nothing of the end is no objection
    """
    ended = failure.of(events)
    if ended is None and (not said or failure.served(events)):
        return None
    if ended is not None and not ended.is_memory:
        return None
    # The arithmetic takes longer to import than the rest of a diagnosis, and most evidence is of no failed start.
    from llmedic.analysis.ledger import account

    whole = completed(trusted(replace(deployment, engine=deployment.engine or "vllm")))
    try:
        return account.of(whole, events, account.Wanted(log="log")).ledger
    except (InputError, UsageError):
        return None


def about(start: Ledger, cause: str) -> Problem | None:
    """What ended a start, where that is this cause or one that the arithmetic cannot tell from it."""
    ended = (one for one in start.problems if one.starts == "no" and one.cause)
    return next((one for one in ended if failure.same(one.cause, cause)), None)


def decides(start: Ledger) -> bool:
    """Whether model and card are known, so that where no change is named, none is known to be enough."""
    return start.geometry is not None and start.total is not None
