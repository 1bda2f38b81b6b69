"""Arithmetic that does not need a live system: sizes, shares and divisibility."""

from __future__ import annotations

import re

from llmedic.analysis.outcome import FALSE, Outcome, true, unknown
from llmedic.analysis.predicates import memory
from llmedic.analysis.view import View
from llmedic.knowledge import accelerators, flags, quantisations
from llmedic.knowledge.accelerators import SMALL_SHARD_B
from llmedic.model import units
from llmedic.model.finding import Fact

POOL_DEMAND = 1.0
"""Demand above the pool: concurrency x context needs more tokens than there are."""
TAKEN_SHARE = 0.15
"""Somebody else holds the card when more than 15 % of it is taken before the engine starts; contexts take less."""
FREE_AT_START = "vllm-free-memory-low"
"""The log pattern (with its variants) that tells what was free and what the card has."""
USUAL_BLOCK = 16.0
"""Tokens in a KV block where nobody says otherwise."""
BYTES_PER_PARAMETER = {
    "fp8": 1.0, "int8": 1.0, "w8a8": 1.0, "awq": 0.5, "gptq": 0.5, "int4": 0.5, "4bit": 0.5, "w4a16": 0.5,
    "nvfp4": 0.5, "mxfp4": 0.5, "fp4": 0.5, "q4": 0.6, "q8": 1.1,
}  # fmt: skip
"""Bits by eight; llama.cpp's q4 and q8 carry their scales with them. A word that is not here is 16 bit."""
HALF_PRECISION = 2.0
"""Bytes per parameter where no quantisation is named: float16 or bfloat16."""
THREADS_ABOVE = 1.5
"""Threads over cores of quota: a few helper threads mostly sleep, half as many again cannot all."""
ROUNDED = 1.001
"""The message prints two decimals, so equal sizes may differ by a thousandth."""


def pool_demand_exceeds_pool(view: View) -> Outcome:
    """Concurrency x (prompt + answer) needs more KV tokens than the pool has."""
    pool = memory.pool_tokens(view)
    prompt, answer = view.number("prompt_tokens_mean"), view.number("output_tokens_mean")
    together = view.number("client_concurrency") or view.number("requests_running", "max")
    if pool is None or prompt is None or answer is None or together is None:
        return unknown("kv_cache_tokens", "prompt_tokens_mean", "output_tokens_mean", "client_concurrency")
    cap = view.setting("max_num_seqs")
    if cap:
        together = min(together, cap)
    in_blocks = memory.blocks(view, prompt + answer)
    if in_blocks is not None:
        each, there = in_blocks
        shown = f"{together:g} requests x {each:,} blocks = {together * each:,.0f} blocks"
        fact = Fact(name="KV demand", value=shown, source="ledger", compared_to=f"pool of {there:,} blocks")
        return Outcome(holds=together * each > POOL_DEMAND * there, facts=(fact,))
    demand = together * (prompt + answer)
    fact = Fact(
        name="KV demand",
        value=f"{together:g} requests x {units.show(prompt + answer, 'tokens')} = {units.show(demand, 'tokens')}",
        source="ledger",
        compared_to=f"pool of {units.show(pool, 'tokens')}",
    )
    return Outcome(holds=demand > POOL_DEMAND * pool, facts=(fact,))


def one_request_exceeds_pool(view: View) -> Outcome:
    """Prompt plus answer of one request (unknown: the served maximum) is more than the pool can give.

    One block is reserved for padding (vLLM's null block), so the usable pool is a block smaller than its size.
    """
    pool = view.number("servable_tokens") or _pool_tokens(view)
    prompt = view.number("prompt_tokens_max", "max") or view.number("prompt_tokens_mean")
    answer = view.number("output_tokens_max", "max") or view.number("output_tokens_mean") or 0.0
    need = prompt + answer if prompt is not None else view.setting("max_model_len")
    in_blocks = memory.blocks(view, need) if need is not None else None
    if in_blocks is not None:
        each, there = in_blocks
        fact = Fact(
            name="one request", value=f"{each:,} blocks", source="ledger", compared_to=f"pool of {there:,} blocks"
        )
        return Outcome(holds=each > there, facts=(fact,))
    if pool is None or need is None:
        return unknown("kv_cache_tokens", "prompt_tokens_max")
    fact = Fact(
        name="one request",
        value=units.show(need, "tokens"),
        source="ledger",
        compared_to=f"usable pool of {units.show(pool, 'tokens')}",
    )
    return Outcome(holds=need > pool, facts=(fact,))


