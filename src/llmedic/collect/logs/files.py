"""Turns log paths into digests: files, directories, standard input, gzip, any encoding."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from llmedic.collect.logs.digest import Digest
from llmedic.errors import InputError
from llmedic.model.raw import Raw

SOURCE = "logs"
CHUNK_BYTES = 8 << 20
MAX_FILES = 50

# Of random or packed bytes a twelfth are control characters that no log has.
_BINARY_SHARE = 0.04
_FEW_ODD_BYTES = 4
_SUFFIXES = (".log", ".txt", ".out", ".err", ".json", ".jsonl", ".gz")
_HINT = "give a readable log file, a directory of logs, or - for standard input"
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
_MOST_EMPTY_BYTES = 1 << 30
"""Nothing but zeros for as long as this is a device, not a log."""
_BOMS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def capture(
    paths: Sequence[str | Path],
    *,
    stdin: BinaryIO | None = None,
    expired: Callable[[], bool] = lambda: False,
    found: frozenset[str] = frozenset(),
) -> tuple[Raw, ...]:
    """A digest of each log: the lines that the library knows, in order, and how many were left out.

    paths    files, directories (their newest logs, rotated .gz files too) or "-" for `stdin`
    found    those of the paths that nobody named, but that lay in a folder: one that cannot be read is a Raw
    expired  asked between chunks; once true, what was read so far is the answer and `meta["cut"]` says so

    Raises:
        InputError: a path that does not exist or cannot be read. An empty or binary file is a Raw with an error.
    """
    raws: list[Raw] = []
    for path in paths:
        if str(path) == "-":
            if stdin is None:
                raise InputError("no log on standard input", hint="pipe a log in, or give a file")
            raws.append(_digest(stdin, "stdin", 0.0, expired))
            continue
        for file in _files(Path(path)):
            try:
                raws.append(_capture_file(file, expired))
            except InputError as error:
                if str(file) == str(path) and str(path) not in found:
                    raise
                raws.append(_failed(file.name, 0.0, error.message, error.hint))
    return tuple(raws)


def _files(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        chosen = newest([entry for entry in path.iterdir() if entry.is_file() and is_log(entry.name)])
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", hint=_HINT) from error
    if not chosen:
        raise InputError(f"{path}: no log files in this directory", hint="logs end in " + ", ".join(_SUFFIXES))
    return chosen


def newest(files: Sequence[Path]) -> list[Path]:
    """The last few of a folder's logs, the oldest of them first. Raises OSError for a file that is gone."""
    return sorted(files, key=lambda file: file.stat().st_mtime, reverse=True)[:MAX_FILES][::-1]


def is_log(name: str) -> bool:
    """Whether a file in a folder is called like a log."""
    stem = name.rstrip("0123456789.-")
    return name.endswith(_SUFFIXES) or stem.endswith(_SUFFIXES) or ".log." in name


def _capture_file(path: Path, expired: Callable[[], bool]) -> Raw:
    try:
        with path.open("rb") as file:
            at = os.fstat(file.fileno()).st_mtime
            if file.peek(2)[:2] == b"\x1f\x8b":
                with gzip.open(file) as unpacked:
                    return _digest(unpacked, path.name, at, expired)
            return _digest(file, path.name, at, expired)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", hint=_HINT) from error


def _digest(file: BinaryIO | gzip.GzipFile, target: str, at: float, expired: Callable[[], bool]) -> Raw:
    digest = Digest()
    cut = ""
    try:
        for chunk in _chunks(file):
            if digest.lines == 0 and _is_binary(chunk):
                return _failed(target, at, "binary, not a log", "give the engine's text log")
            digest.take(chunk)
            if expired():
                cut = "time"
                break
    except _DAMAGED:
        cut = "damaged"
    if digest.lines == 0:
        return _failed(target, at, "empty" if not cut else "compressed data is damaged", "give a log with lines in it")
    meta = {"lines": str(digest.lines)} | ({"cut": cut} if cut else {})
    if dropped := digest.dropped():
        meta["dropped"] = dropped
    return Raw(source=SOURCE, kind="lines", target=target, at=at, body=digest.body(), meta=meta)


def _failed(target: str, at: float, error: str, hint: str) -> Raw:
    return Raw(source=SOURCE, kind="lines", target=target, at=at, error=error, hint=hint)


def _chunks(file: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    """Chunks that end at a line end. The last line gets one, and a line longer than a chunk is cut.

    What a damaged file held up to the damage comes before what is raised for it.
    """
    rest = b""
    try:
        for chunk in _as_text(_pieces(file)):
            end = chunk.rfind(b"\n") + 1
            if not end:
                rest += chunk
                if len(rest) > CHUNK_BYTES:
                    yield rest + b"\n"
                    rest = b""
                continue
            yield rest + chunk[:end] if rest else chunk[:end]
            rest = chunk[end:]
    except _DAMAGED:
        if rest:
            yield rest + b"\n"
        raise
    if rest:
        yield rest + b"\n"


def _pieces(file: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    """About CHUNK_BYTES at a time. A compressed file is read in small steps: one that fails gives nothing."""
    if not isinstance(file, gzip.GzipFile):
        while piece := file.read(CHUNK_BYTES):
            yield piece
        return
    steps: list[bytes] = []
    size = 0
    try:
        while step := file.read1(CHUNK_BYTES):
            steps.append(step)
            size += len(step)
            if size >= CHUNK_BYTES:
                yield b"".join(steps)
                steps, size = [], 0
    except _DAMAGED:
        yield b"".join(steps)
        raise
    yield b"".join(steps)


def _as_text(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """ASCII as ASCII, whatever the encoding: a rotation leaves zeros before it, UTF-16 has one in every letter."""
    decoder: codecs.IncrementalDecoder | None = None
    empty_bytes = 0
    for number, piece in enumerate(pieces):
        if number == 0 and piece[:2] in _BOMS:
            decoder = codecs.getincrementaldecoder(_BOMS[piece[:2]])("replace")
        text = decoder.decode(piece).encode("utf-8", "replace") if decoder else piece
        if b"\0" in text:
            text = text.replace(b"\0", b"")
            empty_bytes += len(piece) - len(text)
            if empty_bytes > _MOST_EMPTY_BYTES and not text:
                return
        if text:
            yield text


def _is_binary(chunk: bytes) -> bool:
    head = chunk[:4096]
    odd = sum(byte < 9 or 13 < byte < 27 for byte in head)
    return odd > _FEW_ODD_BYTES + _BINARY_SHARE * len(head)
