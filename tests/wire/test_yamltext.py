"""YAML from a stranger is small values, or refused in one line."""

from __future__ import annotations

import contextlib

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from llmedic.wire import yamltext


def test_what_people_write_is_read() -> None:
    body = b"base: &b {x: 1}\nmore: {<<: *b, y: [true, null, 2.5]}\n"

    assert yamltext.load(body) == {"base": {"x": 1}, "more": {"x": 1, "y": [True, None, 2.5]}}


def test_nothing_is_nothing() -> None:
    assert yamltext.load(b"# a comment\n") is None


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"a: 1\nb: {c: 1, c: 2}", "'c' is given twice, in line 2"),
        (b"&a [*a]", "contains itself"),
        (b"[" * 150 + b"]" * 150, "nested more than 100 deep"),
        (b"[" * 100_000, "nest"),
        (b"- &a " + b"x" * 40_000 + b"\n- [" + b",".join([b"*a"] * 1000) + b"]", "more than 32 MiB"),
        (b"- &a {k: v}\n- &b {<<: [" + b",".join([b"*a"] * 2000) + b"]}\n- {<<: [" + b",".join([b"*b"] * 2000) + b"]}",
         "more than 32 MiB"),
        (b"a: 2024-99-99", "month must be"),
        (b"a: " + b"9" * 5000, "digits"),
        (b"a: !!python/name:os.system x", "could not determine a constructor"),
        (b"\ta: 1", "cannot start any token"),
        ("a: ü".encode("latin-1"), "unacceptable character"),
    ],
)  # fmt: skip
def test_what_nobody_would_write_is_refused_in_one_line(body: bytes, why: str) -> None:
    with pytest.raises(yamltext.NotReadableError, match=why) as refused:
        yamltext.load(body)

    assert "\n" not in str(refused.value)


@given(st.binary(max_size=60) | st.text(alphabet="&*a:[]{}-? \n<!'\"|>1", max_size=40).map(str.encode))
@example(b"? [a, b]\n: 1")
@example(b"!!set {a, b}")
def test_any_bytes_are_values_or_refused(body: bytes) -> None:
    with contextlib.suppress(yamltext.NotReadableError):
        yaml.safe_dump(yamltext.load(body))
