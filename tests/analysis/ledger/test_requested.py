"""What a server asks of a card."""

import math

from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.analysis.ledger.requested import requested, suggested_cache_bytes
from llmedic.analysis.ledger.settings import Settings
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


def test_the_suggestion_of_a_real_log() -> None:
    """llava 1.6 on an H100, 0.10.2: 71.27 requested; 14.08, 1.97 and 0.07 used; 0.67 GiB of graphs."""
    printed = 58_333_988_249
    assert abs(suggested_cache_bytes(71.27 * GIB, 16.12 * GIB, 0.67 * GIB) - printed) < 0.02 * GIB
