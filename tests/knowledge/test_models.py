"""A name is resolved to the model that it says, or to none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.errors import KnowledgeError
from llmedic.knowledge import load, modelnames, models, phrases

RECORDS = list(models.records())


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_record_says_where_it_was_read(record: models.ModelRecord) -> None:
    assert len(record.source) > 20
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", record.date)
    assert all(variant.source and variant.quantization_config for variant in record.variants)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_record_is_found_by_each_of_its_names(record: models.ModelRecord) -> None:
    for name in (record.name, *record.aliases):
        found = models.find(name)
        assert found is not None
        assert (found.name, found.how, found.config) == (record.name, "exact", record.config)
    for variant in record.variants:
        found = models.find(variant.name)
        assert found is not None
        assert (found.name, found.how) == (record.name, "exact")
        assert found.config == {**record.config, "quantization_config": variant.quantization_config}
        assert found.source == variant.source


def test_no_name_means_two_models() -> None:
    owners: dict[modelnames.Words, set[str]] = {}
    for record in RECORDS:
        for name in (record.name, *record.aliases, *(variant.name for variant in record.variants)):
            owners.setdefault(modelnames.split(name), set()).add(record.name)
    assert {words: names for words, names in owners.items() if len(names) > 1} == {}


def test_there_are_enough_of_them() -> None:
    assert models.names() == tuple(sorted({record.name for record in RECORDS}, key=str.lower))
    assert len(models.names()) == len(RECORDS) >= 100


@pytest.mark.parametrize(
    "asked",
    ["Qwen/Qwen3-8B", "qwen3-8b", "QWEN3 8B", "qwen_3_8b", "/models/Qwen3-8B/", "C:\\models\\Qwen3-8B",
     "/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/9c92"],
)  # fmt: skip
def test_a_name_is_read_however_it_is_written(asked: str) -> None:
    found = models.find(asked)
    assert found is not None
    assert (found.name, found.how, found.asked, found.unsure) == ("Qwen/Qwen3-8B", "exact", asked, ())


@pytest.mark.parametrize(
    "asked",
    ["Qwen3-8B-SomethingUnknownWith-MoE", "Qwen3-8B-VL", "Qwen3-VL-7B-Foo", "someone/Qwen3-8B-DFlash-b16",
     "Qwen3-8B-speculator.eagle3", "Qwen3-8B-Embedding", "google/gemma-4-31B-it-assistant", "Qwen3-8B-pruned-6B",
     "Llama-3.1-8B-Instruct-1M", "2x-Llama-3.1-8B", "Qwen3-9B", "llama", "8B", "", "/", "gpt-oss-20b-a3b", "gpt4"],
)  # fmt: skip
def test_a_model_that_is_built_differently_is_not_known(asked: str) -> None:
    assert models.find(asked) is None


@pytest.mark.parametrize(
    ("asked", "name"),
    [("Llama-3-8B", "meta-llama/Meta-Llama-3-8B-Instruct"), ("Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"),
     ("Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-30B-A3B"), ("Qwen2.5-7B", "Qwen/Qwen2.5-7B-Instruct")],
)  # fmt: skip
def test_releases_and_sizes_are_told_apart(asked: str, name: str) -> None:
    found = models.find(asked)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("asked", "name", "method"),
    [("Qwen/Qwen3-14B-AWQ", "Qwen/Qwen3-14B", "awq"),
     ("Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B-Instruct", "gptq"),
     ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "Qwen/Qwen3-235B-A22B-Instruct-2507", "fp8"),
     ("google/gemma-4-E2B-it-qat-w4a16-ct", "google/gemma-4-E2B-it", "compressed-tensors")],
)  # fmt: skip
def test_a_width_in_the_name_is_taken_and_told(asked: str, name: str, method: str) -> None:
    found = models.find(asked)
    assert found is not None
    assert (found.name, found.how) == (name, "variant")
    quantization = found.config["quantization_config"]
    assert isinstance(quantization, dict)
    assert quantization["quant_method"] == method
    assert [line for line in found.unsure if "is read from its name" in line] == list(found.unsure)


def test_a_width_in_the_name_replaces_that_of_the_record() -> None:
    original, widened = models.find("openai/gpt-oss-20b"), models.find("someone/gpt-oss-20b-BF16")
    assert original is not None
    assert widened is not None
    assert "quantization_config" in original.config
    assert "quantization_config" not in widened.config
    assert {key: value for key, value in original.config.items() if key != "quantization_config"} == widened.config


def test_a_fine_tune_is_resolved_by_the_name_it_carries_and_says_so() -> None:
    tuned, copied = models.find("me/Llama-3.1-8B-Stheno"), models.find("unsloth/Meta-Llama-3.1-8B-Instruct")
    for found in (tuned, copied):
        assert found is not None
        assert (found.name, found.how) == ("meta-llama/Llama-3.1-8B-Instruct", "by name")
        assert "not in the catalogue" in found.unsure[0]


def test_two_widths_in_a_name_leave_it_unknown() -> None:
    found = models.find("cyankiwi/Qwen3.5-9B-AWQ-BF16-INT8")
    assert found is not None
    assert (found.name, found.how) == ("Qwen/Qwen3.5-9B", "by name")
    assert "more than one way of storing weights (awq, w8a8, unquantised)" in found.unsure[1]


def test_a_gguf_file_does_not_say_its_types() -> None:
    found = models.find("Qwen3-8B-Q4_K_M.gguf")
    assert found is not None
    assert found.unsure == ("the name Qwen3-8B-Q4_K_M.gguf does not say how wide its weights are (gguf)",)


def test_a_release_of_another_date_may_reach_less_far() -> None:
    found = models.find("moonshotai/Kimi-K2-Instruct-0905")
    assert found is not None
    assert (found.name, found.how) == ("moonshotai/Kimi-K2-Instruct", "variant")
    assert "its longest context may differ" in found.unsure[0]


def test_close_names_are_suggested() -> None:
    assert models.suggest("Qwen/Qwen3-8") [0] == "Qwen/Qwen3-8B"  # fmt: skip
    assert len(models.suggest("Qwen3")) <= 3
    assert models.suggest("something else entirely") == ()


@given(st.text(max_size=60))
def test_any_name_is_taken(name: str) -> None:
    found = models.find(name)
    assert found is None or found.name in models.names()


def test_every_doubt_is_told_in_chinese() -> None:
    for asked in ("x/Qwen3-8B-AWQ-INT8", "Qwen3-8B-AWQ", "Qwen3-8B-exl3", "Qwen3-8B-2611"):
        found = models.find(asked)
        assert found is not None
        assert all(phrases.chinese(line) != line for line in found.unsure)


def test_one_look_up_parses_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "records", lambda *_: pytest.fail("all records were parsed"))
    assert models.find("Qwen/Qwen3-14B-AWQ") is not None


def test_the_index_agrees_with_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "record", lambda *_: None)
    with pytest.raises(KnowledgeError, match="not read as a record"):
        models.find("Qwen/Qwen3-8B")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Qwen/Qwen3-8B", True),
        ("Qwen/Qwen3-14B-AWQ", True),
        ("foo/Qwen3-8B-finetune", True),
        ("cyankiwi/Qwen3.5-9B-AWQ-BF16-INT8", False),
        ("Qwen3-8B-GGUF", False),
    ],
)
def test_a_name_tells_how_wide_weights_are_or_that_it_does_not(name: str, known: bool) -> None:
    found = models.find(name)
    assert found is not None
    assert found.width_known is known
