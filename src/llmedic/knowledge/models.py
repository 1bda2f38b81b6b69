"""Served models by name: what their config.json says of memory, for when there is no model directory to read.

A directory or a config.json that is at hand always wins over this catalogue. A record holds the keys of the model's
config.json under their own names, so that both go the same way through the ledger.

Names are taken as people and logs write them: with or without organisation, any case, a folder of the Hugging Face
cache, `_` or a space for `-`. A name is never bent to a model that it does not say: what stands before and after the
catalogued name may only be harmless words, a quantisation, or, when the name has a size in it, the words of a
fine-tune; a word that changes the layout ("VL", "MoE", "draft", another size) refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

from llmedic.errors import KnowledgeError
from llmedic.knowledge import load, modelnames
from llmedic.knowledge.modelnames import Words
from llmedic.knowledge.schema import Record

How = Literal["exact", "variant", "by name"]
"""How a name was resolved.

    exact     the catalogued model itself, or an id that is known to have the same layout
    variant   another width or release of it: only words of that kind stand beside the catalogued name
    by name   the catalogued name is a part of a name that is unknown: a fine-tune, or another organisation's copy
"""

_HEADS = re.compile(r"\n- name: (\S+)|\n  aliases: \[([^\]]*)\]|\n    - name: (\S+)")
"""The lines of a record with names; written without a multi-line anchor, which costs four times as much."""


class Variant(Record, frozen=True):
    """A checkpoint of the same layout whose weights are stored differently, as its own config.json says."""

    name: str
    quantization_config: dict[str, object]
    source: str


class ModelRecord(Record, frozen=True):
    """A model.

    name        its id on the Hugging Face hub
    aliases     other ids and short names with exactly this layout
    parameters  how many it has without draft heads, as transformers counts them from the configuration; 0: it has no
                class for the model
    config      the keys of its config.json that decide memory; nested ones stay nested
    source      where they were read, and date: when
    """

    name: str
    config: dict[str, object]
    source: str
    date: str
    aliases: tuple[str, ...] = ()
    parameters: int = 0
    variants: tuple[Variant, ...] = ()
    notes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What the catalogue knows of a name.

    name        the catalogued model whose layout it has
    asked       the name as it was given
    config      as in its config.json, the checkpoint's quantization_config included
    parameters  0: not known
    width_known False: the name says that its weights are stored narrower, but not how narrow
    unsure      what was concluded from the name alone, one sentence each
    """

    name: str
    asked: str
    how: How
    config: Mapping[str, object]
    parameters: int = 0
    source: str = ""
    date: str = ""
    notes: str = ""
    width_known: bool = True
    unsure: tuple[str, ...] = ()


class _Entry(NamedTuple):
    full: str
    name: str
    file: str
    owners: frozenset[str]
    variant: bool = False


def find(name: str) -> Model | None:
    """The model that `name` says, or None when it says none of the catalogue or one that is built differently."""
    words = modelnames.split(name)
    entry = _index().get(words)
    if entry is None:
        return _within(words, name)
    return _exact(entry, name) if _is_theirs(entry, name) else _by_name(entry, name, ())


def suggest(name: str) -> tuple[str, ...]:
    """Up to three catalogued models whose names come closest, the closest first; () when none comes near."""
    import difflib  # costs more than a look-up that succeeds

    spelled = {"-".join(words): entry.name for words, entry in _index().items()}
    close = difflib.get_close_matches("-".join(modelnames.split(name)), spelled, n=9, cutoff=0.6)
    return tuple(dict.fromkeys(spelled[key] for key in close))[:3]


@cache
def names() -> tuple[str, ...]:
    """Every catalogued model, sorted regardless of case."""
    return tuple(sorted({entry.name for entry in _index().values()}, key=str.lower))


def records() -> Iterator[ModelRecord]:
    """Every record, file by file; for pages and tests, which want them all."""
    for file in files():
        yield from load.records(file, ModelRecord)


@cache
def files() -> tuple[str, ...]:
    """The files of the catalogue, as paths under `knowledge/data`."""
    folder = resources.files("llmedic.knowledge").joinpath("data", "models")
    return tuple(sorted(f"models/{entry.name}" for entry in folder.iterdir() if entry.name.endswith(".yaml")))