def _pool_tokens(view: View) -> float | None:
    """The usable pool: what was measured, or blocks x block size as they were set, less the reserved block."""
    blocks = view.number("kv_blocks_count") or view.setting("num_gpu_blocks_override")
    if blocks:
        return (blocks - 1) * (view.setting("block_size") or USUAL_BLOCK)
    return memory.pool_tokens(view)


def tensor_parallel_does_not_divide(view: View) -> Outcome:
    """Heads, or the quantisation groups of the intermediate size, cannot be split evenly over the TP degree."""
    degree = view.setting("tensor_parallel_size")
    heads, wide = view.size("model.num_attention_heads"), view.size("model.intermediate_size")
    group = view.size("model.quantization_config.group_size")
    if degree is None or degree < 2:
        return unknown("flag.tensor_parallel_size") if degree is None else FALSE
    checks: list[tuple[str, float]] = []
    kv_heads = view.size("model.num_key_value_heads")
    if heads is not None:
        checks.append(("attention heads per shard", heads / degree))
    if kv_heads is not None and kv_heads >= 1:
        # Fewer KV heads than shards are replicated, so then the division is the other way round.
        larger, smaller = max(kv_heads, degree), min(kv_heads, degree)
        checks.append(("KV heads and shards", larger / smaller))
    if wide is not None and group is not None and group >= 1:
        checks.append(("quantisation groups per shard", wide / group / degree))
    if not checks:
        return unknown("model.num_attention_heads", "model.intermediate_size")
    facts = tuple(Fact(name=name, value=f"{number:g}", source="ledger", compared_to="a whole number")
                  for name, number in checks if number != int(number))  # fmt: skip
    return true(*facts) if facts else FALSE


def served_length_beyond_positions(view: View) -> Outcome:
    """The announced maximum length is larger than the model's real range of positions."""
    positions, factor = view.size("model.max_position_embeddings"), view.size("model.rope_scaling.factor")
    original = view.size("model.rope_scaling.original_max_position_embeddings")
    served = view.setting("max_model_len")
    if positions is None or served is None:
        return unknown("model.max_position_embeddings", "flag.max_model_len")
    reach = positions
    if original is not None and factor is not None:
        reach = max(reach, original * factor)
    fact = Fact(name="max_model_len", value=units.show(served, "tokens"), source="ledger",
                compared_to=f"{units.show(reach, 'tokens')} of positions")  # fmt: skip
    return Outcome(holds=served > reach, facts=(fact,))


def more_threads_than_quota(view: View) -> Outcome:
    """Threads (or the host's cores they are sized from) outnumber the CPU quota."""
    quota = view.number("cpu_quota_cores")
    threads = view.number("threads_count") or view.size("hardware.host_cpus")
    if quota is None or threads is None:
        return unknown("cpu_quota_cores", "threads_count")
    fact = Fact(
        name="threads or host cores", value=f"{threads:g}", source="ledger", compared_to=f"{quota:g} cores of quota"
    )
    return Outcome(holds=threads > THREADS_ABOVE * quota, facts=(fact,))


def much_memory_is_taken_at_start(view: View) -> Outcome:
    """Before the engine allocated anything, a large part of the card was in use by somebody else."""
    free, total = memory_at_start(view)
    if free is None or total is None:
        return unknown("free and total device memory at start")
    fact = Fact(name="free at start", value=f"{free:g} GiB", source="log", compared_to=f"{total:g} GiB on the card")
    return Outcome(holds=total - free > TAKEN_SHARE * total, facts=(fact,))


def fraction_is_a_little_above_free(view: View) -> Outcome:
    """The wanted share of the card is above what is free, by no more than contexts and displays take."""
    free, total = memory_at_start(view)
    share = view.setting("gpu_memory_utilization") or _usual_fraction(view)
    if free is None or total is None or share is None:
        return unknown("free and total device memory at start")
    wanted = total * share
    fact = Fact(name="free at start", value=f"{free:g} GiB", source="log", compared_to=f"{wanted:.2f} GiB wanted")
    return Outcome(holds=total - free <= TAKEN_SHARE * total and free < wanted * ROUNDED, facts=(fact,))


def model_is_small_for_its_shards(view: View) -> Outcome:
    """So few parameters per shard that collectives and launches cost more than the work they share."""
    degree, size = view.setting("tensor_parallel_size"), parameters_b(view)
    if degree is None or degree < 1 or size is None:
        return unknown("flag.tensor_parallel_size", "model size")
    fact = Fact(
        name="parameters per shard",
        value=f"{size / degree:.1f} billion",
        source="ledger",
        compared_to=f"{SMALL_SHARD_B:g} billion",
    )
    return Outcome(holds=degree >= 2 and size / degree < SMALL_SHARD_B, facts=(fact,))


