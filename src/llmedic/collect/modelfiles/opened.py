"""Opens a file of a model: never waits for one that is no plain file, and says what a stand-in for a file is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from llmedic.errors import InputError

GIT_LFS = b"version https://git-lfs.github.com/spec/"
CHECK = "check the path and its mode"
DOWNLOAD_AGAIN = "download the model again: the file was not fetched whole"


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The file and its size in bytes.

    Raises InputError when it is no plain file, may not be read, breaks while it is read, or is a Git LFS pointer.
    """
    try:
        with open(path, "rb", opener=_at_once) as file:
            if file.peek(len(GIT_LFS))[: len(GIT_LFS)] == GIT_LFS:
                raise InputError(f"{path}: this is a Git LFS pointer, not the file itself", hint="git lfs pull")
            yield file, os.fstat(file.fileno()).st_size
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}", hint=CHECK) from error
    except ValueError as error:  # a NUL in the path
        raise InputError("the path of the model cannot be a path", hint=CHECK) from error


def text_of(path: Path, *, limit_bytes: int) -> bytes:
    """The whole of a small file. Raises InputError for one that is larger than the limit."""
    with opened(path) as (file, size):
        content = file.read(limit_bytes + 1)
    if max(size, len(content)) > limit_bytes:
        raise InputError(
            f"{path}: larger than {limit_bytes >> 20} MiB, which no file of its name is", hint="is it the right file?"
        )
    return content


def _at_once(path: str, flags: int) -> int:
    """Opens plain files only: a pipe or a device would wait for its other end, which O_NONBLOCK does not."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise InputError(f"{path}: is {_kind(mode)}, not a file of a model", hint=CHECK)
    return descriptor


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
