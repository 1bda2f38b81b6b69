"""LLMedic: the on-call toolkit for LLM inference."""

__version__ = "0.1.0"
