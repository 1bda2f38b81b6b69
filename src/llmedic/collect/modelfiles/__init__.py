"""The model source: configuration and tensors of a model on disk, without its weights."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from llmedic.collect.modelfiles import configs, ggufwords
from llmedic.collect.modelfiles.capture import belongs_to_model, capture, is_model
from llmedic.collect.modelfiles.gguf import Value
from llmedic.collect.modelfiles.groups import of_rows
from llmedic.collect.modelfiles.weights import SOURCE
from llmedic.errors import InputError
from llmedic.model.deployment import Deployment, ModelFacts, TensorGroup
from llmedic.model.evidence import Evidence, Gap
from llmedic.model.raw import Raw
from llmedic.wire import jsontext

__all__ = ["SOURCE", "belongs_to_model", "capture", "is_model", "read"]

_WHAT = {"tensors": "model weights", "gguf": "model metadata", "config": "model configuration"}
_AGAIN = "llmedic diagnose --model DIR"


class _Tensors(msgspec.Struct):
    format: str
    files: int
    groups: list[tuple[str, int | None, str, int, int, int]]


def read(raws: Sequence[Raw]) -> Evidence:
    """The model as its files describe it. Pure. Of several folders, the first model's counts: replicas serve one."""
    mine = [raw for raw in raws if raw.target == raws[0].target]
    gaps: list[Gap] = []
    bodies: dict[str, Raw] = {}
    for raw in mine:
        if raw.error:
            gaps.append(Gap(what=_WHAT.get(raw.kind, raw.kind), why=raw.error, how=raw.hint))
        else:
            bodies.setdefault(raw.kind, raw)
    config: dict[str, object] = {}
    tensors: tuple[TensorGroup, ...] = ()
    try:
        tensors = _tensors(bodies.get("tensors"))
        config = _config(bodies, tensors)
    except (InputError, *jsontext.NOT_READABLE) as error:
        gaps.append(Gap(what="model", why=f"the record is damaged: {error}", how=_AGAIN))
    model = ModelFacts(name=raws[0].target, config=config, tensors=tensors)
    return Evidence(deployment=Deployment(model=model), gaps=tuple(gaps))


def _tensors(raw: Raw | None) -> tuple[TensorGroup, ...]:
    return of_rows(msgspec.json.decode(raw.body, type=_Tensors).groups) if raw else ()


def _config(bodies: dict[str, Raw], tensors: tuple[TensorGroup, ...]) -> dict[str, object]:
    """config.json with the other files under their names; without one, what a GGUF file says in its words."""
    config: dict[str, object] = {}
    if raw := bodies.get("gguf"):
        tied = not any(group.name == "output.weight" for group in tensors)
        config |= ggufwords.config(msgspec.json.decode(raw.body, type=dict[str, Value]), tied=tied)
    if raw := bodies.get("config"):
        config |= configs.words(raw.body)
    for kind in ("generation_config", "tokenizer_config"):
        if raw := bodies.get(kind):
            config[kind] = configs.words(raw.body)
    if (raw := bodies.get("quantization")) and not config.get("quantization_config"):
        config["quantization_config"] = configs.quantization(raw.body, raw.meta.get("file", ""))
    return config
