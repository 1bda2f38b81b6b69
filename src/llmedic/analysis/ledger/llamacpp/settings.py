"""What llama.cpp makes of its flags: context, slots, cache types, offloaded layers.

Builds are the numbers of its releases ("b7079"). What changed, and where it was read:
    5554   layers with a window keep the window and one physical batch, not the context   llama-kv-cache-iswa.cpp
    5913   every slot has cells of its own unless --kv-unified is given                    llama-context.cpp
    7079   four slots over one pool when --parallel is not given; cells padded to 256      tools/server/server.cpp
    7710   --n-gpu-layers and --ctx-size left out are fitted to the card (--fit)           common/fit.cpp
    9518   only as many rows of logits as slots; the attention mask is fp16                server-context.cpp
A number is the first release in which the change was seen; it may be some builds older.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from llmedic.analysis.ledger.flagview import Flags
from llmedic.errors import InputError
from llmedic.knowledge import releases
from llmedic.model.deployment import Deployment
from llmedic.model.geometry import Geometry

WINDOWS, STREAMS, AUTO_SLOTS, FIT, FEW_OUTPUTS = 5554, 5913, 7079, 7710, 9518
_CURRENT = 10**9
_DEFAULT_CONTEXT = 4096
_OLLAMA_CONTEXTS = ((47, 262144), (23, 32768), (0, 4096))
"""Ollama: memory of all cards in GiB from which on -> context. server/routes.go, 2026-08."""

BLOCK_BYTES = {
    "f32": (1, 4), "f16": (1, 2), "bf16": (1, 2),
    "q8_0": (32, 34), "q4_0": (32, 18), "q4_1": (32, 20), "iq4_nl": (32, 18), "q5_0": (32, 22), "q5_1": (32, 24),
}  # fmt: skip
"""Cache type -> numbers in a block, bytes of a block. ggml/src/ggml-common.h, common/arg.cpp kv_cache_types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the arithmetic needs.

    build            release number, a large one for an unknown (current) release
    context_tokens   --ctx-size over all slots; context_given: typed, so --fit leaves it alone
    slot_tokens      what one slot may use; cells_tokens: cells of one stream
    streams          separate caches: 1 when the slots share one
    flash            True, False, None when the release decides and nobody said
    gpu_layers       layers on the cards, the output layer counted; layers_given as context_given
    host_experts     leading layers whose experts stay in host memory (--n-cpu-moe)
    overrides        --override-tensor entries that name host memory, as regular expressions
    split            share of each card by --tensor-split, or equal shares
    """

    build: int
    context_tokens: int
    context_given: bool
    slots: int
    slot_tokens: int
    cells_tokens: int
    streams: int
    batch: int
    ubatch: int
    key_type: str
    value_type: str
    flash: bool | None
    cache_on_card: bool
    whole_window: bool
    gpu_layers: int
    layers_given: bool
    host_experts: int
    overrides: tuple[str, ...]
    split: tuple[float, ...]
    split_mode: Literal["layer", "row", "none"]
    fit: bool
    draft_tokens: int
    notes: tuple[str, ...]


def resolve(geometry: Geometry, deployment: Deployment, card_gib: float | None) -> Settings:
    """The settings with the defaults of the release. Raises InputError for a value that llama.cpp would refuse."""
    flags = Flags(deployment)
    numbers = releases.numbers(deployment.version)
    ollama = deployment.engine == "ollama"
    build = numbers[0] if numbers and not ollama else _CURRENT
    notes: list[str] = []
    slots, unified = _slots(flags, build, ollama=ollama)
    context = _context(flags, geometry, build, slots, card_gib, deployment, notes)
    flash = _flash(flags, build)
    padding = 256 if build >= AUTO_SLOTS or flash is not False else 32
    cells = _padded(context, padding) if unified else _padded(_share(context, slots, build), padding)
    streams = 1 if unified else slots
    batch = min(flags.count("batch_size", default=512 if ollama else 2048, low=1), cells * streams)
    layers = len(geometry.layers) + 1
    wanted = flags.word("n_gpu_layers", default="auto" if build >= FIT else "0")
    given = wanted not in ("auto", "all", "-1", "-2") and flags.given("n_gpu_layers")
    return Settings(
        build=build,
        context_tokens=cells * streams,
        context_given=flags.count("ctx_size") > 0 or build < FIT,
        slots=slots,
        slot_tokens=cells * streams // slots if build < STREAMS else cells,
        cells_tokens=cells,
        streams=streams,
        batch=batch,
        ubatch=min(flags.count("ubatch_size", default=512, low=1), batch),
        key_type=_cache_type(flags, "cache_type_k"),
        value_type=_cache_type(flags, "cache_type_v"),
        flash=flash,
        cache_on_card=flags.switch("kv_offload", default=True) and not flags.switch("no_kv_offload"),
        whole_window=flags.switch("swa_full") or build < WINDOWS,
        gpu_layers=min(flags.count("n_gpu_layers", low=-2), layers) if given else layers if build >= FIT else 0,
        layers_given=given,
        host_experts=layers if flags.switch("cpu_moe") else flags.count("n_cpu_moe"),
        overrides=_overrides(flags),
        split=_split(flags, deployment),
        split_mode=_split_mode(flags),
        fit=build >= FIT and flags.switch("fit", default=True) and not ollama,
        draft_tokens=flags.count("num_speculative_tokens"),
        notes=tuple(notes),
    )


def cache_bytes(numbers: int, kind: str) -> float:
    """Bytes of a row of cached numbers (ggml_row_size)."""
    block, size = BLOCK_BYTES[kind]
    return numbers / block * size


def with_context(settings: Settings, tokens: int) -> Settings:
    """The same server with another --ctx-size, cut to whole paddings of every slot."""
    cells = max(256, tokens // settings.streams // 256 * 256)
    return replace(
        settings,
        cells_tokens=cells,
        context_tokens=cells * settings.streams,
        slot_tokens=cells if settings.build >= STREAMS else cells // settings.slots,
    )


def _slots(flags: Flags, build: int, *, ollama: bool) -> tuple[int, bool]:
    """Slots, and whether they share one pool of cells."""
    wanted = flags.count("max_num_seqs", default=1 if ollama or build < AUTO_SLOTS else -1, low=-1)
    if wanted < 0:
        return 4, True
    slots = max(1, wanted)
    return slots, build < STREAMS or flags.switch("kv_unified") or slots == 1


def _context(
    flags: Flags,
    geometry: Geometry,
    build: int,
    slots: int,
    card_gib: float | None,
    deployment: Deployment,
    notes: list[str],
) -> int:
    """Tokens over all slots. Ollama's num_ctx is of one slot."""
    asked = flags.count("ctx_size")
    if deployment.engine == "ollama":
        cards = deployment.hardware.count or 1
        room = (card_gib or 0.0) * cards
        usual = next(tokens for least, tokens in _OLLAMA_CONTEXTS if room >= least)
        one = asked or min(usual, geometry.positions or usual)
        if not asked:
            notes.append(f"num_ctx is not given: Ollama takes {one} tokens on a machine with this much card memory")
        return one * slots
    if asked:
        return asked
    if flags.given("ctx_size") or build >= FIT:
        if not geometry.positions:
            notes.append(f"the model's context length is unknown: {_DEFAULT_CONTEXT} tokens are assumed")
        return geometry.positions or _DEFAULT_CONTEXT
    return _DEFAULT_CONTEXT


