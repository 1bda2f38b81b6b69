"""Remembers how a deployment is when it is well, so that "slow" can be told from "always like this".

save     evidence of a healthy window -> an `llmedic.baseline/1` file
capture  name or file -> raw
read     raw, name or file -> observations of period "baseline", and gaps where the deployment is another one
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Final, Literal

import msgspec

from llmedic import __version__
from llmedic.collect import files
from llmedic.collect.files import write_whole
from llmedic.errors import AnswerError, InputError, UsageError
from llmedic.knowledge import vocabulary
from llmedic.model.deployment import Deployment, FlagValue
from llmedic.model.evidence import Evidence, Gap
from llmedic.model.observation import Change, Observation, Quantiles, Series
from llmedic.model.raw import Raw
from llmedic.wire import jsontext

SCHEMA: Final = "llmedic.baseline/1"
SOURCE = "baseline"
MAX_BYTES = 4 * 2**20

# fmt: off
NAMES = (
    "ttft_s", "itl_s", "tpot_s", "e2e_s", "queue_s", "prefill_s", "decode_s",
    "request_rate_per_s", "completed_requests_per_s", "prompt_tokens_mean", "output_tokens_mean",
    "prefill_tokens_per_s", "output_tokens_per_s", "prefix_cache_hit_ratio", "kv_cache_usage_ratio",
    "preemptions_per_min", "kv_evictions_per_min", "requests_running", "requests_waiting",
)
"""What is kept: words of the vocabulary, of the service as a whole."""

_FLAGS = (
    "dtype", "quantization", "kv_cache_dtype", "max_model_len", "ctx_size", "max_num_seqs", "max_num_batched_tokens",
    "chunked_prefill_size", "gpu_memory_utilization", "mem_fraction_static", "tensor_parallel_size",
    "pipeline_parallel_size", "data_parallel_size", "block_size", "num_gpu_blocks_override", "enable_prefix_caching",
    "enable_chunked_prefill", "enforce_eager", "speculative_config", "n_gpu_layers", "attention_backend",
)
"""The flags that change how fast a deployment is: they make its fingerprint."""
# fmt: on

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_STATISTICS = ("p50", "p90", "p95", "p99", "mean", "min", "max", "count", "floor", "cap")
_WORK = ("request_rate_per_s", "completed_requests_per_s", "prefill_tokens_per_s", "output_tokens_per_s")
_FOLDER = "baselines"
_TAKEN = "give another name, or remove the old one first"
_SAVE_HINT = "save one while all is well: llmedic diagnose TARGET --save-baseline NAME"


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Spread(_Record, frozen=True):
    """A distribution, as `Quantiles`."""

    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    count: float | None = None
    floor: float | None = None
    cap: float | None = None


class Kept(_Record, frozen=True):
    """One observation: a number or a distribution under a word of the vocabulary, in that word's unit."""

    name: str
    unit: str
    value: float | Spread


class Fingerprint(_Record, frozen=True):
    """What was deployed when the baseline was taken; empty where it was not known."""

    engine: str = ""
    version: str = ""
    model: str = ""
    accelerator: str = ""
    accelerator_count: int | None = None
    flags: dict[str, str | float | bool | None] = {}


class Baseline(_Record, frozen=True):
    """A stored baseline. created_at is UTC; window_s is the length of the window it was taken from."""

    schema: Literal["llmedic.baseline/1"]
    kind: Literal["production", "bench"]
    created_at: str
    llmedic_version: str
    window_s: float | None
    fingerprint: Fingerprint
    observations: list[Kept]


class _AnySchema(msgspec.Struct):
    schema: str


def path_of(name_or_path: str | Path) -> Path:
    """Where a baseline lies: a path when there is a slash or .json in it, else a name in the user's store.

    Raises UsageError for a name that could not be a file's.
    """
    given = str(name_or_path)
    if isinstance(name_or_path, Path) or os.sep in given or given.endswith(".json"):
        return Path(given)
    if not _NAME.fullmatch(given):
        hint = "use letters, digits, dot, dash and underscore, or give a path"
        raise UsageError(f"{given!r} is no name for a baseline", hint=hint)
    return _store() / f"{given}.json"


