"""The KV cache of vLLM: blocks, the size it prints, the concurrency it prints, the longest request, in any release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

from llmedic.analysis.ledger.vllm import groups as grouping
from llmedic.analysis.ledger.vllm import requests
from llmedic.analysis.ledger.vllm.groups import Group
from llmedic.analysis.ledger.vllm.pages import Page, pages
from llmedic.analysis.ledger.vllm.question import Question
from llmedic.analysis.ledger.vllm.rules import Rules, rules
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.analysis.ledger.vllm.stages import stages
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import CacheFit, Range


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlan:
    """How a model's cache is laid out on the devices of one replica.

    stage_block_bytes   per pipeline stage: bytes of one block on one of its devices
    checked_block_bytes bytes of one block in the start-up check
    groups              layer groups of the whole model
    counts              how often each kind of group is there, by its page
    raw                 pages as the layers would have them alone, per stage, for the check of the first releases
    refusal             why the release does not start with this layout; "" when it does
    """

    settings: Settings
    rules: Rules
    stage_block_bytes: tuple[int, ...]
    checked_block_bytes: int
    groups: tuple[Group, ...]
    counts: tuple[tuple[Page, int], ...]
    raw: tuple[tuple[tuple[Page, int], ...], ...]
    refusal: str = ""

    @property
    def bytes_per_block(self) -> int:
        """Of the device that needs most for one."""
        return max(self.stage_block_bytes, default=0)

    @property
    def block_tokens(self) -> int:
        """Tokens in a block of the smallest group; 0 where a block is a whole request."""
        return min((page.block_tokens for page, _ in self.counts if page.block_tokens), default=0)

    @property
    def bytes_per_token(self) -> float:
        """Bytes of one device for one more token of one long request."""
        steps = sum(
            count / (page.block_tokens * self.settings.context_parallel)
            for page, count in self.counts
            if page.everything
        )
        return self.bytes_per_block * steps

    def blocks(self, available_bytes: float) -> int:
        """Blocks in a pool of so many bytes per device (`--num-gpu-blocks-override` sets them instead)."""
        if self.settings.blocks_override:
            return self.settings.blocks_override
        return max(int(available_bytes) // self.bytes_per_block, 0) if self.bytes_per_block else 0

    def blocks_per_request(self, tokens: int) -> int:
        """Blocks that one request of so many tokens holds at most, over all groups."""
        return sum(count * self._held(page, tokens) for page, count in self.counts)

    def concurrency(self, blocks: int, max_model_len: int) -> float:
        """Requests of max_model_len that fit at once, as the release computes it (it prints two decimals)."""
        if not self.rules.whole_requests:
            return blocks * self.block_tokens / max_model_len
        held = self.blocks_per_request(max_model_len)
        return blocks / held if held else 0.0

    def printed_tokens(self, blocks: int, max_model_len: int) -> int:
        """What the release prints as the size of the cache, in tokens."""
        if self.rules.printed == "requests":
            return int(self.concurrency(blocks, max_model_len) * max_model_len)
        tokens = self.block_tokens or max_model_len
        if self.rules.printed == "groups" and self.groups:
            return blocks // len(self.groups) * tokens * self.settings.context_parallel
        return blocks * tokens

    def fits(self, available_bytes: float, tokens: int) -> bool:
        """Whether the release starts with so long a max_model_len in a pool of so many bytes per device."""
        if self.settings.blocks_override and self.rules.printed == "requests":
            available_bytes = self.settings.blocks_override * self.bytes_per_block
        if self.rules.check == "blocks":
            return tokens <= self.blocks(available_bytes) * self.block_tokens
        if self.rules.check == "layers":
            return all(self._layers_bytes(stage, tokens) <= available_bytes for stage in self.raw)
        held = self._checked_blocks(tokens) + (1 if self.rules.null_block else 0)
        return 0 < held * self.checked_block_bytes <= available_bytes

    def longest_request(self, available_bytes: float, limit: int) -> int:
        """Tokens of the longest request, up to a limit, with which the release starts; 0 when none fits.

        The engine's own search (vllm/v1/core/kv_cache_utils.py, estimate_max_model_len).
        """
        if not self.counts or not self.fits(available_bytes, 1):
            return 0
        return _last(limit, lambda tokens: self.fits(available_bytes, tokens))

    def usable(self, blocks: int) -> int:
        """Blocks that requests can have: one is kept back as padding (vllm/v1/core/block_pool.py, null_block)."""
        return blocks if self.settings.first_engine else max(blocks - 1, 0)

    def servable(self, usable_blocks: int, limit: int) -> int:
        """Tokens of the longest request, up to a limit, whose blocks are there; 0 when not even one token's are."""
        if not self.counts or self.blocks_per_request(1) > usable_blocks:
            return 0
        return _last(limit, lambda tokens: self.blocks_per_request(tokens) <= usable_blocks)

    def _layers_bytes(self, stage: tuple[tuple[Page, int], ...], tokens: int) -> int:
        return sum(count * page.bytes * self._held(page, tokens) for page, count in stage)

    def _checked_blocks(self, tokens: int) -> int:
        if self.rules.check == "first group":
            return self._held(self.groups[0].page, tokens)
        return self.blocks_per_request(tokens)

    def _held(self, page: Page, tokens: int) -> int:
        return requests.blocks(page, tokens, self.settings, self.rules)


