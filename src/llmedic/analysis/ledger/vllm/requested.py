"""What a vLLM server asks of a card."""

from __future__ import annotations

from math import ceil

from llmedic.analysis.ledger.ranges import GIB
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.model.ledger import Range, Term


def requested(total_bytes: Range, settings: Settings) -> Term:
    """The share of the card that the server may take: ceil(total x utilization).

    Source: request_memory in vllm/v1/worker/utils.py, 0.33; earlier releases do not round up, which is one byte.
    """
    share = settings.utilization
    size = Range(low=ceil(total_bytes.low * share), likely=ceil(total_bytes.likely * share),
                 high=ceil(total_bytes.high * share))  # fmt: skip
    return Term(id="requested", size=size, basis="computed", how=f"{total_bytes.likely / GIB:.2f} GiB x {share:g}")
