"""Where the memory of a card goes under llama.cpp, and under Ollama, which runs the same engine."""

from llmedic.analysis.ledger.llamacpp.balance import ledger

__all__ = ["ledger"]