def _share(context: int, slots: int, build: int) -> int:
    return context // slots if build >= AUTO_SLOTS else -(-context // slots)


def _padded(tokens: int, padding: int) -> int:
    return max(padding, -(-tokens // padding) * padding)


def _flash(flags: Flags, build: int) -> bool | None:
    word = flags.word("flash_attn", default="auto" if build >= AUTO_SLOTS else "")
    if not word:
        return None if build >= STREAMS else False
    return word not in ("off", "false", "0", "no", "disabled")


def _cache_type(flags: Flags, name: str) -> str:
    kind = flags.word(name, default=flags.word("kv_cache_dtype", default="f16"))
    if kind not in BLOCK_BYTES:
        raise InputError(f"{name}: llama.cpp has no cache type {kind!r}", hint="one of " + ", ".join(BLOCK_BYTES))
    return kind


def _split(flags: Flags, deployment: Deployment) -> tuple[float, ...]:
    text = flags.word("tensor_split")
    if text:
        try:
            shares = tuple(float(part) for part in text.replace("/", ",").split(",") if part)
        except ValueError:
            raise InputError(f"tensor_split: {text!r} is no list of numbers", hint="for example 3,1") from None
        if any(share < 0 for share in shares):
            raise InputError(f"tensor_split: {text!r} has a negative share")
        if sum(shares) > 0:
            return shares
    return (1.0,) * max(1, deployment.hardware.count or 1)


def _split_mode(flags: Flags) -> Literal["layer", "row", "none"]:
    word = flags.word("split_mode", default="layer")
    return "none" if word == "none" else "row" if word in ("row", "tensor") else "layer"


def _overrides(flags: Flags) -> tuple[str, ...]:
    entries = [part.rpartition("=") for part in str(flags.value("override_tensor") or "").split(",") if "=" in part]
    return tuple(pattern for pattern, _, buffer in entries if buffer.strip().upper().startswith("CPU"))