def check_free(name_or_path: str | Path) -> Path:
    """Where a new baseline will be written, its folder in the store made.

    Raises UsageError when there is one, InputError when none can be written.
    """
    path = path_of(name_or_path)
    _make_store(path)
    files.check_free(path, hint=_TAKEN)
    return path


def save(evidence: Evidence, name_or_path: str | Path, *, now: float, overwrite: bool = False) -> Path:
    """Store the window's values of `NAMES`. `now` is in Unix seconds; returns where it was written.

    Raises UsageError when it exists and `overwrite` is False, AnswerError when the window shows no traffic.
    """
    path = path_of(name_or_path)
    observations = list(_kept(evidence.observations))
    if not any(_is_work(kept) for kept in observations):
        raise AnswerError(
            "no request finished in the window: nothing to store as a baseline", hint="use a longer --window"
        )
    windows = [seen.window_s for seen in evidence.observations if seen.period == "window" and seen.window_s]
    baseline = Baseline(
        schema=SCHEMA,
        kind="production",
        created_at=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        llmedic_version=__version__,
        window_s=max(windows, default=None),
        fingerprint=_fingerprint(evidence.deployment),
        observations=observations,
    )
    _make_store(path)
    content = msgspec.json.format(msgspec.json.encode(baseline), indent=2) + b"\n"
    write_whole(path, content, overwrite=overwrite, hint=_TAKEN)
    return path


def capture(name_or_path: str | Path) -> tuple[Raw, ...]:
    """The file as a raw. Raises InputError when it is not there, UsageError for an impossible name."""
    path = path_of(name_or_path)
    try:
        with path.open("rb") as file:
            body = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise InputError(f"no baseline {str(name_or_path)!r}: {path} is not there", hint=_known_hint()) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}", hint=_SAVE_HINT) from error
    if len(body) > MAX_BYTES:
        raise InputError(f"{path}: is too large for a baseline", hint=_SAVE_HINT)
    return (Raw(source=SOURCE, kind="file", target=path.name, body=body),)


def read(source: str | Path | Sequence[Raw], deployment: Deployment | None = None) -> Evidence:
    """Observations of period "baseline" from a name, a file, or raws.

    With the deployment that is being judged, a gap for everything in which the baseline's differs: its values are
    given all the same. Raises InputError for a file that is no baseline.
    """
    raws = capture(source) if isinstance(source, str | Path) else source
    observations: list[Observation] = []
    gaps: list[Gap] = []
    for raw in raws:
        if raw.source == SOURCE:
            baseline = decode(raw.body, raw.target)
            observations += _observations(baseline)
            if deployment is not None:
                gaps += _differences(baseline.fingerprint, _fingerprint(deployment), raw.target)
    return Evidence(observations=tuple(observations), gaps=tuple(gaps))


def decode(content: bytes, name: str) -> Baseline:
    """Read a baseline strictly. Raises InputError that begins with `name`."""
    try:
        schema = msgspec.json.decode(content, type=_AnySchema).schema
        if schema != SCHEMA:
            raise InputError(f"{name}: is {schema[:60]!r}, and this LLMedic reads {SCHEMA}", hint=_SAVE_HINT)
        baseline = msgspec.json.decode(content, type=Baseline)
    except jsontext.NOT_READABLE as error:
        raise InputError(f"{name}: is not a baseline: {error}", hint=_SAVE_HINT) from error
    for kept in baseline.observations:
        known = vocabulary.word(kept.name)
        if known is None or known.unit != kept.unit:
            raise InputError(f"{name}: {kept.name[:60]!r} in {kept.unit[:20]!r} is not in the vocabulary")
    return baseline


def _make_store(path: Path) -> None:
    """The user's store, where the path lies in it."""
    if path.parent.name != _FOLDER or path.parent != _store():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "set XDG_DATA_HOME to a folder you may write to, or give a path"
        raise InputError(f"{path.parent}: cannot be made: {error.strerror or error}", hint=hint) from error


