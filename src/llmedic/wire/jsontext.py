"""JSON from a stranger: what can go wrong in reading it has one name, so that no reader forgets half of it."""

from __future__ import annotations

import msgspec

NOT_READABLE = (msgspec.MsgspecError, RecursionError)
"""What `msgspec.json.decode` raises: for no JSON, for another shape, and for brackets that are nested without end."""
