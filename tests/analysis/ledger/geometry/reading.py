"""Short ways to read a geometry in tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from llmedic.analysis.ledger import geometry
from llmedic.model.deployment import ModelFacts
from llmedic.model.geometry import Geometry


def read(config: Mapping[str, object], **flags: str) -> Geometry:
    """The geometry of a configuration."""
    return geometry.of(ModelFacts(config=config), **flags)


def parameters(shape: Geometry) -> int:
    """All numbers of the model, drafts aside."""
    return sum(part.parameters for part in shape.weights)


def gib(shape: Geometry, *names: str) -> float:
    """GiB of the named parts; of all without names."""
    return sum(part.bytes for part in shape.weights if not names or part.name in names) / 2**30


def kinds(shape: Geometry) -> Counter[str]:
    """How many layers cache what."""
    return Counter(layer.kind if layer else "nothing" for layer in shape.layers)
