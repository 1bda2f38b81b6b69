"""What is tried on a ledger before it is advised."""

from __future__ import annotations

from dataclasses import replace

from tests.analysis.ledger.test_sglang import geometry, server

from llmedic.analysis.ledger import trial
from llmedic.errors import InputError
from llmedic.model.deployment import Deployment, HardwareFacts
from llmedic.model.ledger import Starts


def degree(deployment: Deployment) -> int:
    return next((int(str(flag.value)) for flag in deployment.flags if flag.name == "tensor_parallel_size"), 1)


def test_the_first_change_that_surely_starts_is_typed_as_the_engine_spells_it() -> None:
    def verdict(changed: Deployment) -> Starts:
        if degree(changed) == 2:
            raise InputError("refused")
        return "yes" if degree(changed) >= 8 else "perhaps"

    options = list(trial.wider(geometry(), server(), 1))
    assert trial.first(options, server(), verdict) == "--tp-size 8"
    assert trial.first(options, server(), lambda _: "no") == ""
    assert trial.first([{"no_such_setting": 1}], server(), lambda _: "yes") == ""


def test_more_ranks_than_cards_are_never_tried() -> None:
    machine = replace(server(), hardware=HardwareFacts(count=8))
    assert [one["tensor_parallel_size"] for one in trial.wider(geometry(), machine, 2)] == [4, 8]
    assert [one["tensor_parallel_size"] for one in trial.wider(geometry(), machine, 1, others=4)] == [2]


def test_a_flag_that_was_set_is_replaced() -> None:
    whole = trial.changed(server(flags={"tensor_parallel_size": 2, "block_size": 16}), {"tensor_parallel_size": 4})
    assert {flag.name: flag.value for flag in whole.flags} == {"tensor_parallel_size": 4, "block_size": 16}
