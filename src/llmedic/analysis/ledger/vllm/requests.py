"""How many blocks of a layer group one request holds at most, in any release of vLLM.

Source: the `max_memory_usage_bytes` of vllm/v1/kv_cache_interface.py, 0.8 to 0.33, divided by the page.
"""

from __future__ import annotations

from llmedic.analysis.ledger.vllm.pages import Page
from llmedic.analysis.ledger.vllm.rules import Rules
from llmedic.analysis.ledger.vllm.settings import Settings


def blocks(page: Page, tokens: int, settings: Settings, rules: Rules) -> int:
    """Blocks that a request of so many tokens holds in a group with this page.

    full, MLA   every token; context parallelism divides the tokens over its ranks
    sliding     the window and what is in flight, and one block more, because a window may start inside a block
    chunked     the chunk and what is in flight
    state       one state, or as many as the mode of prefix caching keeps
    """
    match page.kind:
        case "full" | "mla":
            return _ceil(_ceil(tokens, settings.context_parallel), page.block_tokens)
        case "sliding":
            kept = page.window_tokens - 1 + settings.retained_tokens + settings.in_flight_tokens
            return _ceil(min(kept, tokens), page.block_tokens) + 1
        case "chunked":
            return _ceil(min(page.window_tokens + settings.in_flight_tokens, tokens), page.block_tokens)
        case "state":
            return _states(page, tokens, settings, rules)


def _states(page: Page, tokens: int, settings: Settings, rules: Rules) -> int:
    per_block = _ceil(tokens, page.block_tokens) if page.block_tokens else 1
    if not rules.state_modes:
        return per_block if rules.state_per_block else 1
    if settings.state_mode == "all":
        return per_block + (settings.speculative_tokens if rules.draft_states else 0)
    if settings.state_mode == "align":
        return 2 + settings.speculative_tokens + settings.checkpoint_blocks
    return 1 + settings.speculative_tokens


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
