"""The settings that decide the memory of a vLLM server, each with the default of its release, card and model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the arithmetic needs to know, resolved: nothing is None that the release decides by itself.

    version                    release as numbers, () for a current one
    utilization                share of the card; cache_bytes: --kv-cache-memory-bytes, which bypasses it (0: not given)
    blocks_override            --num-gpu-blocks-override (0: not given)
    max_num_seqs, max_model_len, max_num_batched_tokens    requests, tokens, tokens
    in_flight_tokens           tokens that may be computed and not yet freed: the token budget, times the batches
                               in flight with asynchronous scheduling in the releases that count them
    block_tokens               --block-size, or the platform's default
    cache_element_bytes        bytes of one cached number (fp8: 1)
    speculative_tokens         draft tokens per step, 0 without speculation
    hybrid_manager             layers of different kinds get groups of their own (else all are treated as full)
    state_mode                 "none", "all" or "align": how the state of recurrent layers is kept for prefix caching
    eager                      no CUDA graphs
    first_engine               the engine of the first releases (V0): one block table, all layers keep all tokens
    cache_scale_bytes          bytes of the scale beside each cached head of a token (int8_per_token_head: 4)
    latent_token_bytes         MLA: bytes of a token in a layout that packs values and scales (0: numbers x their bytes)
    kernel_block_tokens        the attention kernel reads the cache in blocks of this size; hybrids align to it
    state_chunk_tokens         chunk of the state's kernel, to which state_mode "all" aligns
    checkpoint_blocks          states kept beside the running one for prefix caching inside a prefill
    retained_tokens            tokens kept below a sliding window for draft modules that run again
    """

    version: tuple[int, ...] = ()
    utilization: float = 0.9
    cache_bytes: int = 0
    blocks_override: int = 0
    max_num_seqs: int = 256
    max_model_len: int = 0
    max_num_batched_tokens: int = 2048
    in_flight_tokens: int = 2048
    block_tokens: int = 16
    cache_element_bytes: float = 2.0
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    context_parallel: int = 1
    expert_parallel: bool = False
    speculative_tokens: int = 0
    hybrid_manager: bool = True
    prefix_caching: bool = True
    state_mode: str = "none"
    state_element_bytes: float = 0.0
    eager: bool = False
    lora_slots: int = 0
    lora_rank: int = 0
    first_engine: bool = False
    cache_scale_bytes: int = 0
    latent_token_bytes: int = 0
    kernel_block_tokens: int = 16
    state_chunk_tokens: int = 2048
    checkpoint_blocks: int = 0
    retained_tokens: int = 0
    notes: tuple[str, ...] = ()
