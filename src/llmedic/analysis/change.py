"""The one change: its value computed from the evidence, never a number that nobody can justify."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil, floor
from typing import TYPE_CHECKING

import msgspec

from llmedic.analysis.predicates import memory
from llmedic.analysis.view import View
from llmedic.knowledge import flags
from llmedic.knowledge.schema import Advice
from llmedic.knowledge.texts import Lang
from llmedic.model.deployment import FlagValue
from llmedic.model.verdict import Change

if TYPE_CHECKING:
    from llmedic.model.ledger import Problem

DEFAULT_SEQS = 256.0
"""What vLLM admits when nobody says otherwise."""
ROOM_FACTOR = 2.0
"""A cap is raised by a factor of two at a time: one change, then measure."""


def of(advice: Advice, view: View, lang: Lang, problem: Problem | None = None) -> Change:
    """The advice with its present value and, where one can be computed, its new one, as this engine spells it.

    problem  what ended the start by the ledger: its change is the one that would have started, and no other is guessed
    """
    if problem is not None and advice.variable in flags.specs():
        if problem.change:
            return _solved(problem.change, advice, view, lang)
        if _decided(view):
            advice = msgspec.structs.replace(advice, value="")
    now = view.flag(advice.variable)
    new = VALUES[advice.value](view) if advice.value else _switch(advice.variable, now)
    present = _shown(now) if view.knows_flag(advice.variable) else ""
    change = Change(
        variable=advice.variable,
        from_=present,
        to="" if new == _shown(now) else new,
        expected=advice.expected.say(lang),
        verify=advice.verify,
    )
    deployment = view.evidence.deployment
    return _spelled(change, deployment.engine, deployment.version) if deployment.engine else change


def _solved(typed: str, advice: Advice, view: View, lang: Lang) -> Change:
    """The ledger's change as it is typed: the first setting in it, and the whole of it for the command line."""
    first, *rest = typed.split()
    spec, says_yes = flags.by_spelling(view.evidence.deployment.engine or "vllm")[first]
    value = rest[0] if spec.type != "bool" else str(says_yes).lower()
    return Change(
        variable=spec.name,
        from_=_shown(view.flag(spec.name)) if view.knows_flag(spec.name) else "",
        to=value,
        expected=advice.expected.say(lang),
        verify=advice.verify,
        add=typed,
    )


def _decided(view: View) -> bool:
    if view.startup is None:
        return False
    from llmedic.analysis.ledger import witness

    return witness.decides(view.startup)


def _spelled(change: Change, engine: str, version: str) -> Change:
    """The change as it is typed for a release; without values where the release has no such setting."""
    name = change.variable
    if name not in flags.specs():
        return change
    if change.to in ("true", "false"):
        add = flags.typed(name, engine, version, negated=change.to == "false")
        drop = "" if add else flags.typed(name, engine, version, negated=change.to == "true")
        return replace(change, add=add, drop=drop) if add or drop else _absent(change)
    if flags.exists(name, engine, version):
        return replace(change, add=_assigned(flags.spelling(name, engine, version), change.to))
    near = flags.spelling(name, engine, version)
    # Another setting's number is not this one's: its name is all that can be said.
    return replace(change, from_="", to="", add=near) if near else _absent(change)


def _assigned(spelled: str, value: str) -> str:
    return f"{spelled}={value}" if value and spelled.isupper() else f"{spelled} {value}".strip()


def _absent(change: Change) -> Change:
    return replace(change, from_="", to="", exists=False)


def _switch(variable: str, now: FlagValue) -> str:
    """A feature that is off is turned on, and one that is on is turned off."""
    if variable in ("enable_prefix_caching", "enable_chunked_prefill") and now is not True:
        return "true"
    return "false" if variable == "enforce_eager" and now is True else ""


