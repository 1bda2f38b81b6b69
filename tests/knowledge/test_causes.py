"""The closed list of causes is complete, in both languages, and its order of explanation ends somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmedic import errors
from llmedic.knowledge import causes, texts
from llmedic.model.verdict import LAYERS

CLOSED_LIST = (Path(__file__).parent.parent / "data" / "causes.txt").read_text(encoding="utf-8").split()

VALUES = {
    "",
    "seqs_from_pool",
    "seqs_raise",
    "model_len_from_pool",
    "seqs_halved",
    "utilization_lower",
    "tensor_parallel_raise",
    "token_budget_raise",
    "token_budget_lower",
    "timeout_from_ttft",
    "keepalive_from_idle",
    "ctx_from_slots",
    "threads_from_quota",
    "dtype_bfloat16",
    "concurrency_from_pool",
}


@pytest.fixture(params=CLOSED_LIST)
def cause_id(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_list_is_closed() -> None:
    assert CLOSED_LIST == list(causes.ids())
    assert len(CLOSED_LIST) == 92


def test_layers_stand_in_the_order_in_which_they_are_walked() -> None:
    layers = [cause.layer for cause in causes.causes().values()]

    assert layers == sorted(layers, key=LAYERS.index)


def test_one_cause_read_alone_is_the_same_as_in_the_whole_file(cause_id: str) -> None:
    assert causes.cause(cause_id) == causes.causes()[cause_id]


def test_every_text_is_there_in_both_languages(cause_id: str) -> None:
    cause = causes.cause(cause_id)

    for text in (cause.title, cause.what, cause.decided_by, cause.remedy, cause.change.expected):
        assert text.en.strip()
        assert any("\u4e00" <= letter <= "\u9fff" for letter in text.zh) or text.zh.startswith("--")


def test_it_ends_in_one_change_that_can_be_checked(cause_id: str) -> None:
    change = causes.cause(cause_id).change

    assert change.variable
    assert "," not in change.variable, "one variable"
    assert change.verify
    assert change.value in VALUES


def test_what_it_explains_is_in_the_list_and_never_itself(cause_id: str) -> None:
    assert causes.downstream(cause_id) <= set(CLOSED_LIST)
    assert cause_id not in causes.downstream(cause_id), "a circle"
    assert len(set(causes.cause(cause_id).explains)) == len(causes.cause(cause_id).explains)


def test_a_chain_is_followed_to_its_end() -> None:
    assert "client-retry-storm" in causes.cause("gateway-timeout-too-short").explains
    assert "overload-deep-queue" not in causes.cause("gateway-timeout-too-short").explains
    assert "overload-deep-queue" in causes.downstream("gateway-timeout-too-short")


def test_a_long_context_surge_explains_what_it_fills_and_blocks() -> None:
    assert {
        "kv-pool-exhausted-preemption",
        "prefix-cache-working-set-too-large",
        "overload-deep-queue",
        "long-prefill-blocks-queue",
    } <= causes.downstream("long-context-surge-cache-thrash")


def test_a_restart_destroys_evidence() -> None:
    restart = {cause.id for cause in causes.causes().values() if cause.destroys_evidence}

    assert {"engine-core-stalled", "engine-memory-leak"} <= restart
    assert "max-num-seqs-too-low" not in restart


def test_an_unknown_cause_is_our_bug() -> None:
    with pytest.raises(errors.KnowledgeError, match="no cause has the id nonsense"):
        causes.cause("nonsense")


def test_a_variable_is_a_setting_or_has_a_chinese_name(cause_id: str) -> None:
    name = causes.cause(cause_id).change.variable

    assert " " not in name or name in texts.VARIABLES_ZH
    assert texts.variable(name, "en") == name


def test_every_chinese_name_is_of_a_variable_in_use() -> None:
    used = {cause.change.variable for cause in causes.causes().values()}

    assert set(texts.VARIABLES_ZH) <= used
