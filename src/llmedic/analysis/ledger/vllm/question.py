"""A key for what is asked again and again in a search: the same geometry, and settings that matter to the answer."""

from __future__ import annotations

from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.model.geometry import Geometry


class Question:
    """Equal to another one when the geometry is the same object and what matters of the settings is equal.

    Comparing and hashing whole geometries of some hundred layers would cost more than the arithmetic.
    """

    __slots__ = ("geometry", "key", "settings")

    def __init__(self, geometry: Geometry, settings: Settings, key: tuple[object, ...]) -> None:
        self.geometry, self.settings, self.key = geometry, settings, key

    def __hash__(self) -> int:
        return hash((id(self.geometry), self.key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and other.geometry is self.geometry and other.key == self.key
