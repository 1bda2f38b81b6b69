"""Where the memory of a card goes under SGLang."""

from llmedic.analysis.ledger.sglang.balance import ledger

__all__ = ["ledger"]