def _shown(value: FlagValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _tokens_per_request(view: View) -> float | None:
    prompt, answer = view.number("prompt_tokens_mean"), view.number("output_tokens_mean")
    return None if prompt is None or answer is None else prompt + answer


def seqs_from_pool(view: View) -> str:
    """Pool / what one request of mean length takes of it: as many as fit without preempting."""
    pool, each = memory.pool_tokens(view), _tokens_per_request(view)
    if each is None or each < 1:
        return ""
    in_blocks = memory.blocks(view, each)
    if in_blocks is not None and in_blocks[0]:
        fits = in_blocks[1] // in_blocks[0]
    elif pool:
        fits = floor(pool / each)
    else:
        return ""
    cap = view.setting("max_num_seqs")
    return str(max(1, fits)) if cap is None or fits < cap else ""


def seqs_raise(view: View) -> str:
    """Twice the cap, but no more than the KV pool holds."""
    cap = view.setting("max_num_seqs") or view.number("requests_running", "max")
    if not cap:
        return ""
    wanted = cap * ROOM_FACTOR
    usage, running = view.number("kv_cache_usage_ratio", "max"), view.number("requests_running", "max")
    if usage and running:
        wanted = min(wanted, 0.9 * running / usage)
    return str(int(wanted)) if wanted > cap else ""


def seqs_halved(view: View) -> str:
    """Half the cap: buffers of the sampler grow with it."""
    cap = view.setting("max_num_seqs")
    return str(int(cap // 2)) if cap and cap >= 2 else ""


def model_len_from_pool(view: View) -> str:
    """The largest multiple of 256 tokens that the pool holds, by the model's layout where it is known."""
    pool = memory.longest_request(view) or view.number("kv_cache_tokens") or view.number("servable_tokens")
    if not pool or pool < 256:
        return ""
    fits, now = floor(pool / 256) * 256, view.setting("max_model_len")
    return str(fits) if now is None or fits < now else ""


def utilization_lower(view: View) -> str:
    """A twentieth of the card less."""
    share = view.setting("gpu_memory_utilization")
    return f"{round(share - 0.05, 2):g}" if share and 0.1 < share <= 1 else ""


def tensor_parallel_raise(view: View) -> str:
    """The fewest shards with which the ledger lets it start; twice the shards where the model is not known."""
    fewest = memory.fewest_shards(view)
    if fewest is not None:
        return str(fewest) if fewest else ""
    degree = view.setting("tensor_parallel_size")
    return str(int(degree * 2)) if degree else ""


def token_budget_raise(view: View) -> str:
    """Twice the budget, or 2,048 tokens where it is less."""
    budget = view.setting("max_num_batched_tokens")
    return str(int(max(2048, budget * 2))) if budget else ""


def token_budget_lower(view: View) -> str:
    """Half the budget, but not below 512 tokens, under which prefill itself becomes the limit."""
    budget = view.setting("max_num_batched_tokens")
    return str(int(max(512, budget // 2))) if budget and budget > 512 else ""


def timeout_from_ttft(view: View) -> str:
    """Twice the P99 time to first token, in whole seconds; nothing when the time-out is that long already."""
    worst, now = view.number("ttft_s", "p99") or view.number("ttft_s", "max"), view.number("gateway_timeout_s")
    return f"{ceil(worst * 2)} s" if worst and (now is None or ceil(worst * 2) > now) else ""


def keepalive_from_idle(view: View) -> str:
    """The proxy's idle time plus five seconds; nothing when the server keeps connections that long already."""
    idle, now = view.number("proxy_idle_s"), view.number("server_keepalive_s")
    return f"{ceil(idle + 5)} s" if idle and (now is None or idle + 5 > now) else ""


def ctx_from_slots(view: View) -> str:
    """What one request needs, times the slots."""
    slots = view.setting("max_num_seqs")
    need, now = view.number("prompt_tokens_max", "max") or view.setting("max_model_len"), view.setting("ctx_size")
    return str(ceil(need * slots)) if slots and need and (now is None or need * slots > now) else ""


def threads_from_quota(view: View) -> str:
    """One thread per whole core of the quota."""
    quota = view.number("cpu_quota_cores")
    return str(max(1, floor(quota))) if quota else ""


def dtype_bfloat16(_: View) -> str:
    """The type with float32's range."""
    return "bfloat16"


def concurrency_from_pool(view: View) -> str:
    """As many connections as the engine admits sequences."""
    cap = view.setting("max_num_seqs") or DEFAULT_SEQS
    highest = view.number("requests_running", "max")
    return str(int(cap)) if highest is None or cap > highest else str(int(highest * ROOM_FACTOR))


VALUES: Mapping[str, Callable[[View], str]] = {
    function.__name__: function
    for function in (
        concurrency_from_pool,
        ctx_from_slots,
        dtype_bfloat16,
        keepalive_from_idle,
        model_len_from_pool,
        seqs_from_pool,
        seqs_halved,
        seqs_raise,
        tensor_parallel_raise,
        threads_from_quota,
        timeout_from_ttft,
        token_budget_lower,
        token_budget_raise,
        utilization_lower,
    )
}
