"""How the decoder layers are divided over the stages of a pipeline."""

from __future__ import annotations

from llmedic.analysis.ledger.vllm.settings import Settings


def stages(layers: int, draft_layers: int, settings: Settings) -> tuple[range, ...]:
    """The layers of each stage; layers of the draft follow the model's own and run on the last stage.

    The remainder goes to the stages before the last, from the back (vllm/distributed/utils.py, get_pp_indices); the
    first releases gave it to the last.
    """
    count = min(settings.pipeline_parallel, max(layers, 1))
    sizes = [layers // count] * count
    rest = layers % count
    if settings.version and settings.version < (0, 8):
        sizes[-1] += rest
    else:
        for index in range(2, rest + 2):
            sizes[-index] += 1
    sizes[-1] += draft_layers
    ends = [sum(sizes[: index + 1]) for index in range(count)]
    return tuple(range(end - size, end) for end, size in zip(ends, sizes, strict=True))
