"""A key of a search: the same geometry, not an equal one."""

from __future__ import annotations

from dataclasses import replace

from tests.analysis.ledger.shapes import dense

from llmedic.analysis.ledger.vllm.question import Question
from llmedic.analysis.ledger.vllm.settings import Settings


def test_only_what_matters_makes_a_question_another() -> None:
    shape, settings = dense(), Settings()
    one = Question(shape, settings, (1,))
    assert one == Question(shape, replace(settings, utilization=0.5), (1,))
    assert hash(one) == hash(Question(shape, replace(settings, utilization=0.5), (1,)))
    assert one != Question(shape, settings, (2,))
    assert one != Question(dense(), settings, (1,))
    assert one != (1,)
