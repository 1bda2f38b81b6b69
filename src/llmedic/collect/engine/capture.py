"""Watches live servers over one shared window, each on a thread of its own.

Per replica: the whole metrics page at both ends, a few light looks at its gauges in between, and, beside them, what
the API says about itself. Whatever the server does is recorded, never raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from llmedic.errors import UsageError
from llmedic.model.raw import Raw

if TYPE_CHECKING:
    from llmedic.wire import http

GRACE_S = 5.0
"""How long after the window the last page may still arrive."""


def capture(
    urls: Sequence[str],
    *,
    access: http.Access | None = None,
    window_s: float = 10.0,
    probe: bool = False,
    deadline_s: float | None = None,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Raw, ...]:
    """Watch every server for `window_s` seconds (0: one look) and return what was seen, in the order of `urls`.

    urls may end in /metrics or /v1. probe sends one request for one token to each. deadline_s bounds it all
    (default: the window and a grace); a server that answers is done about half a second after the window.
    Raises UsageError or InputError for a bad URL, header or certificate file, never for what a server does.
    """
    # Here and not above: whoever only reads saved pages does not pay for TLS and connection pools.
    from llmedic.collect.engine.replica import Replica, Span
    from llmedic.wire import http
    from llmedic.wire.parallel import run_all

    access = access or http.ANONYMOUS
    bases = list(dict.fromkeys(base_of(url) for url in urls))
    for base in bases:
        http.check(base, access)
    limit_s = window_s + GRACE_S if deadline_s is None else max(deadline_s, window_s)
    begun = clock()
    span = Span(begun=begun, window_s=window_s, ends=begun + window_s, hard_end=begun + limit_s)
    replicas = {base: Replica(base, access, span, clock, sleep) for base in bases}
    run_all({base: partial(replica.watch, probe=probe) for base, replica in replicas.items()}, limit_s + 0.2)
    return tuple(raw for replica in replicas.values() for raw in replica.seen())


def base_of(url: str) -> str:
    """The server's base URL, whichever of its pages was given. Raises UsageError for one with a query."""
    if "?" in url or "#" in url:
        hint = "give http://host:port; credentials go into --header or --bearer-env"
        raise UsageError(f"{url.partition('?')[0].rpartition('@')[2]}: an engine's URL has no query", hint=hint)
    base = url.strip().rstrip("/")
    for tail in ("/metrics", "/v1", "/health"):
        base = base.removesuffix(tail)
    return base.rstrip("/")
