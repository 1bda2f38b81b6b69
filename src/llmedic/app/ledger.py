"""The ledger use case: a model, a card and flags become one deployment, and the arithmetic is done on it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from llmedic import errors
from llmedic.analysis.ledger import account, deployed
from llmedic.app import evidence
from llmedic.app.request import LedgerRequest
from llmedic.knowledge import accelerators, launchers, models
from llmedic.model.deployment import Deployment, Flag, HardwareFacts, ModelFacts
from llmedic.model.evidence import Evidence, Gap
from llmedic.model.ledger import LedgerReport
from llmedic.model.raw import Raw

GIB = 2**30
NAME_CHARS = 200
"""Of a model's name: two parts of at most 96 on the hub, or a path."""
_NAME_AND_SIZE = re.compile(r"(.*\S)\s+(\d+(?:\.\d+)?\s*[MGT]i?B)", re.IGNORECASE)
"""A card with its total as a log printed it, or of an unusual size: "RTX 4090 23.53GiB"."""
SHAPE = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size")
"""Keys of config.json in which two models of one family differ."""


def run(request: LedgerRequest) -> LedgerReport:
    """The ledger of what was asked for.

    Raises:
        CallerError: a word, a file or a flag is wrong.
    """
    request = _launched(request)
    found = evidence.of(_raws(request))
    gaps: list[Gap] = []
    while True:
        try:
            report = _account(request, found)
        except errors.CallerError as error:
            wrong = _damaged(error, found.deployment)
            if wrong is None:
                raise
            found = replace(found, deployment=_without(found.deployment, wrong))
            gaps.append(
                Gap(what=wrong, why=f"its value in the log makes no sense: {error.message}", how="give the flag itself")
            )
        else:
            return replace(report, ledger=replace(report.ledger, gaps=(*report.ledger.gaps, *gaps)))


def _damaged(error: errors.CallerError, said: Deployment) -> str | None:
    """The setting that a complaint is about, where the log says it and nobody typed it; None for any other."""
    about = error.message.replace(" ", "_")
    printed = (flag.name for flag in deployed.trusted(said).flags if flag.origin == "log")
    return max((name for name in printed if about.startswith(name)), key=len, default=None)


def _without(said: Deployment, name: str) -> Deployment:
    return replace(said, flags=tuple(flag for flag in said.flags if flag.name != name))


def _account(request: LedgerRequest, found: Evidence) -> LedgerReport:
    said = deployed.trusted(found.deployment)
    _refuse_another_engine(request, said)
    deployment = _deployment(request, said)
    _refuse_another_model(request, found.deployment, deployment.model)
    wanted = account.Wanted(
        available_bytes=request.available_bytes,
        available_slack_bytes=request.available_slack_bytes,
        context_tokens=request.context_tokens,
        concurrency=request.concurrency,
        plan_context=request.plan_context,
        solve=request.solve,
        log=str(request.log or ""),
    )
    return account.of(deployment, found.events, wanted, _before(deployment, found))


def _shown(name: str) -> str:
    """A model's name as it may be shown: without the password or the token of an address, and of a sane length."""
    from llmedic.collect import redact

    shown = redact.text(name)
    return shown if len(shown) <= NAME_CHARS else shown[: NAME_CHARS - 1] + "…"


def _launched(request: LedgerRequest) -> LedgerRequest:
    """The request with the engine that its command line starts. Raises UsageError where --engine names another."""
    started = launchers.engine_of(request.args)
    if request.engine and started and not _same(request.engine, started):
        raise errors.UsageError(f"--args starts {started}, not {request.engine}", hint="leave --engine out")
    return replace(request, engine=started or request.engine)


def _same(engine: str, other: str) -> bool:
    """Ollama runs llama.cpp."""
    return engine == other or {engine, other} == {"llama.cpp", "ollama"}


def _before(deployment: Deployment, found: Evidence) -> Deployment | None:
    """The deployment that printed the log, where a flag typed beside it has another value than there.

    What a log does not tell was at its default where the log lists the settings; else the typed flag describes it.
    """
    if not found.events:
        return None
    from llmedic.collect.logs.settings import LISTS

    printed = {flag.name: flag for flag in found.deployment.flags if flag.origin == "log"}
    listed = any(event.id in LISTS for event in found.events)
    changed = {flag.name for flag in deployment.flags if flag.origin != "log" and _differs(flag, printed, listed)}
    if not changed:
        return None
    kept = tuple(flag for flag in deployment.flags if flag.name not in changed)
    return replace(deployment, flags=kept + tuple(printed[name] for name in sorted(changed) if name in printed))


def _differs(flag: Flag, printed: Mapping[str, Flag], listed: bool) -> bool:
    there = printed.get(flag.name)
    return listed if there is None else str(flag.value) != str(there.value)


