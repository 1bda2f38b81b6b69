from __future__ import annotations

import hashlib
import io
import json
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.collect import bundle
from llmedic.errors import InputError, UsageError
from llmedic.model.evidence import Gap
from llmedic.model.raw import Raw

NOW = 1_790_000_000.0
SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "reference" / "bundle-1.schema.json"
CANARY = "CANARY7"

RAWS = (
    Raw(source="engine", kind="metrics", target="http://a:8000", at=NOW, elapsed_s=0.1, status=200, body=b"up 1\n"),
    Raw(source="engine", kind="health", target="http://a:8000", at=NOW, error="no answer within 5 s", hint="curl it"),
    Raw(source="logs", kind="lines", target="vllm.log", body=b"INFO a line\n" * 9, meta={"engine": "vllm"}),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "night.zip"


def write(path: Path, raws: tuple[Raw, ...] = RAWS) -> bundle.Manifest:
    return bundle.write(path, raws, now=NOW, window_s=10.0)


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, contents: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in contents.items():
            archive.writestr(name, body)


def edit_manifest(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    contents = members(path)
    manifest = json.loads(contents[bundle.MANIFEST])
    edit(manifest)
    rewrite(path, {**contents, bundle.MANIFEST: json.dumps(manifest).encode()})


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        bundle.read_bundle(path)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value.message


def test_what_was_written_is_read(path: Path) -> None:
    write(path)

    assert bundle.read_bundle(path) == RAWS


def test_the_manifest_says_when_what_and_how_long(path: Path) -> None:
    gap = Gap(what="logs", why="no file was given", how="--log FILE", names=("x",))

    bundle.write(path, RAWS, now=NOW, window_s=10.0, gaps=[gap])

    opened = bundle.open_bundle(path)
    assert opened.gaps == (gap,)
    assert opened.manifest.created_at == "2026-09-21T14:13:20Z"
    assert (opened.manifest.schema, opened.manifest.window_s) == ("llmedic.bundle/1", 10.0)
    assert [entry.path for entry in opened.manifest.entries] == [
        "raw/000-engine-metrics",
        "raw/001-engine-health",
        "raw/002-logs-lines",
    ]


def test_the_same_raws_give_the_same_bytes() -> None:
    first, second = io.BytesIO(), io.BytesIO()

    for stream in (first, second):
        bundle.write(stream, RAWS, now=NOW, window_s=10.0)

    assert first.getvalue() == second.getvalue()


def test_only_the_owner_may_read_it(path: Path) -> None:
    write(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_nothing_is_overwritten_unless_forced(path: Path) -> None:
    path.write_bytes(b"precious")

    with pytest.raises(UsageError, match="exists"):
        write(path)
    assert path.read_bytes() == b"precious"

    bundle.write(path, RAWS, now=NOW, window_s=10.0, force=True)
    assert bundle.read_bundle(path) == RAWS


def test_no_temporary_file_is_left(path: Path) -> None:
    write(path)
    with pytest.raises(UsageError):
        write(path)

    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write(tmp_path / "no" / "such.zip")


texts = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Z")), max_size=20)
plain_raws = st.builds(
    Raw,
    source=st.sampled_from(["engine", "logs", "../x", "Ü"]),
    kind=st.sampled_from(["metrics", "lines", "a b"]),
    target=st.sampled_from(["", "http://a:8000", "vllm.log"]),
    at=st.floats(0, 2e9),
    elapsed_s=st.floats(0, 100),
    status=st.integers(0, 599),
    body=st.sampled_from([b"", b"up 1\n", b"\xff\x00", b"a" * 100_000, b"0 1\n" * 50_000]),
    error=st.sampled_from(["", "refused"]),
    meta=st.dictionaries(st.sampled_from(["period", "window_s"]), st.sampled_from(["window", "10"])),
)


@given(raws=st.lists(plain_raws, max_size=5).map(tuple))
def test_every_bundle_that_is_written_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, raws: tuple[Raw, ...]
) -> None:
    path = tmp_path_factory.mktemp("bundle") / "b.zip"

    write(path, raws)

    assert bundle.read_bundle(path) == raws


def test_a_name_that_is_no_utf8_does_not_stop_a_snapshot(path: Path) -> None:
    write(path, (Raw(source="logs", kind="lines", target="caf\udce9.log"),))

    assert bundle.read_bundle(path)[0].target == "caf?.log"


planted = st.sampled_from(
    [
        "--api-key {}",
        "HF_TOKEN={}",
        "Authorization: Bearer {}",
        "https://u:{}@h/?token={}",
        "Cookie: a={}",
        "Received request a: prompt: 'hello {}', params: SamplingParams(n=1).",
        '{{"messages": [{{"role": "user", "content": "hello {}"}}]}}',
        "out={{'text': 'hello {}'}}",
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
    ]
)


@given(shapes=st.lists(planted, min_size=1, max_size=4), secret=st.text("abcdef0123456789", min_size=4, max_size=30))
def test_no_byte_of_a_bundle_holds_a_secret_or_a_prompt(shapes: list[str], secret: str) -> None:
    canary = CANARY + secret
    dirty = "\n".join(shape.format(canary, canary) for shape in shapes)
    raw = Raw(
        source="logs", kind="lines", target=dirty, body=dirty.encode(), error=dirty, hint=dirty, meta={"a": dirty}
    )
    stream = io.BytesIO()

    manifest = bundle.write(stream, [raw], now=NOW, window_s=1.0, gaps=[Gap(what=dirty, why=dirty, how=dirty)])

    assert CANARY.encode() not in stream.getvalue()
    with zipfile.ZipFile(stream) as archive:
        assert all(CANARY.encode() not in archive.read(name) for name in archive.namelist())
    assert sum(manifest.redactions.values()) >= len(shapes)


def test_a_body_too_large_keeps_its_newest_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MAX_ENTRY_BYTES", 20)

    write(path, (Raw(source="logs", kind="lines", target="a.log", body=b"first line\nsecond line\nlast\n"),))

    opened = bundle.open_bundle(path)
    assert opened.raws[0].body == b"last\n" or opened.raws[0].body == b"second line\nlast\n"
    assert opened.gaps[0].what == "logs lines a.log"


def test_a_file_that_is_no_zip(path: Path) -> None:
    path.write_text("INFO a log")

    assert "not a bundle" in refusal(path)


def test_a_file_that_is_not_there(path: Path) -> None:
    assert "cannot be read" in refusal(path)


def test_a_zip_of_something_else(path: Path) -> None:
    rewrite(path, {})

    assert "no manifest.json" in refusal(path)


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/passwd", "raw/../../evil", "raw\\evil", "C:evil", "raw/", "raw/000-A-b"]
)
def test_names_that_lead_elsewhere(path: Path, name: str) -> None:
    write(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo(name), b"x")

    assert "no name for an entry" in refusal(path)


def test_a_name_with_a_hidden_end(path: Path) -> None:
    write(path)
    content = path.read_bytes().replace(b"raw/002-logs-lines", b"raw/002-logs\0lines")
    path.write_bytes(content)

    assert "no name for an entry" in refusal(path)


def test_a_symbolic_link(path: Path) -> None:
    write(path)
    link = zipfile.ZipInfo("raw/003-logs-lines")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, b"/etc/passwd")

    assert "is a link" in refusal(path)


