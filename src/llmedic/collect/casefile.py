"""The case file: evidence typed by hand or taken from a ticket (format: docs/reference/case-file.md).

A case file holds several kinds of evidence. `capture` takes it apart, so that its log text is read by the log source
and its command line by the flags source, exactly as if they had been given by themselves; `read` reads the rest.
Prose (`title`, `report`) and the answer (`expect`, `source`, `confidence`) are never looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from llmedic import errors
from llmedic.collect import redact
from llmedic.knowledge import symptoms as symptom_words
from llmedic.knowledge import vocabulary
from llmedic.model.deployment import Deployment, HardwareFacts, ModelFacts
from llmedic.model.evidence import BenchRow, Evidence, KubernetesFact, Symptoms
from llmedic.model.numbers import possible
from llmedic.model.observation import Change, Observation, Quantiles, Series, Value
from llmedic.model.raw import Raw
from llmedic.wire import yamltext

SOURCE = "case"
MAX_BYTES = 4 << 20
MAX_NODES = 50_000
IGNORED = frozenset({"id", "title", "report", "expect", "source", "confidence"})
"""Prose and answers: allowed in the file, never read."""
KEYS = frozenset(
    {"engine", "hardware", "model", "launch", "observations", "log", "gpu", "kubernetes", "bench", "symptoms"}
)
_PARTS = {"engine": ("name", "version"), "model": ("name", "config"), "launch": ("args", "env")}
_HELP = "see docs/reference/case-file.md"
ENGINES = ("sglang", "llama.cpp", "ollama", "tgi", "vllm")
"""Words to look for in a typed engine name; vLLM last, because others describe themselves by it."""


def capture(name: str, body: bytes) -> tuple[Raw, ...]:
    """The case file's parts, each as the raw input of the source that can read it.

    Raises:
        InputError: not YAML, unknown keys, unknown observations or symptoms, values of the wrong shape.
    """
    case = _load(name, body)
    _evidence(name, case)  # whatever is wrong with it is said now, not when it is judged
    engine = engine_name(_word(_part(name, case, "engine").get("name"), name, "engine.name"))
    raws = [Raw(source=SOURCE, kind="case", target=name, body=body)]
    launch = _part(name, case, "launch")
    if args := launch.get("args"):
        if not isinstance(args, list):
            raise errors.InputError(f"{name}: launch.args is a list of words", hint="args: [--max-num-seqs, '4']")
        words = json.dumps([_argument(word) for word in args]).encode()
        raws.append(
            Raw(source="flags", kind="args", target=name, body=words, meta={"engine": engine, "origin": "case"})
        )
    raws += [
        Raw(source="logs", kind="lines", target=key, body=text.encode("utf-8", "replace"), meta={"engine": engine})
        for key in ("log", "gpu")
        if (text := _word(case.get(key), name, key))
    ]
    return tuple(raws)


def read(raw: Raw) -> Evidence:
    """What a case file says beside its log and its command line."""
    return _evidence(raw.target, _load(raw.target, raw.body))


def engine_name(typed: object) -> str:
    """The engine that a typed name means ("llama.cpp server" → "llama.cpp"); "" for none we know."""
    lowered = str(typed or "").lower()
    if "text-generation-inference" in lowered:
        return "tgi"
    return next((engine for engine in ENGINES if engine in lowered or engine.replace(".", "") in lowered), "")


def _load(name: str, body: bytes) -> Mapping[str, object]:
    if len(body) > MAX_BYTES:
        raise errors.InputError(f"{name}: larger than {MAX_BYTES >> 20} MiB", hint="give long logs with --log FILE")
    try:
        case = yamltext.load(body)
    except yamltext.NotReadableError as error:
        raise errors.InputError(f"{name}: not a YAML case file: {error}", hint=_HELP) from error
    if not isinstance(case, dict):
        raise errors.InputError(f"{name}: a case file is a mapping", hint=f"its keys are {', '.join(sorted(KEYS))}")
    if unknown := sorted(str(key) for key in case if key not in KEYS | IGNORED):
        raise errors.InputError(f"{name}: unknown keys: {', '.join(unknown)}", hint=f"known: {', '.join(sorted(KEYS))}")
    return cast("Mapping[str, object]", case)


def _evidence(name: str, case: Mapping[str, object]) -> Evidence:
    engine, model, launch = (_part(name, case, key) for key in _PARTS)
    hardware = _mapping(case.get("hardware"), name, "hardware")
    environment = _mapping(launch.get("env"), name, "launch.env")
    deployment = Deployment(
        engine=engine_name(_word(engine.get("name"), name, "engine.name")),
        version=_word(engine.get("version"), name, "engine.version"),
        environment={key: _word(value, name, f"launch.env.{key}") for key, value in environment.items()},
        model=ModelFacts(
            name=redact.text(_word(model.get("name"), name, "model.name")),
            config=_mapping(model.get("config"), name, "model.config"),
        ),
        hardware=_hardware(name, hardware),
    )
    observations = _mapping(case.get("observations"), name, "observations")
    return Evidence(
        observations=tuple(_observation(name, key, value) for key, value in observations.items()),
        bench=tuple(_bench(name, row) for row in _list(case.get("bench"), name, "bench")),
        kubernetes=tuple(_kubernetes(_list(case.get("kubernetes"), name, "kubernetes"), name)),
        symptoms=_symptoms(name, _mapping(case.get("symptoms"), name, "symptoms")),
        deployment=deployment,
    )


def _part(name: str, case: Mapping[str, object], key: str) -> Mapping[str, object]:
    """A part that has keys of its own, none of them misspelt."""
    part, known = _mapping(case.get(key), name, key), _PARTS[key]
    if unknown := sorted(set(part) - set(known)):
        raise errors.InputError(
            f"{name}: unknown keys in {key}: {', '.join(unknown)}", hint=f"known: {', '.join(known)}"
        )
    return part


def _word(raw: object, name: str, key: str) -> str:
    if isinstance(raw, dict | list | set):
        raise errors.InputError(f"{name}: {key} is text", hint=_HELP)
    return "" if raw is None else str(raw)


def _argument(word: object) -> str:
    """A word of the command line; a value written as YAML is the JSON that the engine takes."""
    return json.dumps(word, default=str) if isinstance(word, dict | list) else str(word)


def _hardware(name: str, keys: Mapping[str, object]) -> HardwareFacts:
    known = HardwareFacts.__dataclass_fields__
    if unknown := sorted(set(keys) - set(known)):
        raise errors.InputError(
            f"{name}: unknown keys in hardware: {', '.join(unknown)}", hint=f"known: {', '.join(known)}"
        )
    texts = {key: _word(keys.get(key), name, f"hardware.{key}") for key in ("accelerator", "interconnect")}
    return HardwareFacts(
        accelerator=texts["accelerator"],
        interconnect=texts["interconnect"],
        count=_whole(keys.get("count")),
        host_cpus=_whole(keys.get("host_cpus")),
        memory_gib=_number(keys.get("memory_gib")),
        host_memory_gib=_number(keys.get("host_memory_gib")),
        compute_capability=_number(keys.get("compute_capability")),
    )


def _observation(name: str, key: str, raw: object) -> Observation:
    word = vocabulary.word(str(key))
    if word is None:
        raise errors.InputError(f"{name}: unknown observation {key!r}", hint="llmedic explain lists the names")
    return Observation(name=word.name, value=_value(name, key, raw), unit=word.unit, source=SOURCE)


def _bench(name: str, row: object) -> BenchRow:
    keys = dict(_mapping(row, name, "bench row"))
    label = _word(keys.pop("label", ""), name, "the label of a bench row")
    for key in keys:
        if vocabulary.word(str(key)) is None:
            raise errors.InputError(
                f"{name}: unknown observation {key!r} in bench", hint="llmedic explain lists the names"
            )
    return BenchRow(label=label, values={key: _value(name, key, value) for key, value in keys.items()})


def _value(name: str, key: str, raw: object) -> Value:
    if isinstance(raw, dict) and set(raw) == {"before", "after"}:
        before, after = _single(name, key, raw["before"]), _single(name, key, raw["after"])
        return Change(before=before, after=after)
    if isinstance(raw, list):
        points = [pair for pair in raw if isinstance(pair, list) and len(pair) == 2]
        if not raw or len(points) != len(raw):
            raise _shape(name, key)
        return Series(points=tuple((_float(name, key, time), _float(name, key, value)) for time, value in points))
    return _single(name, key, raw)


def _single(name: str, key: str, raw: object) -> float | Quantiles:
    if not isinstance(raw, dict):
        return _float(name, key, raw)
    if not raw or not set(raw) <= {"p50", "p90", "p95", "p99", "mean", "min", "max", "count"}:
        raise _shape(name, key)
    return Quantiles(**{str(stat): _float(name, key, value) for stat, value in raw.items()})


def _float(name: str, key: str, raw: object) -> float:
    number = _number(raw)
    if number is None:
        raise _shape(name, key)
    return number


def _shape(name: str, key: str) -> errors.InputError:
    return errors.InputError(
        f"{name}: {key} has no value that can be read",
        hint="a number, {before:, after:}, {p50:, p90:, p99:, mean:, min:, max:} or a list of [seconds, value]",
    )


def _symptoms(name: str, keys: Mapping[str, object]) -> Symptoms:
    if unknown := sorted(set(keys) - {"seen", "when", "not_when"}):
        raise errors.InputError(
            f"{name}: unknown keys in symptoms: {', '.join(unknown)}", hint="known: seen, when, not_when"
        )
    ticked = {kind: [str(one) for one in _list(keys.get(kind), name, kind)] for kind in ("seen", "when", "not_when")}
    for kind, ids in ticked.items():
        for one in ids:
            _known_symptom(name, kind, one)
    return Symptoms(
        seen=frozenset(ticked["seen"]), when=frozenset(ticked["when"]), not_when=frozenset(ticked["not_when"])
    )


def _known_symptom(name: str, kind: str, one: str) -> None:
    entry = symptom_words.entry(one)
    if entry is None or (entry.kind == "symptom") != (kind == "seen"):
        raise errors.InputError(f"{name}: unknown id {one!r} in symptoms.{kind}", hint="llmedic explain lists the ids")


@dataclass(slots=True)
class _Budget:
    nodes: int = MAX_NODES


def _kubernetes(objects: Sequence[object], name: str) -> Iterator[KubernetesFact]:
    budget = _Budget()
    for item in objects:
        kind = str(item.get("kind", "")) if isinstance(item, dict) else ""
        yield from _leaves(item, kind, "", budget, name)


def _leaves(item: object, kind: str, path: str, budget: _Budget, name: str) -> Iterator[KubernetesFact]:
    budget.nodes -= 1
    if budget.nodes < 0:
        raise errors.InputError(f"{name}: too many Kubernetes fields", hint="keep the objects of the engine only")
    if isinstance(item, dict):
        for key, value in item.items():
            yield from _leaves(value, kind, f"{path}.{key}".lstrip("."), budget, name)
    elif isinstance(item, list):
        for value in item:
            yield from _leaves(value, kind, path, budget, name)
    elif item is None or isinstance(item, str | bool | int | float):
        yield KubernetesFact(kind=kind, path=path, value=_number(item) if type(item) is int else item)


def _mapping(raw: object, name: str, key: str) -> Mapping[str, object]:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise errors.InputError(f"{name}: {key} is a mapping", hint=_HELP)
    return {str(one): value for one, value in raw.items()}


def _list(raw: object, name: str, key: str) -> Sequence[object]:
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise errors.InputError(f"{name}: {key} is a list", hint=_HELP)
    return raw


def _number(raw: object) -> float | None:
    """A number that can be one of a server; None for anything else."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    return float(raw) if possible(raw) else None


def _whole(raw: object) -> int | None:
    number = _number(raw)
    return None if number is None else int(number)
