"""Joins the sources: raw answers go to the source that can read them, and what comes back becomes one evidence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TypeVar

from llmedic.errors import InputError
from llmedic.model.deployment import Deployment, Flag, HardwareFacts, ModelFacts
from llmedic.model.evidence import Evidence, Gap, Symptoms
from llmedic.model.raw import Raw

T = TypeVar("T")

Reader = Callable[[Sequence[Raw]], Evidence]


def _engine(raws: Sequence[Raw]) -> Evidence:
    from llmedic.collect import engine

    return engine.read(raws)


def _prometheus(raws: Sequence[Raw]) -> Evidence:
    from llmedic.collect import prometheus

    return prometheus.read(raws)


def _logs(raws: Sequence[Raw]) -> Evidence:
    from llmedic.collect import logs

    return logs.read(raws)


def _process(raws: Sequence[Raw]) -> Evidence:
    from llmedic.collect import process

    return process.read(raws)


def _case(raws: Sequence[Raw]) -> Evidence:
    from llmedic.collect import casefile

    return merge([casefile.read(raw) for raw in raws])


def _model(raws: Sequence[Raw]) -> Evidence:
    from llmedic.collect import modelfiles

    return modelfiles.read(raws)


def _flags(raws: Sequence[Raw]) -> Evidence:
    from llmedic.collect import flags

    return flags.read(raws)


def _baseline(raws: Sequence[Raw]) -> Evidence:
    from llmedic.collect import baseline

    return baseline.read(raws)


def _folder(raws: Sequence[Raw]) -> Evidence:
    return Evidence(gaps=tuple(Gap(what=raw.target, why=raw.error, how=raw.hint) for raw in raws))


READERS: Mapping[str, Reader] = {
    "engine": _engine,
    "prometheus": _prometheus,
    "logs": _logs,
    "process": _process,
    "case": _case,
    "model": _model,
    "flags": _flags,
    "baseline": _baseline,
    "folder": _folder,
}
"""Who reads which raw answers, in order of trust: where two sources name a fact, the earlier one counts.

A source is imported when there is something for it to read: a bundle of metrics pages needs neither TLS nor psutil.
"""
COMMONEST = "vllm"
"""Whose flags a command line has that names no engine."""
ORIGINS = ("process", "args", "case", "server-info", "log", "metrics", "models-api", "default")
"""Whose word on a flag counts first: what runs, then what was typed, then what the engine reports of itself."""


def of(raws: Iterable[Raw]) -> Evidence:
    """Everything that the raw answers say."""
    by_source: dict[str, list[Raw]] = {}
    for raw in raws:
        by_source.setdefault(raw.source, []).append(raw)
    found = [read(by_source[name]) for name, read in READERS.items() if name in by_source and name != "flags"]
    if "flags" in by_source:
        known = merge(found).deployment.engine
        found.append(_flags([_with_engine(raw, known) for raw in by_source["flags"]]))
    joined = merge(found)
    return replace(joined, gaps=tuple(_presentable(gap) for gap in joined.gaps))


def _presentable(gap: Gap) -> Gap:
    """The gap without secrets: a reason may quote what a server answered, and a server may repeat what it was sent."""
    from llmedic.collect import redact

    return replace(gap, what=redact.text(gap.what), why=redact.text(gap.why), how=redact.text(gap.how))


def merge(parts: Sequence[Evidence]) -> Evidence:
    """One evidence out of several, the most trusted first."""
    return Evidence(
        observations=_chain(part.observations for part in parts),
        events=_chain(part.events for part in parts),
        bench=_chain(part.bench for part in parts),
        kubernetes=_chain(part.kubernetes for part in parts),
        gaps=_chain(part.gaps for part in parts),
        log_lines=sum(part.log_lines for part in parts),
        symptoms=Symptoms(
            seen=frozenset().union(*(part.symptoms.seen for part in parts)),
            when=frozenset().union(*(part.symptoms.when for part in parts)),
            not_when=frozenset().union(*(part.symptoms.not_when for part in parts)),
        ),
        deployment=_deployment([part.deployment for part in parts]),
    )


def _chain(groups: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(item for group in groups for item in group)


def _deployment(parts: Sequence[Deployment]) -> Deployment:
    all_flags = [flag for part in parts for flag in part.flags]
    return Deployment(
        engine=_first(part.engine for part in parts),
        version=_first(part.version for part in parts),
        flags=tuple(sorted(all_flags, key=_trust)),
        environment={key: value for part in reversed(parts) for key, value in part.environment.items()},
        model=ModelFacts(
            name=_first(part.model.name for part in parts),
            config={key: value for part in reversed(parts) for key, value in part.model.config.items()},
            tensors=next((part.model.tensors for part in parts if part.model.tensors), ()),
        ),
        hardware=_hardware([part.hardware for part in parts]),
    )


def _trust(flag: Flag) -> int:
    return ORIGINS.index(flag.origin) if flag.origin in ORIGINS else len(ORIGINS)


def _first(words: Iterable[str]) -> str:
    return next((word for word in words if word), "")


def _hardware(parts: Sequence[HardwareFacts]) -> HardwareFacts:
    merged = HardwareFacts()
    for part in reversed(parts):
        said = {field.name: found for field in fields(part) if (found := getattr(part, field.name)) not in (None, "")}
        merged = replace(merged, **said)
    return merged


def _with_engine(raw: Raw, known: str) -> Raw:
    """The command line, with the engine it belongs to where it does not say so itself."""
    if raw.meta.get("engine"):
        return raw
    from llmedic.knowledge import launchers

    engine = known or launchers.engine_of(raw.body.decode(errors="replace")) or COMMONEST
    return replace(raw, meta={**raw.meta, "engine": engine})


def unread_raw(name: str, error: InputError) -> Raw:
    """A file that lay in a folder and could not be read as what it looked like."""
    return Raw(source="folder", kind="failure", target=name, error=error.message, hint=error.hint)


def symptoms_raw(symptoms: Symptoms) -> Raw:
    """Ticked symptoms as a case file of their own, so that a bundle keeps them."""
    ticked = {kind: sorted(getattr(symptoms, kind)) for kind in ("seen", "when", "not_when")}
    body = json.dumps({"symptoms": {kind: ids for kind, ids in ticked.items() if ids}}).encode()
    return Raw(source="case", kind="case", target="symptoms", body=body)
