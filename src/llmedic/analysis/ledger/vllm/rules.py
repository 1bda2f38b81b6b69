"""When vLLM's cache arithmetic changed: which rules a release follows, read off the sources of 0.6.6 to 0.33.0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Printed = Literal["blocks", "groups", "requests"]
"""What "KV cache size: N tokens" says.

    blocks    blocks x block size
    groups    blocks // groups x the smallest block size: too little for a model with several kinds of layers
    requests  int(concurrency x max_model_len)
"""

Check = Literal["blocks", "layers", "first group", "groups"]
"""How the start-up check counts what one request of max_model_len needs.

    blocks       its tokens against all tokens of the pool
    layers       the sum over the layers, without padding
    first group  the blocks of the first layer group alone, which is too little for a model with several groups
    groups       the blocks of all groups
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a release does; every name says what is so where it is true.

    layer_kinds       sliding layers are known as such (else every layer keeps every token)
    chunked_layers    so are layers of chunked local attention
    groups            layers of different kinds get block tables of their own
    whole_requests    concurrency counts whole blocks of a request
    global_groups     groups are formed over all pipeline stages, not per stage
    mixed_widths      layers of one kind with different head sizes share a group
    raised_blocks     a kind with smaller pages gets larger blocks, so that all pages are equal
    padded_pages      pages that do not divide the largest are padded
    padded_states     so are states that are smaller than the largest page
    full_fallback     MLA beside sliding layers whose pages cannot be made equal keeps every token of both
    widening          the group size is the largest layer count if that is below so many times the smallest (0: never)
    value_width       value heads narrower or wider than key heads are stored as they are, in full-attention layers
    sliding_value_width   and in sliding ones
    null_block        the start-up check leaves out the block that is never handed out
    stage_check       the check counts the layers of a pipeline stage, not those of the whole model
    state_modes       how a state is kept is a mode of its own; before, a state takes one block per block of tokens
    state_per_block   before the modes: a request holds one state for every block of its tokens (else one)
    draft_states      with a state per block, every speculative token holds one more
    printed, check    see the types
    """

    layer_kinds: bool
    chunked_layers: bool
    groups: bool
    whole_requests: bool
    global_groups: bool
    mixed_widths: bool
    raised_blocks: bool
    padded_pages: bool
    padded_states: bool
    full_fallback: bool
    widening: float
    value_width: bool
    sliding_value_width: bool
    null_block: bool
    stage_check: bool
    state_modes: bool
    state_per_block: bool
    draft_states: bool
    printed: Printed
    check: Check


@lru_cache(maxsize=256)
def rules(version: tuple[int, ...], *, first_engine: bool = False) -> Rules:
    """The rules of a release given as numbers; () is a current one.

    Where a change fell between two releases that were read, the later one is meant.
    """

    def since(*release: int) -> bool:
        return not first_engine and (not version or version >= release)

    printed: Printed = "requests" if since(0, 20, 1) else "groups" if since(0, 9, 2) else "blocks"
    return Rules(
        layer_kinds=since(0, 8),
        chunked_layers=since(0, 10),
        groups=since(0, 9, 2),
        whole_requests=since(0, 9, 2),
        global_groups=since(0, 11),
        mixed_widths=since(0, 11),
        raised_blocks=since(0, 12),
        padded_pages=since(0, 24),
        padded_states=since(0, 26),
        full_fallback=since(0, 27),
        widening=1.5 if since(0, 18) else 1.25 if since(0, 12) else 0.0,
        value_width=since(0, 14),
        sliding_value_width=since(0, 20),
        null_block=since(0, 29),
        stage_check=since(0, 17),
        state_modes=since(0, 15),
        state_per_block=since(0, 11, 1),
        draft_states=since(0, 22),
        printed=printed,
        check=_check(since),
    )


def _check(since: Callable[..., bool]) -> Check:
    if since(0, 19):
        return "groups"
    if since(0, 14):
        return "first group"
    return "layers" if since(0, 8) else "blocks"
