"""Which files hold the weights, and whether all of them are there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from llmedic.collect.modelfiles.opened import text_of
from llmedic.errors import InputError
from llmedic.wire import jsontext

MAX_INDEX_BYTES = 128 << 20
MAX_FILES = 4_096
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})(?P<ending>\.\w{1,12})", re.ASCII)
_INCOMPLETE = "download the model again: a file of it is missing"


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def stem(name: str) -> str:
    """A file's name without its ending and its place among its shards."""
    shard = _SHARD.fullmatch(name)
    return shard["stem"] if shard else Path(name).stem


def set_of(name: str) -> tuple[str, ...]:
    """All the files that a shard's name announces, in order; a file that is no shard alone."""
    shard = _SHARD.fullmatch(name)
    if shard is None or not 1 <= int(shard["total"]) <= MAX_FILES:
        return (name,)
    total = shard["total"]
    return tuple(f"{shard['stem']}-{one:05}-of-{total}{shard['ending']}" for one in range(1, int(total) + 1))


def complete(folder: Path, index: str, found: Sequence[str], there: Collection[str]) -> tuple[Path, ...]:
    """The files of a checkpoint: those of its index, else the found ones and what their names announce.

    Raises InputError when one is missing.
    """
    names = _indexed(folder / index) if index in there else {one for name in found for one in set_of(name)}
    wanted = sorted(names)
    check(wanted, there, folder)
    return tuple(folder / name for name in wanted)


def check(wanted: Sequence[str], there: Collection[str], folder: Path) -> None:
    """Raises InputError when a file is missing, with its place among the others."""
    missing = [(place, name) for place, name in enumerate(wanted, 1) if name not in there]
    if not missing:
        return
    place, name = missing[0]
    if len(missing) == 1:
        raise InputError(f"{folder}: shard {place} of {len(wanted)} is missing: {name}", hint=_INCOMPLETE)
    raise InputError(f"{folder}: {len(missing)} of {len(wanted)} shards are missing, first {name}", hint=_INCOMPLETE)


def _indexed(path: Path) -> set[str]:
    body = text_of(path, limit_bytes=MAX_INDEX_BYTES)
    try:
        names = set(msgspec.json.decode(body, type=_Index).weight_map.values())
    except jsontext.NOT_READABLE as error:
        raise InputError(f"{path}: is no index of shards: {str(error)[:100]}", hint=_INCOMPLETE) from error
    if not names or len(names) > MAX_FILES or not all(_plain(names)):
        raise InputError(f"{path}: names files that are no shards beside it", hint=_INCOMPLETE)
    return names


def _plain(names: Iterable[str]) -> Iterable[bool]:
    """Whether each is the name of a file in the same folder."""
    return (name.isprintable() and "/" not in name and name not in ("", ".", "..") for name in names)
