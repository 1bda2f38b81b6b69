"""Reads our data files, strictly: an unknown key, a wrong type or a repeated id is our bug and says where it is.

A data file is a YAML list of records. Every record starts at column 0 with its key (`- id: …`), so one record can
be read without parsing the rest: a diagnosis needs the words of a few causes out of ninety, in milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TypeVar

import msgspec
import yaml

from llmedic import errors

T = TypeVar("T")

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RECORD = re.compile(r"^- ", re.MULTILINE)
_START = re.compile(r"^- (?:id|name): *([^\n#]+?) *(?:#[^\n]*)?$", re.MULTILINE)


def records(path: str, kind: type[T]) -> tuple[T, ...]:
    """All records of `knowledge/data/<path>` as `kind`. Raises KnowledgeError naming the file and the record."""
    items = _parse(text(path), path)
    return tuple(_convert(item, kind, f"{path}: record {position}") for position, item in enumerate(items, 1))


def record(path: str, key: str, kind: type[T]) -> T | None:
    """The one record of `knowledge/data/<path>` with this key, parsed alone; None when there is none."""
    chunk = chunks(path).get(key)
    if chunk is None:
        return None
    return _convert(_parse(chunk, path)[0], kind, f"{path}: {key}")


@cache
def chunks(path: str) -> Mapping[str, str]:
    """The YAML text of each record of a file under its key, in the order of the file."""
    return split(text(path), path)


def split(body: str, path: str) -> Mapping[str, str]:
    """The records of a file's text by their keys. Raises KnowledgeError where they cannot be told apart."""
    starts = list(_START.finditer(body))
    if not starts or len(starts) != len(_RECORD.findall(body)):
        raise errors.KnowledgeError(f"{path}: not every record starts with its id or name on a line of its own")
    ends = [match.start() for match in starts[1:]] + [len(body)]
    found = {match.group(1): body[match.start() : end] for match, end in zip(starts, ends, strict=True)}
    if len(found) != len(starts):
        raise errors.KnowledgeError(f"{path}: two records have the same key")
    return found


def text(path: str) -> str:
    """The text of `knowledge/data/<path>`."""
    try:
        return resources.files(__package__).joinpath("data", path).read_text(encoding="utf-8")
    except OSError as error:
        raise errors.KnowledgeError(f"{path}: cannot be read: {error}") from error


def _parse(body: str, path: str) -> list[object]:
    try:
        data = yaml.load(body, _LOADER)
    except yaml.YAMLError as error:
        raise errors.KnowledgeError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, list):
        raise errors.KnowledgeError(f"{path}: expected a list of records, got {type(data).__name__}")
    return data


def _convert(item: object, kind: type[T], where: str) -> T:
    key = item.get("id", item.get("name", "")) if isinstance(item, dict) else ""
    try:
        return msgspec.convert(item, kind)
    except msgspec.ValidationError as error:
        raise errors.KnowledgeError(f"{where} {key}: {error}".replace("  ", " ")) from error
