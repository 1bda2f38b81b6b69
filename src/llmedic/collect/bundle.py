"""Keeps what was fetched in one file, and reads it back distrusting every byte.

A bundle is taken on the machine that is down and read on somebody's laptop, maybe after it went through a ticket.
So secrets and prompts leave before it is written, and the reader believes neither the zip's headers nor the
manifest: sizes are counted while unpacking and every entry has its hash.
"""

from __future__ import annotations

import hashlib
import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import msgspec

from llmedic import __version__
from llmedic.collect.files import write_whole
from llmedic.errors import InputError
from llmedic.model.evidence import Gap
from llmedic.model.raw import Raw
from llmedic.wire import jsontext

SCHEMA: Final = "llmedic.bundle/1"
MANIFEST = "manifest.json"

MAX_ENTRIES = 10_000
MAX_ENTRY_BYTES = 128 * 2**20
MAX_TOTAL_BYTES = 256 * 2**20
MAX_MANIFEST_BYTES = 16 * 2**20
MAX_RATIO = 200

_PIECE_BYTES = 2**16
# Half of what a reader refuses: a log of one repeated line is stored as it is rather than packed a thousandfold.
_PACK_AT_MOST = MAX_RATIO // 2
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_ENTRY_NAME = re.compile(r"raw/\d{3,5}-[a-z0-9_]{1,40}-[a-z0-9_]{1,40}")
TAKEN = "give another name with -o FILE, or remove the old one first"
"""What to do when there is a file of that name already."""
_HINT = "take a new one with: llmedic snapshot TARGET -o FILE.zip"


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Entry(_Record, frozen=True):
    """One raw: where its body lies in the zip, the body's hash and size, and everything about it but the body."""

    path: str
    sha256: str
    size: int
    source: str
    kind: str
    target: str
    at: float
    elapsed_s: float
    status: int
    error: str
    hint: str
    meta: dict[str, str]


class GapRecord(_Record, frozen=True):
    """A `Gap` that was known when the bundle was written."""

    what: str
    why: str
    how: str
    names: list[str] = []


class Manifest(_Record, frozen=True):
    """What a bundle says about itself. created_at is UTC, redactions counts what was hidden by kind."""

    schema: Literal["llmedic.bundle/1"]
    created_at: str
    llmedic_version: str
    window_s: float
    entries: list[Entry]
    gaps: list[GapRecord]
    redactions: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle as read: its manifest and its raws, in the order in which they were written."""

    manifest: Manifest
    raws: tuple[Raw, ...]

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What was already known to be unseen when the bundle was taken."""
        return tuple(Gap(what=gap.what, why=gap.why, how=gap.how, names=tuple(gap.names)) for gap in self.manifest.gaps)


def write(
    destination: Path | str | io.BufferedIOBase,
    raws: Iterable[Raw],
    *,
    now: float,
    window_s: float,
    gaps: Sequence[Gap] = (),
    force: bool = False,
) -> Manifest:
    """Redact the raws and write them as one zip, atomically and with mode 0600. `now` is in Unix seconds.

    Bodies over MAX_ENTRY_BYTES keep their end, which is the newest part of a log; a gap in the manifest says so.
    Raises UsageError when the file exists and `force` is False, InputError when it cannot be written.
    """
    from llmedic.collect import redact  # reading a bundle does not need it

    redacted = redact.raws(raws)
    kept, cut = _fitted(redacted.raws)
    bodies = {_entry_path(number, raw): raw for number, raw in enumerate(kept)}
    manifest = Manifest(
        schema=SCHEMA,
        created_at=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        llmedic_version=__version__,
        window_s=window_s,
        entries=[_entry(path, raw) for path, raw in bodies.items()],
        gaps=[_gap_record(gap) for gap in (*gaps, *cut)],
        redactions=dict(redacted.counts),
    )
    content = _zip(manifest, bodies)
    if isinstance(destination, str | Path):
        write_whole(Path(destination), content, overwrite=force, hint=TAKEN)
    else:
        destination.write(content)
    return manifest


