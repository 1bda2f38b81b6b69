"""Which layers share a table of blocks: the layer groups of vLLM's allocator, in any release.

A block id is handed to one group, and all groups draw from one pool, so a block takes as many bytes as the largest
group needs for one. Sources: vllm/v1/core/kv_cache_utils.py (0.8 to 0.32), vllm/v1/core/kv_cache_planning.py (0.33).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from llmedic.analysis.ledger.vllm.pages import Page
from llmedic.analysis.ledger.vllm.rules import Rules

NOT_TOGETHER = (
    "the layers keep different windows and cannot share one group, as they must without the hybrid cache manager"
)

Layers = dict[int, Page]
"""Pages by the number of their layer, in order."""


@dataclass(frozen=True, slots=True)
class Group:
    """Layers with one table of blocks, and the page of each."""

    layers: tuple[int, ...]
    pages: tuple[Page, ...]

    @property
    def page(self) -> Page:
        """What stands for the group: pages of one group hold equally many tokens."""
        return self.pages[0]

    def bytes_within(self, layers: range) -> int:
        """Bytes of one block in those of its layers that lie in a range."""
        return sum(page.bytes for number, page in zip(self.layers, self.pages, strict=True) if number in layers)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of a model or a pipeline stage; refusal: why the release does not start with it, "" when it does."""

    groups: tuple[Group, ...]
    refusal: str = ""


def group(layers: Layers, rules: Rules, *, hybrid: bool) -> Grouping:
    """The layer groups.

    hybrid  kinds of layers may get groups of their own: the release can, and it was not switched off
    """
    apart = hybrid and rules.groups
    shared = layers if apart else _promoted(layers, rules)
    if not shared:
        return Grouping(())
    if shared is not layers and _windows(layers.values()) > 1:
        return Grouping((_group(shared),), NOT_TOGETHER)
    if _alike(shared.values()) or (rules.mixed_widths and _one_type(shared.values())):
        return Grouping((_group(shared),))
    if not apart and not any(page.kind == "state" for page in shared.values()):
        return Grouping((_group(shared),), NOT_TOGETHER)
    equal, refusal = _equal_pages(shared, rules)
    if refusal:
        fallback = _promoted(shared, rules)
        if rules.full_fallback and _may_promote(shared.values()) and _one_type(fallback.values()):
            return Grouping((_group(fallback),))
    return Grouping(tuple(_split(equal, rules)), refusal)


def _group(layers: Layers) -> Group:
    return Group(tuple(layers), tuple(layers.values()))


def _alike(pages: Iterable[Page]) -> bool:
    """All pages are the same."""
    return len(set(pages)) == 1


def _one_type(pages: Iterable[Page]) -> bool:
    """All layers need equally many blocks of a request, whatever a block of each weighs."""
    kinds = {("every", 0) if page.everything else (page.kind, page.window_tokens) for page in pages}
    return len(kinds) == 1 and len({page.block_tokens for page in pages}) == 1


def _windows(pages: Iterable[Page]) -> int:
    """How many windows the layers of one kind have; kept whole, they still compute with it, and may have one only."""
    local = {(page.kind, page.window_tokens) for page in pages if page.local}
    return max(Counter(kind for kind, _ in local).values(), default=0)


def _promoted(layers: Layers, rules: Rules) -> Layers:
    """Layers that keep the last tokens only, kept whole: what happens beside full layers without groups."""
    full = [page for page in layers.values() if page.everything]
    if not full or _one_type(layers.values()):
        return layers
    block = full[0].block_tokens
    whole = {}
    for number, page in layers.items():
        grown = page.bytes * block // page.block_tokens if page.local else page.bytes
        whole[number] = (
            replace(page, kind="full", window_tokens=0, block_tokens=block, bytes=grown) if page.local else page
        )
    return whole


def _may_promote(pages: Iterable[Page]) -> bool:
    """MLA beside sliding layers may fall back to keeping every token (0.27 and later)."""
    kinds = {page.kind for page in pages}
    return "mla" in kinds and "sliding" in kinds and not kinds & {"chunked", "state"}


def _equal_pages(layers: Layers, rules: Rules) -> tuple[Layers, str]:
    """The layers with pages of one size, and why that failed, if it did."""
    largest = max(page.bytes for page in layers.values())
    equal: Layers = {}
    for number, page in layers.items():
        if page.bytes == largest:
            equal[number] = page
        elif page.kind == "state" and rules.padded_states:
            equal[number] = replace(page, bytes=largest)
        elif page.kind != "state" and largest % page.bytes == 0 and rules.raised_blocks:
            times = largest // page.bytes
            equal[number] = replace(page, bytes=largest, block_tokens=page.block_tokens * times)
        elif page.kind not in ("state", "mla") and rules.padded_pages:
            equal[number] = replace(page, bytes=largest)
        else:
            return layers, (
                f"this release cannot make cache pages of {page.bytes} bytes as large as the largest, {largest} bytes"
            )
    return equal, ""


def _split(layers: Layers, rules: Rules) -> Iterable[Group]:
    """Each kind of layer in groups of one size; a group that does not fill up is padded with layers that are not."""
    kinds: dict[Page, Layers] = {}
    for number, page in layers.items():
        kinds.setdefault(page, {})[number] = page
    size = _group_size([len(members) for members in kinds.values()], rules)
    for members in kinds.values():
        yield from _chunks(members, size, rules)


def _group_size(counts: Sequence[int], rules: Rules) -> int:
    """Layers per group: the smallest count of a kind, or the largest where the two are close."""
    smallest, largest = min(counts), max(counts)
    return largest if largest < smallest * rules.widening else smallest


def _chunks(members: Layers, size: int, rules: Rules) -> Iterable[Group]:
    numbers = list(members)
    count = math.ceil(len(numbers) / size)
    for index in range(count):
        own = numbers[index::count] if rules.global_groups else numbers[index * size : (index + 1) * size]
        yield Group(tuple(own), tuple(members[number] for number in own))
