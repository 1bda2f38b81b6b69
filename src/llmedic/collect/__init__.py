"""Passive sources, each in two steps: `capture` does the I/O, `read` is pure and turns what came into evidence."""
