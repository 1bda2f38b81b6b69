"""What a server asks of a card."""

import math

from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.analysis.ledger.vllm.requested import requested
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.model.ledger import Range


def test_the_share_is_rounded_up_to_a_byte() -> None:
    term = requested(exact(25_250_627_584), Settings(utilization=0.9))
    assert term.size == exact(22_725_564_826)
    assert term.basis == "computed"
    assert term.how == "23.52 GiB x 0.9"


def test_a_card_of_uncertain_size() -> None:
    term = requested(Range(low=79 * GIB, likely=79.2 * GIB, high=79.7 * GIB), Settings(utilization=0.5))
    assert (term.size.low, term.size.high) == (39.5 * GIB, math.ceil(39.85 * GIB))
    assert term.basis == "computed"
