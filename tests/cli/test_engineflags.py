"""An engine's flags among our options: each word goes to whom it belongs, and a misspelt one to nobody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic import errors
from llmedic.cli import engineflags
from llmedic.knowledge import flags

OURS = {"--gpu": True, "--engine": True, "--engine-version": True, "--log": True, "--args": True, "--quick": False,
        "--help": False, "-h": False}  # fmt: skip

TAKEN = sorted(flag for flag, (spec, _) in flags.by_spelling("vllm").items() if flags.exists(spec.name, "vllm"))


def split(*words: str) -> tuple[list[str], tuple[str, ...]]:
    return engineflags.split(words, OURS)


@pytest.mark.parametrize(
    ("words", "ours", "theirs"),
    [
        ("Q --gpu H100", "Q --gpu H100", ""),
        ("Q --max-model-len 16000", "Q", "--max-model-len 16000"),
        ("--max-model-len 16000 Q", "Q", "--max-model-len 16000"),
        ("--max-model-len=16000 Q", "Q", "--max-model-len=16000"),
        ("--enforce-eager Q", "Q", "--enforce-eager"),
        ("--no-enable-prefix-caching Q", "Q", "--no-enable-prefix-caching"),
        ("--max_model_len 16000 Q", "Q", "--max_model_len 16000"),
        ("--compilation-config.level 0 Q", "Q", "--compilation-config.level 0"),
        ("-tp 2 --gpu=H100 Q", "--gpu=H100 Q", "-tp 2"),
        ("--quick -h Q --gpu --strange", "--quick -h Q --gpu --strange", ""),
        ("--max-model-len -1 Q", "Q", "--max-model-len -1"),
        ("--engine sglang --context-length 8192 Q", "--engine sglang Q", "--context-length 8192"),
        ("m.gguf -c 8192 -ngl 99", "m.gguf", "-c 8192 -ngl 99"),
        ("Q --num-lookahead-slots 2 --engine-version 0.6.0", "Q --engine-version 0.6.0", "--num-lookahead-slots 2"),
        ("--disable-log-requests Q --download-dir x", "Q", "--disable-log-requests --download-dir x"),
        ("--log x --num-lookahead-slots 2", "--log x", "--num-lookahead-slots 2"),
        ("--log x --context-length 8192 --max-num-seqs 8", "--log x", "--context-length 8192 --max-num-seqs 8"),
    ],
)
def test_every_word_goes_to_whom_it_belongs(words: str, ours: str, theirs: str) -> None:
    assert split(*words.split()) == (ours.split(), tuple(theirs.split()))


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("Q --max-modellen 3", "no such flag: --max-modellen", "did you mean --max-model-len?"),
        ("Q --gpuz H100", "no such flag: --gpuz", "did you mean --gpu?"),
        ("Q --context-length 3", "no such flag: --context-length", "it is a flag of sglang: add --engine sglang"),
        ("m.gguf --max-model-len 3", "no such flag: --max-model-len", "it is a flag of vllm: add --engine vllm"),
        ("Q --zzz 3", "no such flag: --zzz", "can be given in --args"),
        ("Q --download-dri x", "no such flag: --download-dri", "did you mean --download-dir?"),
        ("Q --max-model-len", "--max-model-len needs a value", "--max-model-len VALUE"),
        ("Q --max-model-len --enforce-eager", "--max-model-len needs a value", "--max-model-len VALUE"),
        ("Q --engine-version 0.6.0 --kv-cache-memory-bytes 9", "no such flag in vllm, 0.6.0", "--engine-version V"),
        ("Q --num-lookahead-slots 2", "no such flag in vllm, a current release", "--engine-version V"),
    ],
)
def test_nothing_is_swallowed(words: str, message: str, hint: str) -> None:
    with pytest.raises(errors.UsageError) as raised:
        split(*words.split())

    assert message in raised.value.message
    assert hint in raised.value.hint


def test_a_named_engine_decides_wherever_it_stands() -> None:
    assert split("--context-length", "8192", "Q", "--engine", "sglang")[1] == ("--context-length", "8192")
    assert split("--context-length", "8192", "Q", "--engine=sglang")[1] == ("--context-length", "8192")


def test_an_engine_that_does_not_exist_is_left_to_our_own_option() -> None:
    assert split("Q", "--engine", "mlx", "--max-model-len", "3")[0] == ["Q", "--engine", "mlx"]


@pytest.mark.parametrize(
    ("is_gguf", "is_told", "engine"), [(False, False, "vllm"), (True, False, "llama.cpp"), (False, True, "")]
)
def test_the_engine_where_none_is_named(is_gguf: bool, is_told: bool, engine: str) -> None:
    assert engineflags.guess(is_gguf=is_gguf, is_told=is_told) == engine


@pytest.mark.parametrize(
    ("engine", "typed"),
    [
        ("vllm", ("--tensor-parallel-size", "2")),
        ("", ("--tensor-parallel-size", "2")),
        ("sglang", ("--tp-size", "2")),
        ("tgi", ("--num-shard", "2")),
    ],
)
def test_a_setting_as_the_engine_spells_it(engine: str, typed: tuple[str, ...]) -> None:
    assert engineflags.typed("tensor_parallel_size", 2, engine) == typed
    assert engineflags.typed("tensor_parallel_size", None, engine) == ()


def test_a_setting_that_the_engine_does_not_have() -> None:
    with pytest.raises(errors.UsageError, match=r"llama\.cpp has no flag for tensor parallel size"):
        engineflags.typed("tensor_parallel_size", 2, "llama.cpp")


@given(st.lists(st.sampled_from(TAKEN), max_size=6), st.booleans())
def test_every_flag_that_is_known_is_taken_and_no_word_is_lost(spelled: list[str], equals: bool) -> None:
    words: list[str] = ["MODEL"]
    for flag in spelled:
        spec, is_yes = flags.by_spelling("vllm")[flag]
        valued = is_yes and spec.type != "bool"
        words += [f"{flag}=7"] if valued and equals else [flag, "7"] if valued else [flag]

    ours, theirs = split(*words)

    assert ours == ["MODEL"]
    assert list(theirs) == words[1:]
