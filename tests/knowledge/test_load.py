"""Data files are read strictly: whatever is wrong in one is named, with the file and the record."""

from __future__ import annotations

import pytest

from llmedic import errors
from llmedic.knowledge import load, schema


class Narrow(schema.Record, frozen=True):
    id: str


def test_records_and_one_record_agree() -> None:
    words = load.records("vocabulary.yaml", schema.Word)

    assert load.record("vocabulary.yaml", words[3].name, schema.Word) == words[3]
    assert list(load.chunks("vocabulary.yaml")) == [word.name for word in words]


def test_a_key_that_is_not_known_is_named_with_its_file_and_record() -> None:
    with pytest.raises(errors.KnowledgeError, match=r"causes\.yaml: record 1 qps-surge: .*unknown field"):
        load.records("causes.yaml", Narrow)


def test_a_record_that_is_not_there_is_none() -> None:
    assert load.record("causes.yaml", "nonsense", schema.CauseText) is None


def test_a_file_that_is_not_there_is_our_bug() -> None:
    with pytest.raises(errors.KnowledgeError, match=r"nothing\.yaml: cannot be read"):
        load.records("nothing.yaml", Narrow)


def test_a_file_whose_records_start_otherwise_is_not_read_in_parts() -> None:
    with pytest.raises(errors.KnowledgeError, match="not every record starts with its id or name"):
        load.split("- {id: a}\n- id: b\n", "made-up.yaml")


def test_two_records_with_one_key_are_not_read_in_parts() -> None:
    with pytest.raises(errors.KnowledgeError, match="two records have the same key"):
        load.split("- id: a\n- id: a\n", "made-up.yaml")