def _refuse_another_engine(request: LedgerRequest, said: Deployment) -> None:
    """A log of one engine is not to be held against the formulae of another."""
    asked, printed = request.engine, said.engine
    if request.log is None or not asked or not printed or _same(asked, printed):
        return
    hint = "give the command line of that server" if request.args else "leave --engine out"
    raise errors.UsageError(f"{request.log}: the log is of {printed}, not of {asked}", hint=hint)


def _refuse_another_model(request: LedgerRequest, printed: Deployment, model: ModelFacts) -> None:
    """A log of one model is not to be held against the shape of another."""
    name = printed.model.name or next((str(flag.value) for flag in printed.flags if flag.name == "model"), "")
    if request.log is None or not request.model or not name:
        return
    there = deployed.completed(replace(printed, model=ModelFacts(name=name))).model.config
    if any(there[key] != model.config[key] for key in SHAPE if key in there and key in model.config):
        raise errors.UsageError(f"{request.log}: the log is of {name}, not of {request.model}", hint="leave MODEL out")


def _raws(request: LedgerRequest) -> Sequence[Raw]:
    raws: list[Raw] = []
    if request.log is not None:
        from llmedic.collect import logs

        raws += logs.capture([str(request.log)], stdin=sys.stdin.buffer)
        _refuse_unread(raws)
    if request.args or request.flags:
        from llmedic.collect import flags

        typed = " ".join((request.args, shlex.join(request.flags)))
        raws += flags.capture(typed, engine=request.engine)
    if request.model and _is_path(request.model):
        from llmedic.collect import modelfiles

        raws += modelfiles.capture(Path(request.model))
    return raws


def _refuse_unread(raws: Sequence[Raw]) -> None:
    """A log that was named has to be readable: without it there is nothing to explain."""
    for raw in raws:
        if raw.error:
            raise errors.InputError(f"{raw.target}: {raw.error}", hint=raw.hint)


def _is_path(word: str) -> bool:
    """Whether a word names a file or a directory; "meta-llama/Llama-3.1-8B" does only where it exists."""
    try:
        path = Path(word).expanduser()
        there = path.exists()
    except (OSError, RuntimeError, ValueError):  # too long a name, a folder closed to us, nobody's home, a zero byte
        return False
    return there or word.startswith(("./", "../", "/", "~")) or path.suffix in (".gguf", ".json", ".safetensors")


def _deployment(request: LedgerRequest, said: Deployment) -> Deployment:
    """What the log, the flags and the files said, completed with the catalogues."""
    return replace(
        said,
        engine=request.engine or said.engine or "vllm",
        version=request.version or said.version,
        model=_model(request, said),
        hardware=_hardware(request, said.hardware),
    )


def _model(request: LedgerRequest, said: Deployment) -> ModelFacts:
    """The files, else the catalogue's model of that name; only a name where there is neither."""
    if said.model.config or said.model.tensors:
        return replace(said.model, name=_shown(said.model.name or request.model))
    flag = next((flag.value for flag in said.flags if flag.name == "model" and isinstance(flag.value, str)), "")
    name = _shown(request.model or said.model.name or str(flag))
    known = deployed.completed(replace(said, model=ModelFacts(name=name))).model
    if not known.config and request.model and request.log is None:
        close = models.suggest(request.model)
        hint = f"close: {', '.join(close)}" if close else "give a directory or a config.json of it instead"
        raise errors.UsageError(f"{request.model}: not in the catalogue of models", hint=hint)
    return known


def _hardware(request: LedgerRequest, said: HardwareFacts) -> HardwareFacts:
    """The card that was named, else what the log tells of it."""
    if not request.gpu:
        return replace(said, count=request.count or said.count)
    counted, word = accelerators.split_count(request.gpu)
    count = counted if word != request.gpu.strip() else None
    card, size = _card(word)
    if size is not None:
        said = replace(said, memory_gib=size / GIB)
    if card is None:
        return replace(said, count=request.count or count or said.count)
    return replace(
        said,
        accelerator=card.name,
        count=request.count or count or said.count,
        compute_capability=card.capability or said.compute_capability,
    )


def _card(word: str) -> tuple[accelerators.Accelerator | None, int | None]:
    """The card that a word names, and the bytes that it says: "H100", "24GiB", or both, "RTX 4090 23.53GiB"."""
    card, size = accelerators.find(word), accelerators.parse_memory(word)
    both = _NAME_AND_SIZE.fullmatch(word)
    if card is None and both is not None:
        card, size = accelerators.find(both[1]), accelerators.parse_memory(both[2])
    if size is not None and size <= 0:
        raise errors.UsageError(f"--gpu {word}: a card without memory", hint="give its size: --gpu 24GiB")
    if card is None and (size is None or both is not None):
        close = accelerators.suggest(word)
        hint = f"close: {', '.join(close)}" if close else "give the memory of one card instead, as in --gpu 24GiB"
        raise errors.UsageError(f"{word}: not an accelerator that is known", hint=hint)
    return card, size
