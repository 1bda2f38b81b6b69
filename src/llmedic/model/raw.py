"""What a source fetched, before anything was read into it.

Every source works in two steps: `capture` does the I/O and returns `Raw` values, `read` is pure and turns them
into `Evidence`. A bundle is the redacted `Raw` values in a zip, so a saved system takes the same path as a live one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """One answer, file or reading.

    source    the source that can read it: "engine", "prometheus", "logs", "flags", "process", "case", "model",
              "baseline"
    kind      what it is within the source ("metrics", "health", "models", "gauges", "lines", ...)
    target    whose it is: a URL without credentials, a path's last part, a pid; "" when there is one only
    at        when it was taken, in Unix seconds
    elapsed_s how long the answer took, in seconds
    status    HTTP status, 0 when there was no HTTP answer
    body      the bytes as received, decompressed
    error     why there is no body, in one line; hint: the command or flag that would show it
    meta      small extras the reader needs (content type, window length, options)
    """

    source: str
    kind: str
    target: str = ""
    at: float = 0.0
    elapsed_s: float = 0.0
    status: int = 0
    body: bytes = b""
    error: str = ""
    hint: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)
