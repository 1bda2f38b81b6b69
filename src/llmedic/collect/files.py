"""Writes a file whole or not at all, readable by its owner only: what is in it may describe somebody's production."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from llmedic.errors import InputError, UsageError

PRIVATE = 0o600


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
            hint="give another path, in a folder you may write to",
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
            os.link(name, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
