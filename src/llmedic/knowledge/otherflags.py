"""Flags that engines take and whose meaning we do not need, so that a misspelt flag can be told from one of these."""

from __future__ import annotations

import datetime
from functools import cache

from llmedic.knowledge import load
from llmedic.knowledge.schema import Record

_FILE = "otherflags.yaml"


class OtherFlags(Record, frozen=True):
    """The flags of one engine over its releases, by whether a value follows.

    source  where they were read, and `read` when
    """

    name: str
    source: str
    read: datetime.date
    valued: tuple[str, ...]
    switches: tuple[str, ...]


@cache
def takes_value(engine: str) -> dict[str, bool]:
    """What can be typed for the engine -> whether a value follows; nothing for an engine that is not listed."""
    found = load.record(_FILE, engine, OtherFlags)
    if found is None:
        return {}
    return dict.fromkeys(found.valued, True) | dict.fromkeys(found.switches, False)