def _is_work(kept: Kept) -> bool:
    """Whether this shows that requests were served: how full an idle engine is would be no measure for anything."""
    if kept.name in _WORK:
        return not isinstance(kept.value, Spread) and kept.value > 0
    return kept.name.endswith("_s") and isinstance(kept.value, Spread)


def _store() -> Path:
    home = os.environ.get("XDG_DATA_HOME", "")
    if not home:
        try:
            home = str(Path.home() / ".local" / "share")
        except RuntimeError as error:
            raise UsageError(
                "no home directory to keep baselines in", hint="set XDG_DATA_HOME, or give a path"
            ) from error
    return Path(home) / "llmedic" / _FOLDER


def _known_hint() -> str:
    stored = sorted(path.stem for path in _store().glob("*.json"))[:5]
    return f"stored are: {', '.join(stored)}" if stored else _SAVE_HINT


def _kept(observations: Iterable[Observation]) -> Iterator[Kept]:
    """The first observation of each name; of a single replica where there is none of the service."""
    window = [seen for seen in observations if seen.period == "window"]
    replicas = {seen.instance for seen in window if seen.instance}
    for name in NAMES:
        named = [seen for seen in window if seen.name == name]
        service = [seen for seen in named if not seen.instance] or (named if len(replicas) == 1 else [])
        value = _value(service[0]) if service else None
        if service and value is not None:
            yield Kept(name=name, unit=vocabulary.unit(name), value=value)


def _value(seen: Observation) -> float | Spread | None:
    match seen.value:
        case Quantiles() as quantiles:
            numbers = {name: getattr(quantiles, name) for name in _STATISTICS}
            finite = {name: number for name, number in numbers.items() if number is not None and math.isfinite(number)}
            return Spread(**finite) if finite else None
        case Series(points=points):
            levels = [level for _, level in points if math.isfinite(level)]
            return Spread(mean=fmean(levels), min=min(levels), max=max(levels)) if levels else None
        case Change():
            return None
        case number:
            return number if math.isfinite(number) else None


def _fingerprint(deployment: Deployment) -> Fingerprint:
    flags: dict[str, FlagValue] = {}
    for flag in deployment.flags:
        if flag.name in _FLAGS:
            flags.setdefault(flag.name, flag.value)
    return Fingerprint(
        engine=deployment.engine,
        version=deployment.version,
        model=deployment.model.name,
        accelerator=deployment.hardware.accelerator,
        accelerator_count=deployment.hardware.count,
        flags=flags,
    )


def _observations(baseline: Baseline) -> Iterator[Observation]:
    at = _unix(baseline.created_at)
    for kept in baseline.observations:
        value = kept.value
        yield Observation(
            name=kept.name,
            value=Quantiles(**msgspec.structs.asdict(value)) if isinstance(value, Spread) else value,
            unit=kept.unit,
            source=SOURCE,
            period="baseline",
            window_s=baseline.window_s,
            at=at,
        )


def _unix(created_at: str) -> float | None:
    try:
        return datetime.fromisoformat(created_at).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _differences(then: Fingerprint, now: Fingerprint, name: str) -> Iterator[Gap]:
    """What both sides know and do not agree on."""
    pairs: list[tuple[str, object, object]] = [
        (label.replace("_", " "), getattr(then, label), getattr(now, label))
        for label in ("engine", "version", "model", "accelerator", "accelerator_count")
    ]
    pairs += [(flag, then.flags[flag], now.flags[flag]) for flag in _FLAGS if flag in then.flags and flag in now.flags]
    for label, before, after in pairs:
        known = before not in ("", None) and after not in ("", None)
        if known and before != after and str(before) != str(after):
            yield Gap(
                what=f"baseline {name}",
                why=f"it was taken with another {label}: {before}, now {after}",
                how="save a new one while all is well: --save-baseline NAME",
            )