def weights_exceed_the_cards(view: View) -> Outcome:
    """What one rank holds is more than one card: by the model's shape, else by the size in its name."""
    by_shape = memory.weights_leave_no_room(view)
    if by_shape.holds is not None:
        return by_shape
    size, each = parameters_b(view), view.size("hardware.memory_gib")
    if size is None or not each:
        return unknown("model size", "hardware.memory_gib")
    if not view.knows_shards:
        return unknown(memory.SHARDS)
    if memory.has_pool(view):
        return FALSE
    named = f"{view.fact('model.name') or ''} {view.flag('quantization') or ''} {view.fact('model.quantization') or ''}"
    width = next((b for word, b in BYTES_PER_PARAMETER.items() if word in named.lower()), HALF_PRECISION)
    shards = 1.0
    for name in ("tensor_parallel_size", "pipeline_parallel_size"):
        shards *= max(1.0, view.setting(name) or 1.0)
    need = size * 1e9 * width / shards / 2**30
    fact = Fact(name="weights per card", value=f"{need:.1f} GiB", source="ledger", compared_to=f"{each:g} GiB")
    return Outcome(holds=need > each, facts=(fact,))


def quantisation_needs_newer_gpu(view: View) -> Outcome:
    """This release has no kernel for the checkpoint's quantisation on this card, not even one that widens it."""
    method = quantisations.mentioned(str(view.flag("quantization") or view.fact("model.quantization") or ""))
    card = accelerators.find(accelerators.split_count(str(view.fact("hardware.accelerator") or ""))[1])
    stated = view.size("hardware.compute_capability")
    has = stated if stated is not None else card.capability if card else None
    if method is None or has is None:
        return unknown("hardware.compute_capability", "flag.quantization")
    engine, version = str(view.fact("engine") or "vllm"), str(view.fact("version") or "")
    needs = quantisations.minimum(method.name, engine, version)
    found = quantisations.support(method.name, has, engine, version)
    if needs is None or found.runs == "unknown":
        return unknown("engine.version", "flag.quantization")
    wanted = f"{needs:g} for {method.name}" if has < needs or found.runs != "no" else found.why
    fact = Fact(name="compute capability", value=f"{has:g}", source="ledger", compared_to=wanted)
    return Outcome(holds=found.runs == "no", facts=(fact,))


def end_token_ids_differ(view: View) -> Outcome:
    """The end-of-sequence ids of config, generation_config and tokenizer_config do not agree."""
    found = {
        path: _ids(value)
        for path in (
            "model.eos_token_id",
            "model.generation_config.eos_token_id",
            "model.tokenizer_config.eos_token_id",
        )
        if (value := view.fact(path)) is not None
    }
    if len(found) < 2:
        return unknown("eos_token_id of config.json and generation_config.json")
    facts = tuple(Fact(name=path, value=str(sorted(ids)), source="facts") for path, ids in found.items())
    return Outcome(holds=len(set(found.values())) > 1, facts=facts)


def parameters_b(view: View) -> float | None:
    """Billions of parameters as the model's name says ("Llama-3.1-70B" → 70, "Mixtral-8x7B" → 56), or None."""
    name = str(view.fact("model.name") or view.flag("model") or "")
    match = re.search(r"(?:(\d+)x)?(\d+(?:\.\d+)?)\s?([bBmM])(?![a-zA-Z])", name)
    if not match:
        return None
    experts, size, unit = match.groups()
    return (int(experts) if experts else 1) * float(size) * (1.0 if unit in "bB" else 0.001)


def memory_at_start(view: View) -> tuple[float | None, float | None]:
    """Free and total device memory in GiB before the engine took its share, as the engine says when it gives up."""
    for name, events in view.events.items():
        for event in events if name.startswith(FREE_AT_START) else ():
            free, total = event.fields.get("free"), event.fields.get("total")
            if isinstance(free, float) and isinstance(total, float) and total > 0:
                return free, total
    return None, None


def _usual_fraction(view: View) -> float | None:
    """vLLM's default of gpu_memory_utilization in this release: only vLLM prints what was free at start."""
    found = flags.default("gpu_memory_utilization", "vllm", str(view.fact("version") or ""))
    return found if isinstance(found, float) else None


def _ids(value: object) -> frozenset[str]:
    return frozenset(str(one) for one in value) if isinstance(value, list | tuple) else frozenset({str(value)})