def test_an_encrypted_entry(path: Path) -> None:
    write(path)
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        position = content.find(signature)
        content[position + offset] |= 1
    path.write_bytes(content)

    assert "encrypted" in refusal(path)


def test_an_unknown_way_of_packing(path: Path) -> None:
    contents = (write(path), members(path))[1]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        for name, body in contents.items():
            archive.writestr(name, body)

    assert "unknown way" in refusal(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_twice(path: Path) -> None:
    write(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("raw/000-engine-metrics", b"up 0\n")

    assert "twice" in refusal(path)


def test_an_entry_that_the_manifest_does_not_name(path: Path) -> None:
    write(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("raw/003-logs-lines", b"x")

    assert "not in its manifest" in refusal(path)


def test_an_entry_that_only_the_manifest_names(path: Path) -> None:
    write(path)
    contents = members(path)
    del contents["raw/002-logs-lines"]
    rewrite(path, contents)

    assert "raw/002-logs-lines is missing" in refusal(path)


def test_an_entry_that_the_manifest_names_twice(path: Path) -> None:
    write(path)
    edit_manifest(path, lambda manifest: manifest["entries"].append(manifest["entries"][0]))

    assert "names an entry twice" in refusal(path)


def test_a_body_that_was_changed(path: Path) -> None:
    write(path)
    rewrite(path, {**members(path), "raw/000-engine-metrics": b"up 0\n"})

    assert "SHA-256 differs" in refusal(path)


def test_a_body_of_another_size(path: Path) -> None:
    write(path)
    rewrite(path, {**members(path), "raw/000-engine-metrics": b"up 1\n#"})

    assert "6 bytes" in refusal(path)


@pytest.mark.parametrize("cut", [10, 60, 200, -30])
def test_a_file_that_was_cut(path: Path, cut: int) -> None:
    write(path)
    path.write_bytes(path.read_bytes()[:cut])

    assert refusal(path)


def test_bytes_that_were_damaged(path: Path) -> None:
    write(path, (Raw(source="logs", kind="lines", body=bytes(range(256)) * 40),))
    content = bytearray(path.read_bytes())
    middle = content.find(b"raw/000-logs-lines") + 60
    content[middle : middle + 8] = b"\xff" * 8
    path.write_bytes(content)

    assert "damaged" in refusal(path) or "not a bundle" in refusal(path)


@given(data=st.data())
def test_a_damaged_bundle_is_refused_or_the_same(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("bundle") / "b.zip"
    write(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)

    try:
        raws = bundle.read_bundle(path)
    except InputError:
        return
    assert [raw.body for raw in raws] == [raw.body for raw in RAWS]


@given(content=st.binary(max_size=300))
def test_bytes_that_are_no_bundle(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("bundle") / "b.zip"
    path.write_bytes(content)

    assert refusal(path)


@pytest.mark.parametrize(
    "edit",
    [
        lambda manifest: manifest.update(extra=1),
        lambda manifest: manifest["entries"][0].update(extra=1),
        lambda manifest: manifest.pop("window_s"),
        lambda manifest: manifest["entries"][0].update(size="5"),
        lambda manifest: manifest["entries"][0].update(path="/etc/passwd"),
    ],
)
def test_a_manifest_that_is_not_as_described(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    write(path)
    edit_manifest(path, edit)

    assert "manifest" in refusal(path) or "missing" in refusal(path)


def test_another_version_of_the_format(path: Path) -> None:
    write(path)
    edit_manifest(path, lambda manifest: manifest.update(schema="llmedic.bundle/2", more=[]))

    assert refusal(path).endswith("is llmedic.bundle/2, and this LLMedic reads llmedic.bundle/1")


@pytest.mark.parametrize("content", [b"{", b"[" * 2000, b'{"schema":"llmedic.bundle/1","gaps":' + b"[" * 2000])
def test_a_manifest_that_is_no_json(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(bundle.MANIFEST, content)

    assert "cannot be read" in refusal(path)


def bomb(path: Path, body: bytes) -> None:
    """A bundle that is right in every respect but for how far it unpacks."""
    write(path, (Raw(source="logs", kind="lines", body=b"x"),))
    contents = members(path)
    manifest = json.loads(contents[bundle.MANIFEST])
    manifest["entries"][0].update(size=len(body), sha256=hashlib.sha256(body).hexdigest())
    rewrite(path, {bundle.MANIFEST: json.dumps(manifest).encode(), "raw/000-logs-lines": body})


def test_a_small_file_that_unpacks_to_a_large_one(path: Path) -> None:
    bomb(path, bytes(2**20))

    assert "unpacks to more" in refusal(path)


def test_an_entry_over_the_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path)
    monkeypatch.setattr(bundle, "MAX_ENTRY_BYTES", 50)

    assert "raw/002-logs-lines, which unpacks to more" in refusal(path)


def test_entries_over_the_limit_together(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path)
    monkeypatch.setattr(bundle, "MAX_TOTAL_BYTES", 100)

    assert "unpacks to more" in refusal(path)


def test_a_header_that_lies_about_the_size(path: Path) -> None:
    write(path)
    rewrite(path, {**members(path), "raw/000-engine-metrics": bytes(2**20)})
    content = bytearray(path.read_bytes())
    central = content.rfind(b"PK\x01\x02", 0, content.rfind(b"raw/000-engine-metrics"))
    struct.pack_into("<I", content, central + 24, len(b"up 1\n"))
    path.write_bytes(content)

    assert refusal(path)


def test_too_many_entries(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path)
    monkeypatch.setattr(bundle, "MAX_ENTRIES", 2)

    assert "more than 2" in refusal(path)


def test_the_schema_is_the_one_that_is_published() -> None:
    published = json.loads(SCHEMA_FILE.read_text())

    described = {key: published[key] for key in ("$ref", "$defs")}
    assert described == msgspec.json.schema(bundle.Manifest)
