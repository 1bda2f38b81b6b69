"""config.json -> `Geometry`: what every layer caches and what every part weighs.

Everything is read from the configuration; where it is silent, the conventions of the model class apply
(`families`). What it leaves open is said in `Geometry.unsure`; what cannot be a model is an `InputError`.
"""

from __future__ import annotations

from llmedic.analysis.ledger.geometry.assemble import of

__all__ = ["of"]
