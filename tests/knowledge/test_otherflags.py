"""Flags whose meaning is not needed are known by name."""

from __future__ import annotations

import pytest

from llmedic.knowledge import load, otherflags
from llmedic.knowledge.otherflags import OtherFlags

RECORDS = load.records("otherflags.yaml", OtherFlags)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_flag_is_a_flag_and_is_there_once(record: OtherFlags) -> None:
    spelled = (*record.valued, *record.switches)

    assert len(spelled) == len(set(spelled))
    assert [one for one in spelled if not one.startswith("-") or "=" in one or "_" in one] == []
    assert record.source


@pytest.mark.parametrize(
    ("engine", "flag", "valued"),
    [
        ("vllm", "--download-dir", True),
        ("vllm", "--disable-log-requests", False),
        ("vllm", "--enable-sleep-mode", False),
        ("sglang", "--radix-cache-backend", True),
        ("llama.cpp", "--no-webui", False),
        ("llama.cpp", "--temp", True),
        ("tgi", "--master-port", True),
        ("tgi", "--json-output", False),
    ],
)
def test_whether_a_value_follows(engine: str, flag: str, valued: bool) -> None:
    assert otherflags.takes_value(engine)[flag] is valued


def test_an_engine_that_is_not_listed_has_none() -> None:
    assert otherflags.takes_value("mlx") == {}
