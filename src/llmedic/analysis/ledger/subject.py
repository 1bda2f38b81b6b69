"""What a ledger is about: the model's shape, the card, and the server as it would be started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llmedic.analysis.ledger import geometry, startup
from llmedic.analysis.ledger.flagview import Flags
from llmedic.analysis.ledger.ranges import GIB, exact
from llmedic.analysis.ledger.vllm import placement
from llmedic.analysis.ledger.vllm.candidate import Candidate
from llmedic.analysis.ledger.vllm.settings import Settings
from llmedic.analysis.ledger.vllm.terms import Card
from llmedic.knowledge import accelerators
from llmedic.model.deployment import Deployment, HardwareFacts
from llmedic.model.geometry import Geometry
from llmedic.model.ledger import Printed, Range


def shape(deployment: Deployment) -> Geometry | None:
    """The model's shape; None where no configuration is there. Raises InputError for one that cannot be a model's."""
    model = deployment.model
    if not model.config and not model.tensors:
        return None
    words = {flag.name: flag.value for flag in deployment.flags}
    quantization, dtype = words.get("quantization"), words.get("dtype")
    found = geometry.of(
        model,
        quantization=quantization if isinstance(quantization, str) else "",
        dtype=dtype if isinstance(dtype, str) else "",
    )
    return found if model.width_known else replace(found, width_known=False)


def card(hardware: HardwareFacts, found: Sequence[Printed] = ()) -> Card | None:
    """The card: its total as printed or given, else what servers see of one of that name."""
    known = accelerators.find(hardware.accelerator) if hardware.accelerator else None
    printed = next((one.value for one in found if one.id == "total"), None)
    capability = hardware.compute_capability or (known.capability if known else None)
    unified = known.unified if known else False
    if printed is not None:
        total = startup.rounded(printed)
    elif hardware.memory_gib:
        total = exact(hardware.memory_gib * GIB)
    elif known is not None:
        total = known.memory
    else:
        return None
    return Card(total_bytes=total, compute_capability=capability, unified=unified)


def server(
    shape: Geometry, settings: Settings, card: Card | None, deployment: Deployment, pool: Range | None = None
) -> Candidate:
    """The server as it would be started; pool: bytes of its KV cache on one device, where they are known."""
    given = Flags(deployment)
    return Candidate(
        geometry=shape,
        settings=settings,
        card=card or Card(total_bytes=exact(0)),
        offload_bytes=given.number("cpu_offload_gb") * GIB,
        reserved_bytes=given.number("mm_ipc_gpu_memory_gb") * GIB,
        known_pool=pool,
        group_size=placement.group_size(deployment.model.config),
    ).fitted()