def read_bundle(path: Path | str) -> tuple[Raw, ...]:
    """The raws of a bundle. Raises InputError for anything but a whole and honest one."""
    return open_bundle(path).raws


def open_bundle(path: Path | str) -> Bundle:
    """A bundle with its manifest. Raises InputError for anything but a whole and honest one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, packed_bytes=Path(path).stat().st_size)
    except _RefusedError as refused:
        raise InputError(f"{path}: {refused}", hint=_HINT) from refused
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}", hint=_HINT) from error
    except zipfile.BadZipFile as error:
        raise InputError(f"{path}: is not a bundle: {_line(error)}", hint=_HINT) from error
    except (zlib.error, EOFError, struct.error, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError(f"{path}: is damaged: {_line(error)}", hint=_HINT) from error


class _RefusedError(Exception):
    """Why a zip is no bundle, in words that follow the file's name."""


def _read(archive: zipfile.ZipFile, *, packed_bytes: int) -> Bundle:
    members = _members(archive)
    if MANIFEST not in members:
        raise _RefusedError(f"is not a bundle: no {MANIFEST} in it")
    manifest = _manifest(_unpack(archive, members.pop(MANIFEST), limit=MAX_MANIFEST_BYTES))
    declared = {entry.path for entry in manifest.entries}
    if len(declared) < len(manifest.entries):
        raise _RefusedError("its manifest names an entry twice")
    for missing in sorted(declared - members.keys()):
        raise _RefusedError(f"{missing} is missing from it")
    for undeclared in sorted(members.keys() - declared):
        raise _RefusedError(f"{_printable(undeclared)} is in it but not in its manifest")
    left = min(MAX_TOTAL_BYTES, packed_bytes * MAX_RATIO)
    raws = []
    for entry in manifest.entries:
        body = _unpack(archive, members[entry.path], limit=min(MAX_ENTRY_BYTES, left))
        left -= len(body)
        raws.append(_raw(entry, body))
    return Bundle(manifest=manifest, raws=tuple(raws))


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files in the zip by name, after everything that needs no unpacking was checked."""
    infos = archive.infolist()
    if len(infos) > MAX_ENTRIES + 1:
        raise _RefusedError(f"has {len(infos)} entries, more than {MAX_ENTRIES}")
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = info.orig_filename
        if name != MANIFEST and not _ENTRY_NAME.fullmatch(name):
            raise _RefusedError(f"holds {_printable(name)}, which is no name for an entry")
        if name in members:
            raise _RefusedError(f"holds {name} twice")
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise _RefusedError(f"holds {name}, which is a link or another special file")
        if info.flag_bits & _ENCRYPTED:
            raise _RefusedError(f"holds {name}, which is encrypted")
        if info.compress_type not in _METHODS:
            raise _RefusedError(f"holds {name}, which is packed in an unknown way")
        members[name] = info
    return members


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, *, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    with archive.open(info) as packed:
        while piece := packed.read(_PIECE_BYTES):
            size += len(piece)
            # The compressed size is the header's word, but no more than that many bytes are read from the file.
            if size > limit or size > max(info.compress_size, 1) * MAX_RATIO:
                raise _RefusedError(f"holds {info.orig_filename}, which unpacks to more than a bundle may hold")
            pieces.append(piece)
    return b"".join(pieces)


def _manifest(content: bytes) -> Manifest:
    try:
        schema = msgspec.json.decode(content, type=_AnySchema).schema
    except jsontext.NOT_READABLE as error:
        raise _RefusedError(f"its manifest cannot be read: {_line(error)}") from error
    if schema != SCHEMA:
        raise _RefusedError(f"is {_printable(schema)}, and this LLMedic reads {SCHEMA}")
    try:
        return msgspec.json.decode(content, type=Manifest)
    except jsontext.NOT_READABLE as error:
        raise _RefusedError(f"its manifest cannot be read: {_line(error)}") from error


class _AnySchema(msgspec.Struct):
    schema: str


def _raw(entry: Entry, body: bytes) -> Raw:
    if len(body) != entry.size:
        raise _RefusedError(f"{entry.path} has {len(body)} bytes, and its manifest says {entry.size}")
    if hashlib.sha256(body).hexdigest() != entry.sha256:
        raise _RefusedError(f"{entry.path} is not what its manifest says (SHA-256 differs)")
    return Raw(
        source=entry.source,
        kind=entry.kind,
        target=entry.target,
        at=entry.at,
        elapsed_s=entry.elapsed_s,
        status=entry.status,
        body=body,
        error=entry.error,
        hint=entry.hint,
        meta=entry.meta,
    )


def _entry(path: str, raw: Raw) -> Entry:
    return Entry(
        path=path,
        sha256=hashlib.sha256(raw.body).hexdigest(),
        size=len(raw.body),
        source=raw.source,
        kind=raw.kind,
        target=_encodable(raw.target),
        at=raw.at,
        elapsed_s=raw.elapsed_s,
        status=raw.status,
        error=_encodable(raw.error),
        hint=_encodable(raw.hint),
        meta={_encodable(key): _encodable(value) for key, value in raw.meta.items()},
    )


def _gap_record(gap: Gap) -> GapRecord:
    from llmedic.collect import redact

    return GapRecord(
        what=redact.text(gap.what), why=redact.text(gap.why), how=redact.text(gap.how), names=list(gap.names)
    )


def _entry_path(number: int, raw: Raw) -> str:
    return f"raw/{number:03d}-{_word(raw.source)}-{_word(raw.kind)}"


def _word(name: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", name.lower())[:40] or "_"


def _fitted(raws: Sequence[Raw]) -> tuple[list[Raw], list[Gap]]:
    """The raws within what a reader accepts, and a gap for each one that was cut."""
    kept: list[Raw] = []
    gaps: list[Gap] = []
    left = MAX_TOTAL_BYTES
    for raw in raws[:MAX_ENTRIES]:
        limit = min(MAX_ENTRY_BYTES, left)
        body = raw.body if len(raw.body) <= limit else _newest_lines(raw.body, limit)
        left -= len(body)
        if body is not raw.body:
            why = f"its first {len(raw.body) - len(body)} bytes are not in the bundle"
            gaps.append(Gap(what=f"{raw.source} {raw.kind} {raw.target}".strip(), why=why, how="give the file itself"))
        kept.append(raw if body is raw.body else replace(raw, body=body))
    if len(raws) > MAX_ENTRIES:
        why = f"a bundle holds {MAX_ENTRIES} entries, and there were {len(raws)}"
        gaps.append(Gap(what="the last answers", why=why, how="take one bundle per replica"))
    return kept, gaps


def _newest_lines(body: bytes, limit: int) -> bytes:
    if limit <= 0:
        return b""
    tail = body[-limit:]
    return tail[tail.find(b"\n") + 1 :]


def _zip(manifest: Manifest, bodies: dict[str, Raw]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        stamp = datetime.fromisoformat(manifest.created_at).timetuple()[:6]
        for name, body in _contents(manifest, bodies):
            info = zipfile.ZipInfo(name, date_time=(max(1980, stamp[0]), *stamp[1:]))
            info.external_attr = (stat.S_IFREG | 0o600) << 16
            info.compress_type = _method(name, body)
            archive.writestr(info, body)
    return content.getvalue()


def _contents(manifest: Manifest, bodies: dict[str, Raw]) -> Iterator[tuple[str, bytes]]:
    yield MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    for path, raw in bodies.items():
        yield path, raw.body


def _method(name: str, body: bytes) -> int:
    if name == MANIFEST or not body:
        return zipfile.ZIP_STORED
    packed = len(zlib.compress(body))
    return zipfile.ZIP_DEFLATED if packed * _PACK_AT_MOST >= len(body) else zipfile.ZIP_STORED


def _encodable(text: str) -> str:
    """File names come with bytes that are no UTF-8, and JSON cannot hold them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _line(error: Exception) -> str:
    return _printable(str(error) or type(error).__name__)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:120]
