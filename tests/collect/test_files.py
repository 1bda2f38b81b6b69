"""A file is whole or not there, and that it cannot be is said before anybody waits."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from llmedic.collect import files
from llmedic.errors import InputError, UsageError


def test_what_is_written_is_private_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x"

    files.write_whole(path, b"content", overwrite=False, hint="h")

    assert path.read_bytes() == b"content"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_free_place_is_free(tmp_path: Path) -> None:
    files.check_free(tmp_path / "x", hint="h")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file", "link", "folder"])
def test_a_taken_name_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()

    with pytest.raises(UsageError, match="exists"):
        files.check_free(tmp_path / name, hint="h")
    if name != "folder":
        with pytest.raises(UsageError, match="exists"):
            files.write_whole(tmp_path / name, b"", overwrite=False, hint="h")


@pytest.mark.parametrize(
    ("name", "why"),
    [("no/x", "no such folder"), ("file/x", "no such folder"), ("x" * 250, "too long"), ("é" * 125, "too long")],
)
def test_an_impossible_place_is_said(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match=why) as caught:
        files.check_free(tmp_path / name, hint="h")
    assert caught.value.hint


def test_a_file_system_without_links_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "x"

    files.write_whole(path, b"content", overwrite=False, hint="h")

    assert path.read_bytes() == b"content"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(UsageError, match="exists"):
        files.write_whole(path, b"other", overwrite=False, hint="h")
    assert path.read_bytes() == b"content"
