"""What was gathered is kept, even where it cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmedic.app import snapshot
from llmedic.app.request import SnapshotRequest, Sources
from llmedic.collect import bundle
from llmedic.errors import InputError


def test_a_folder_that_goes_away_meanwhile_does_not_cost_the_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spare"))
    (tmp_path / "spare").mkdir()
    folder = tmp_path / "folder"
    folder.mkdir()
    sources = Sources(targets=("http://127.0.0.1:9",), args="--max-num-seqs 4")
    request = SnapshotRequest(sources=sources, output=folder / "x.zip", window_s=0.1)

    with pytest.raises(InputError, match="cannot be written") as caught:
        snapshot.snapshot(request, progress=lambda _: folder.rmdir())

    (spare,) = (tmp_path / "spare").iterdir()
    assert f"the evidence is in {spare} instead" in caught.value.hint
    assert {"engine", "flags"} == {raw.source for raw in bundle.read_bundle(spare)}
