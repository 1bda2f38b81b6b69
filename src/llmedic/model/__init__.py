"""Frozen values that every other package speaks: evidence in, verdict out. No logic beyond invariants."""
