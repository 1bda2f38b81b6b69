"""vLLM servers of catalogued models on known cards, for the tests of what a ledger answers."""

from __future__ import annotations

from llmedic.analysis.ledger import subject
from llmedic.analysis.ledger.vllm import settings
from llmedic.analysis.ledger.vllm.candidate import Load
from llmedic.analysis.ledger.vllm.variants import Variants
from llmedic.knowledge import accelerators, flags, models
from llmedic.model.deployment import Deployment, Flag, FlagValue, HardwareFacts, ModelFacts
from llmedic.model.ledger import Range


def deployment(
    model: str, card: str = "", version: str = "0.19.0", *, count: int | None = None, **values: FlagValue
) -> Deployment:
    """A model of the catalogue on a card ("" without one), its flags by their neutral names."""
    found = models.find(model)
    assert found is not None, model
    known = accelerators.find(card) if card else None
    assert known is not None or not card, card
    return Deployment(
        engine="vllm",
        version=version,
        flags=tuple(Flag(name=name, value=value) for name, value in values.items()),
        model=ModelFacts(name=found.name, config=found.config),
        hardware=HardwareFacts(
            accelerator=known.name if known else "",
            count=count,
            compute_capability=known.capability if known else None,
        ),
    )


def variants(
    whole: Deployment, load: Load | None = None, *, free_gib: float | None = None, pool: Range | None = None
) -> Variants:
    """What a deployment's ledger is asked about."""
    shape = subject.shape(whole)
    assert shape is not None
    server = subject.server(shape, settings.resolve(whole, shape), subject.card(whole.hardware), whole, pool)
    free = None if free_gib is None else free_gib * 2**30
    return Variants(candidate=server, deployment=whole, free_bytes=free, load=load)


def typed(change: str, version: str) -> dict[str, FlagValue]:
    """What a change says, by neutral names; every flag of it is one that the release takes."""
    found: dict[str, FlagValue] = {}
    words = change.split()
    while words:
        word = words.pop(0)
        spec, positive = flags.by_spelling("vllm")[word]
        assert word in (
            flags.typed(spec.name, "vllm", version),
            flags.typed(spec.name, "vllm", version, negated=True),
        ), f"{word} is not typed in {version}"
        if words and not words[0].startswith("--"):
            value = words.pop(0)
            found[spec.name] = int(value) if value.isdigit() else float(value) if "." in value else value
        else:
            found[spec.name] = positive
    return found


def applied(whole: Deployment, change: str) -> Deployment:
    """The deployment with a change typed into its command line."""
    values = typed(change, whole.version)
    assert values
    kept = tuple(flag for flag in whole.flags if flag.name not in values)
    assert all(Flag(name=name, value=value) not in whole.flags for name, value in values.items()), "already set"
    return Deployment(
        engine=whole.engine,
        version=whole.version,
        flags=(*kept, *(Flag(name=name, value=value) for name, value in values.items())),
        model=whole.model,
        hardware=whole.hardware,
    )