def plan(geometry: Geometry, settings: Settings) -> CachePlan:
    """The layout of a model's cache under some settings.

    Asked thousands of times in a search, for few layouts: the same geometry with settings that lay the cache out
    alike is answered from memory.
    """
    return _plan(Question(geometry, settings, _layout(settings)))


def fit(plan: CachePlan, available: Range, max_model_len: int, *, limit: int = 0) -> CacheFit:
    """What a pool of so many bytes per device holds.

    limit  the longest request to look for; 0: max_model_len
    """
    sizes = (available.low, available.likely, available.high)
    blocks = [plan.blocks(size) for size in sizes]
    return CacheFit(
        bytes_per_block=plan.bytes_per_block,
        block_tokens=plan.block_tokens,
        groups=len(plan.groups),
        bytes_per_token=plan.bytes_per_token,
        blocks=_range(blocks),
        printed_tokens=_range(plan.printed_tokens(count, max_model_len) for count in blocks),
        blocks_per_request=plan.blocks_per_request(max_model_len),
        max_model_len=max_model_len,
        concurrency=_range(plan.concurrency(count, max_model_len) for count in blocks),
        longest_request=_range(
            min(
                plan.longest_request(size, limit or max_model_len),
                plan.servable(plan.usable(count), limit or max_model_len),
            )
            for size, count in zip(sizes, blocks, strict=True)
        ),
    )


LAYOUT = (
    "version", "first_engine", "blocks_override", "in_flight_tokens", "retained_tokens", "block_tokens",
    "kernel_block_tokens", "cache_element_bytes", "cache_scale_bytes", "latent_token_bytes", "tensor_parallel",
    "pipeline_parallel", "context_parallel", "speculative_tokens", "draft_layers", "hybrid_manager", "state_mode",
    "state_element_bytes", "state_chunk_tokens", "checkpoint_blocks",
)  # fmt: skip
"""The settings that a plan follows from."""
_layout = attrgetter(*LAYOUT)


@lru_cache(maxsize=512)
def _plan(question: Question) -> CachePlan:
    geometry, settings = question.geometry, question.settings
    layers = geometry.layers
    draft = geometry.draft_layers if settings.speculative_tokens and settings.draft_layers else ()
    rule = rules(settings.version, first_engine=settings.first_engine)
    own = dict(enumerate(pages((*layers, *draft), settings, rule, geometry.bytes_each)))
    cached = {number: page for number, page in own.items() if page is not None}
    parts = stages(len(layers), len(draft), settings)
    if rule.global_groups:
        whole = grouping.group(cached, rule, hybrid=settings.hybrid_manager)
        found = [whole] * len(parts)
    else:
        found = [
            grouping.group({n: page for n, page in cached.items() if n in part}, rule, hybrid=settings.hybrid_manager)
            for part in parts
        ]
    first = next((one for one in found if one.groups), found[0])
    block_bytes = tuple(_block_bytes(one.groups, part) for part, one in zip(parts, found, strict=True))
    return CachePlan(
        settings=settings,
        rules=rule,
        stage_block_bytes=block_bytes,
        checked_block_bytes=max(block_bytes) if rule.stage_check else _block_bytes(first.groups, range(len(own))),
        groups=first.groups,
        counts=_counts(group.page for group in first.groups),
        raw=tuple(_counts(page for number, page in cached.items() if number in part) for part in parts),
        refusal=next((one.refusal for one in found if one.refusal), _empty_stage(block_bytes)),
    )


def _block_bytes(groups: tuple[Group, ...], layers: range) -> int:
    """Bytes of one block in some layers: the group that needs most decides, since any group may get the block."""
    return max((group.bytes_within(layers) for group in groups), default=0)


def _empty_stage(block_bytes: tuple[int, ...]) -> str:
    """Every release stumbles over a pipeline stage that caches nothing beside one that does."""
    return (
        "a pipeline stage would have no layer with a cache: use fewer stages"
        if max(block_bytes) and not min(block_bytes)
        else ""
    )


def _counts(every: Iterable[Page]) -> tuple[tuple[Page, int], ...]:
    return tuple(Counter(every).items())


def _range(values: Iterable[float]) -> Range:
    low, likely, high = values
    return Range(low=low, likely=likely, high=high)


def _last(limit: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to a limit for which something holds that holds for 1 and for all below."""
    low, high = 1, max(limit, 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