@cache
def _index() -> Mapping[Words, _Entry]:
    """Every catalogued name by its words, read from the first lines of the records alone."""
    found: dict[Words, _Entry] = {}
    for file in files():
        name = ""
        for head in _HEADS.finditer("\n" + load.text(file)):
            name, variant = head.group(1) or name, bool(head.group(3))
            for full in (head.group(1) or head.group(2) or head.group(3)).replace(",", " ").split():
                words, owner = modelnames.split(full), modelnames.organisation(full)
                known = found.get(words)
                owners = known.owners | {owner} if known else frozenset({owner})
                found[words] = known._replace(owners=owners) if known else _Entry(full, name, file, owners, variant)
    return found


def _is_theirs(entry: _Entry, name: str) -> bool:
    """Whether the name's organisation, if it has one, is one that the catalogue knows."""
    return modelnames.organisation(name) in ("", *entry.owners)


def _record(entry: _Entry) -> ModelRecord:
    found = load.record(entry.file, entry.name, ModelRecord)
    if found is None:
        raise KnowledgeError(f"{entry.file}: {entry.name} is not read as a record of its own")
    return found


def _exact(entry: _Entry, asked: str) -> Model:
    record = _record(entry)
    variant = next((variant for variant in record.variants if entry.variant and variant.name == entry.full), None)
    return Model(
        name=record.name,
        asked=asked,
        how="exact",
        config=_stored(record.config, variant.quantization_config) if variant else record.config,
        parameters=record.parameters,
        source=variant.source if variant else record.source,
        date=record.date,
        notes=record.notes,
    )


def _stored(config: Mapping[str, object], quantization: Mapping[str, object]) -> Mapping[str, object]:
    """A configuration with another quantisation, or with none where it is empty."""
    base = {key: value for key, value in config.items() if key != "quantization_config"}
    return {**base, "quantization_config": quantization} if quantization else base


def _within(words: Words, asked: str) -> Model | None:
    """The longest catalogued name inside a longer one, unless the words beside it say that it is something else."""
    spans = ((at, at + length) for length in range(len(words) - 1, 0, -1) for at in range(len(words) - length + 1))
    for start, end in spans:
        entry = _index().get(words[start:end])
        if entry is not None:
            alike = modelnames.same_layout(words, start, end)
            return _by_name(entry, asked, (*words[:start], "", *words[end:])) if alike else None
    return None


def _by_name(entry: _Entry, asked: str, rest: Words) -> Model:
    """The layout of a catalogued model for a name with other words beside it, its weights stored as the words say."""
    plain = _is_theirs(entry, asked) and all(modelnames.harmless(word) for word in rest if word)
    stored = modelnames.checkpoints(rest)
    unsure = list(_doubts(asked, stored))
    if not plain:
        unsure.insert(0, f"{asked} is not in the catalogue; its layout is that of {entry.name}, whose name it carries")
    elif any(modelnames.DATE.fullmatch(word) for word in rest):
        unsure.insert(0, f"{asked} is another release than {entry.name}; its longest context may differ")
    exact = _exact(entry, asked)
    config = _stored(exact.config, stored[0].quantization_config) if stored else exact.config
    return replace(
        exact,
        how="variant" if plain else "by name",
        config=config,
        width_known=_is_width_known(stored),
        unsure=tuple(unsure),
    )


def _is_width_known(stored: tuple[modelnames.Checkpoint, ...]) -> bool:
    """Whether the words name one way of storing weights, and one whose width is known; or none at all."""
    return not stored or (len(stored) == 1 and bool(stored[0].quantization_config or stored[0].plain))


def _doubts(asked: str, stored: tuple[modelnames.Checkpoint, ...]) -> Iterator[str]:
    if len(stored) > 1:
        ways = ", ".join(way.id for way in stored)
        yield f"{asked} names more than one way of storing weights ({ways}); how wide they are is not known"
    elif stored and stored[0].quantization_config:
        yield f"the quantisation of {asked} is read from its name ({stored[0].id})"
    elif stored and not stored[0].plain:
        yield f"the name {asked} does not say how wide its weights are ({stored[0].id})"
