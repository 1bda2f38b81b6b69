"""What vLLM chooses by itself from the release, the card and the model: batch sizes and block sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llmedic.knowledge import accelerators
from llmedic.model.deployment import HardwareFacts
from llmedic.model.geometry import Geometry

GIB = 2**30
LARGE_BYTES = 70 * GIB
HUGE_BYTES = 160 * GIB
SMALL_BATCH = (2048, 256)
LARGE_BATCH = (8192, 1024)
HUGE_BATCH = (16384, 1024)
CPU_BATCH = (2048, 128)
"""max_num_batched_tokens and max_num_seqs of an API server (vllm/engine/arg_utils.py, get_batch_defaults)."""
LONG_CONTEXT_TOKENS = 32768
"""Above it the first engine splits prefills by itself (vllm/engine/arg_utils.py, 0.6 to 0.8)."""

Platform = Literal["cuda", "rocm", "xpu", "tpu", "cpu"]
_PLATFORMS: dict[str, Platform] = {"nvidia": "cuda", "amd": "rocm", "intel": "xpu", "google": "tpu"}

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Device:
    """The card as far as defaults depend on it. memory_bytes 0, capability None: nobody said.

    unified  the host's memory is the card's, of whose size NVIDIA's management library says nothing
    """

    platform: Platform = "cuda"
    name: str = ""
    memory_bytes: float = 0.0
    capability: float | None = None
    unified: bool = False

    @classmethod
    def of(cls, hardware: HardwareFacts) -> Device:
        """From what is known about the machine; an unknown word is taken for an NVIDIA card."""
        known = accelerators.find(hardware.accelerator) if hardware.accelerator else None
        memory = hardware.memory_gib * GIB if hardware.memory_gib else known.memory.likely if known else 0.0
        platform = _PLATFORMS.get(known.vendor, "cuda") if known else "cuda"
        if hardware.accelerator.strip().lower() == "cpu":
            platform = "cpu"
        capability = hardware.compute_capability or (known.capability if known else None)
        name = (known.name if known else hardware.accelerator).lower()
        return cls(platform, name, memory, capability, unified=known.unified if known else False)

    @property
    def major(self) -> int:
        """Major number of the compute capability, 0 when unknown."""
        return int(self.capability or 0)


def since(version: Version, *release: int) -> bool:
    """Whether a release is that one or a later one; () is a current one."""
    return not version or version >= release


def batch(version: Version, device: Device, devices: int) -> tuple[int, int]:
    """max_num_batched_tokens and max_num_seqs of an API server whose user sets neither.

    Source: vllm/engine/arg_utils.py, get_batch_defaults and its forerunners, 0.8 to 0.33.
    """
    if device.platform == "cpu":
        tokens, requests = CPU_BATCH
        return tokens * devices, requests * devices
    memory = device.memory_bytes
    if memory >= HUGE_BYTES and since(version, 0, 28):
        return HUGE_BATCH
    slow = ("a100" in device.name and since(version, 0, 9)) or (device.capability == 12.1 and since(version, 0, 33))
    if device.unified and device.platform == "cuda" and not since(version, 0, 33):
        return SMALL_BATCH
    return LARGE_BATCH if memory >= LARGE_BYTES and not slow else SMALL_BATCH


def block_tokens(version: Version, device: Device, geometry: Geometry) -> int:
    """The block size that the platform and the attention backend choose when nobody does.

    Sources: vllm/platforms/*.py; since 0.18 get_preferred_block_size of the backend that is tried first.
    """
    latent = any(layer is not None and layer.kind == "mla" for layer in geometry.layers)
    sparse = any(layer is not None and layer.index_dim for layer in geometry.layers)
    if device.platform == "cpu":
        return 16 if latent else 128
    if device.platform == "xpu":
        return 64 if since(version, 0, 9) else 16
    if sparse:
        return 64
    if not latent or device.platform != "cuda" or not since(version, 0, 9):
        return 16
    return _latent_block(version, device)


def _latent_block(version: Version, device: Device) -> int:
    """MLA on NVIDIA: FlashMLA reads 64 tokens, CUTLASS 128, FlashInfer 64 (later 32 and 64), the others 16."""
    if device.major == 9:
        return 16 if since(version, 0, 18) else 64
    if device.major == 10:
        if since(version, 0, 18):
            return 32
        return 64 if since(version, 0, 15) else 128 if since(version, 0, 10, 2) else 16
    return 16


def kernel_block_tokens(version: Version, device: Device, geometry: Geometry, chosen: int) -> int:
    """The block of the attention kernel, to whose multiples the block of a hybrid is raised.

    chosen  block size by default or flag, which counts as the kernel's since 0.20
    Source: HybridAttentionMambaModelConfig (0.10 to 0.19), Platform._align_hybrid_block_size (0.20 and later).
    """
    latent = any(layer is not None and layer.kind == "mla" for layer in geometry.layers)
    wide = any(layer is not None and layer.head_dim == 256 for layer in geometry.layers)
    kernel = chosen if since(version, 0, 20) else 16
    if latent:
        least = 128 if device.major == 10 or since(version, 0, 29) else 64
        return max(kernel, least if since(version, 0, 11) else 16)
    if device.major == 10 and wide and since(version, 0, 11) and not since(version, 0, 18):
        return 32
    return kernel


def first_engine(version: Version, device: Device, forced: str) -> bool:
    """Whether the engine of the first releases (V0) runs; it went with 0.11.

    forced  VLLM_USE_V1 as set, "" when it is not
    """
    if since(version, 0, 11):
        return False
    if not since(version, 0, 8):
        return forced != "1"
    return forced == "0" or 0 < device.major < 8
