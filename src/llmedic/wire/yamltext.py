"""YAML from a stranger: one small document, in which every key stands once and nothing unfolds without end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import yaml

MAX_BYTES = 32 << 20
MAX_DEPTH = 100
_VALUE_BYTES = 16
"""What a value counts for beside its text."""


class NotReadableError(ValueError):
    """Why a text is no YAML that anybody would write, in words that follow the file's name."""


def load(body: bytes) -> object:
    """The document as plain values. Raises NotReadableError, in one line.

    What an alias stands for counts as often as it is used: a few lines can fill any memory.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(body)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _Check().size(node, 0)
        # Typed as no value of ours: what is in the file is anybody's guess.
        found: object = loader.construct_document(node)
        return found
    except NotReadableError:
        raise
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise NotReadableError(" ".join(str(error).split())[:200]) from error
    finally:
        loader.dispose()


@dataclass(slots=True)
class _Check:
    """Walks the nodes once, however often they are used."""

    known: dict[int, int] = field(default_factory=dict)
    above: set[int] = field(default_factory=set)

    def size(self, node: yaml.Node, depth: int) -> int:
        """About how many bytes the node stands for. Raises NotReadableError for too many, and for a key given twice."""
        if id(node) in self.known:
            return self.known[id(node)]
        if id(node) in self.above:
            raise NotReadableError(f"a value that contains itself, in line {node.start_mark.line + 1}")
        if depth > MAX_DEPTH:
            raise NotReadableError(f"nested more than {MAX_DEPTH} deep, in line {node.start_mark.line + 1}")
        self.above.add(id(node))
        text = len(node.value) if isinstance(node, yaml.ScalarNode) else 0
        total = _VALUE_BYTES + text + sum(self.size(child, depth + 1) for child in _children(node))
        self.above.discard(id(node))
        if total > MAX_BYTES:
            raise NotReadableError(f"more than {MAX_BYTES >> 20} MiB of values, every use of an alias counted")
        self.known[id(node)] = total
        return total


def _children(node: yaml.Node) -> Sequence[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        _refuse_twice([key for key, _ in node.value])
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else ()


def _refuse_twice(keys: Sequence[yaml.Node]) -> None:
    seen: set[tuple[str, str]] = set()
    for key in keys:
        if isinstance(key, yaml.ScalarNode):
            if (key.tag, key.value) in seen:
                raise NotReadableError(f"{key.value[:60]!r} is given twice, in line {key.start_mark.line + 1}")
            seen.add((key.tag, key.value))
