"""vLLM's memory, in any release: what a rank takes, how its cache is laid out, whether it starts, what would fit."""
