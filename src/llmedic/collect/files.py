"""Writes a file whole or not at all, readable by its owner only: what is in it may describe somebody's production."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from llmedic.errors import InputError, UsageError

PRIVATE = 0o600
_ELSEWHERE = "give another path, in a folder you may write to"
_LONGEST_NAME = 240
"""What file systems allow, less what the neighbouring file's name has more."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def check_free(path: Path, *, hint: str) -> None:
    """Whether a new file can be written there, asked before anybody waits for its content.

    Raises UsageError with `hint` when the file exists, InputError when its folder is none or may not be written to.
    """
    try:
        taken = os.path.lexists(path)
        is_folder = path.parent.is_dir()
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}", hint=_ELSEWHERE) from error
    if taken:
        raise UsageError(f"{path} exists", hint=hint)
    if not is_folder:
        raise InputError(f"{path}: cannot be written: no such folder", hint=_ELSEWHERE)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"{path}: cannot be written: permission denied", hint=_ELSEWHERE)
    if len(os.fsencode(path.name)) > _LONGEST_NAME:
        raise InputError(f"{path.name[:40]}…: cannot be written: the name is too long", hint="give a shorter name")


def write_whole(path: Path, content: bytes, *, overwrite: bool, hint: str) -> None:
    """Write `content` to a neighbouring file and move it into place, mode 0600.

    Raises UsageError with `hint` when the file exists and `overwrite` is False, InputError when it cannot be written.
    """
    try:
        _write_whole(path, content, overwrite=overwrite)
    except FileExistsError as error:
        raise UsageError(f"{path} exists", hint=hint) from error
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror or error}",
            hint=_ELSEWHERE,
        ) from error


def _write_whole(path: Path, content: bytes, *, overwrite: bool) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as temporary:
            temporary.write(content)
            temporary.flush()
            os.fsync(temporary.fileno())
        Path(name).chmod(PRIVATE)
        if overwrite:
            os.replace(name, path)
        else:
            # A link fails when the name is taken: there is no moment between looking and writing.
            _link(name, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _link(name: str, path: Path) -> None:
    try:
        os.link(name, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A memory stick or a share that knows no links: the empty file holds the name until the whole one is there.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
        os.replace(name, path)
