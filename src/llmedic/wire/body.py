"""Reads an answer's body piece by piece: never past the deadline, never past the size cap, never half of it."""

from __future__ import annotations

import time
import zlib

import urllib3

from llmedic.errors import AnswerError

_PIECE_BYTES = 1 << 17


class _Plain:
    finished = True

    def feed(self, piece: bytes, limit: int) -> bytes:
        return piece


class _Unpacker:
    """Gzip or deflate, in pieces; a gzip of several members is one stream."""

    def __init__(self) -> None:
        self._engine = _any_zlib()
        self.finished = False

    def feed(self, piece: bytes, limit: int) -> bytes:
        """Unpack up to `limit` + 1 bytes: one more than allowed is enough to know that it is too much."""
        out = b""
        while piece and len(out) <= limit:
            if self._engine.eof:
                self._engine = _any_zlib()
            out += self._engine.decompress(piece, limit + 1 - len(out))
            piece = self._engine.unused_data or self._engine.unconsumed_tail
        self.finished = self._engine.eof
        return out


def _any_zlib() -> zlib._Decompress:
    return zlib.decompressobj(zlib.MAX_WBITS | 32)  # 32: gzip and zlib headers are both recognised


def read(response: urllib3.BaseHTTPResponse, url: str, ends: float, max_bytes: int) -> bytes:
    """The whole body, decompressed.

    ends is a `time.monotonic` instant. Raises TimeoutError after it, AnswerError when the body is larger than
    `max_bytes` (before or after decompression) or its compression is broken or cut off.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise AnswerError(f"{url}: answer is compressed with {encoding!r}, which was not asked for")
    unpacker = _Plain() if encoding in ("", "identity") else _Unpacker()
    pieces: list[bytes] = []
    size = 0
    received = 0
    while piece := response.read1(_PIECE_BYTES, decode_content=False):
        if time.monotonic() > ends:
            raise TimeoutError
        received += len(piece)
        try:
            unpacked = unpacker.feed(piece, max_bytes - size)
        except zlib.error as error:
            raise AnswerError(f"{url}: answer says {encoding} but is not: {error}") from error
        size += len(unpacked)
        if size > max_bytes:
            raise AnswerError(f"{url}: answer is larger than {max_bytes // 2**20} MiB", hint="is it a metrics page?")
        pieces.append(unpacked)
    if received and not unpacker.finished:
        raise AnswerError(f"{url}: compressed answer was cut short", hint="a proxy in between may have given up")
    return b"".join(pieces)
