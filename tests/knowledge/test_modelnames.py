"""Names of models are cut into words that can be compared."""

from __future__ import annotations

import pytest

from llmedic.errors import KnowledgeError
from llmedic.knowledge import load, modelnames


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Qwen/Qwen2.5-7B_AWQ", "qwen 2 5 7b awq"),
        ("llama3.1:8b", "llama 3 1 8b"),
        ("models--Qwen--Qwen3-8B", "qwen 3 8b"),
        ("Qwen3-8B-Q4_K_M-00001-of-00002.gguf", "qwen 3 8b q4 k m gguf"),
        ("gpt-oss-20b-NVFP4", "gpt oss 20b nvfp4"),
        ("Meta-Llama-3-8B-INT4", "meta llama 3 8b int4"),
        ("", ""),
    ],
)
def test_a_name_is_cut_into_words(name: str, words: str) -> None:
    assert modelnames.split(name) == tuple(words.split())


@pytest.mark.parametrize(
    ("name", "organisation"),
    [
        ("Qwen/Qwen3-8B", "qwen"),
        ("Qwen3-8B", ""),
        ("/models/Qwen3-8B", ""),
        ("cache/models--RedHatAI--Qwen3-8B-FP8/snapshots/1", "redhatai"),
    ],
)
def test_a_name_says_whose_model_it_is(name: str, organisation: str) -> None:
    assert modelnames.organisation(name) == organisation


@pytest.mark.parametrize(
    ("words", "known", "alike"),
    [
        ("qwen 3 8b awq", "qwen 3 8b", True),
        ("my qwen 3 8b roleplay", "qwen 3 8b", True),
        ("qwen 3 8b moe", "qwen 3 8b", False),
        ("qwen 3 8b pruned 6b", "qwen 3 8b", False),
        ("phi 4 reasoning", "phi 4", True),
        ("phi 4 mini", "phi 4", False),
        ("phi 4 roleplay", "phi 4", False),
        ("deepseek v3 1", "deepseek v3", False),
        ("deepseek v3 0324", "deepseek v3", True),
    ],
)
def test_words_beside_a_known_name_keep_its_layout_or_do_not(words: str, known: str, alike: bool) -> None:
    start = words.split().index(known.split()[0])
    assert modelnames.same_layout(tuple(words.split()), start, start + len(known.split())) is alike


@pytest.mark.parametrize(
    ("rest", "ways"),
    [
        ("awq", ["awq"]),
        ("gptq int4", ["gptq"]),
        ("gptq int8", ["gptq-int8"]),
        ("fp8 dynamic", ["fp8-dynamic"]),
        ("quantized w4a16", ["w4a16"]),
        ("awq bf16 int8", ["awq", "w8a8", "unquantised"]),
        ("q4 k m gguf", ["gguf"]),
        ("roleplay", []),
    ],
)
def test_words_say_how_weights_are_stored(rest: str, ways: list[str]) -> None:
    assert [way.id for way in modelnames.checkpoints(tuple(rest.split()))] == ways


def test_every_way_of_storing_weights_says_where_it_was_read() -> None:
    for way in load.records("checkpoints.yaml", modelnames.Checkpoint):
        assert way.source
        assert way.words
        assert not (way.plain and way.quantization_config)


def test_an_index_that_disagrees_is_our_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "record", lambda *_: None)
    with pytest.raises(KnowledgeError, match=r"awq is not read as a record"):
        modelnames.checkpoints(("awq",))
