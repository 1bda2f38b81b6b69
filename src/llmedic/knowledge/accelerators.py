"""Accelerators: the memory that a server sees, bandwidth, peaks and compute capability of each, found by any name."""

from __future__ import annotations

import difflib
import re
from functools import cache
from typing import Literal

from llmedic.knowledge import load
from llmedic.knowledge.schema import Record
from llmedic.model.ledger import Range

_FILE = "accelerators.yaml"
_ALIASES = re.compile(r"^  aliases: \[(.*)\]$", re.MULTILINE)
_COMMON = "\n  common: true\n"
_ASIDE = re.compile(r"\([^()]*\)")
_WORDS = re.compile(r"(?!rtx\d|rx\d)[a-z]+[0-9]*[a-z]*|[0-9]+[a-z]*")
_MAKERS = frozenset((
    "nvidia", "amd", "intel", "google", "apple", "huawei", "geforce", "tesla", "radeon", "instinct", "rx", "rtx",
))  # fmt: skip
"""Words that name the maker or the series: a card is known without them."""
_CAPACITY = re.compile(r"(\d+)g(?:i?b)?$")
_SLICE = re.compile(r"\bmig\b|\d+g\.\d+gb", re.IGNORECASE)
"""A MIG slice ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb") is a part of a card, not the card."""
_SHARED = re.compile(r"-shared$", re.IGNORECASE)
"""GPU Feature Discovery adds it to the product label of a time-sliced card, which is whole to each of its users."""
_INSTANCE = re.compile(r"(?:[pg]\d\w*(?:-\w+)?)\.(?:\d*x?large|metal)", re.IGNORECASE)
"""An instance type of AWS: the family tells the card."""
_LEADING_COUNT = re.compile(r"(\d{1,3})\s*[x×*]\s*(?=\D|\d{4}|\d+(?:\.\d+)?\s*[mgt]i?b)(\S.*)", re.IGNORECASE)
_TRAILING_COUNT = re.compile(r"(.*\S)(?:\s+[x×*]\s*|\s*:\s*)(\d{1,3})", re.IGNORECASE)
_VARIANT = re.compile(r"(?:sxm|pcie|nvl|[1-9]\d+gb).*")
"""What may follow a card's word without making it another card: "a100" + "pcie40gb", but not "l4" + "0"."""
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([mgt])(i?b)?", re.IGNORECASE)
_BARE_SIZE = re.compile(r".*[a-zA-Z].*[-_ ][1-9]\d{1,2}")
"""A card and its size without a unit: "A100-40"."""
_UNITS = {"m": 2**20, "g": 2**30, "t": 2**40}

SMALL_SHARD_B = 8.0
"""A shard below eight billion parameters gives a modern GPU too little work per step to hide the collectives."""

Dtype = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"]


class Memory(Record, frozen=True):
    """Total memory in MiB as the driver or the runtime reports it: the ends of what was seen, and today's usual."""

    low: float
    likely: float
    high: float


class Accelerator(Record, frozen=True):
    """One device as the runtime shows it: a card, or one die of a card that shows several.

    name           as torch and nvidia-smi say it
    aliases        other words for it: short names, Kubernetes product labels, names of cloud offers
    nominal_gb     the size it is sold with
    memory_mib     what a server sees; printed: a server's log was found, else the ends come from the sold size
    bandwidth_gbs  of its memory, GB/s; 0: unknown
    peak_tflops    dense peak by dtype, TFLOPS (int8: TOPS); a dtype that is missing is not supported or not known
    capability     CUDA compute capability (9.0), None for other makers; arch: sm_90, gfx942, …
    link_gbs       between devices of a node, both directions together, GB/s; 0: none or unknown
    per_node       devices in a usual node
    unified        host and device share the memory
    common         language models are widely served on it: what to propose first
    """

    name: str
    vendor: Literal["nvidia", "amd", "intel", "huawei", "google", "apple"]
    aliases: tuple[str, ...]
    nominal_gb: float
    memory_mib: Memory
    printed: bool
    memory_source: str
    arch: str
    interconnect: str
    per_node: int
    date: str
    bandwidth_gbs: float = 0.0
    peak_tflops: dict[Dtype, float] = {}
    capability: float | None = None
    link_gbs: float = 0.0
    unified: bool = False
    common: bool = False
    note: str = ""
    source: str = ""

    @property
    def memory(self) -> Range:
        """Total memory in bytes as a server sees it."""
        seen = self.memory_mib
        return Range(low=seen.low * 2**20, likely=seen.likely * 2**20, high=seen.high * 2**20)

    @property
    def peer_to_peer(self) -> bool:
        """Devices of a node have links of their own, faster than PCIe."""
        return not self.interconnect.startswith(("PCIe", "none"))


@cache
def accelerators() -> dict[str, Accelerator]:
    """Every accelerator by its name, in the order of the file."""
    return {item.name: item for item in load.records(_FILE, Accelerator)}


@cache
def common() -> tuple[Accelerator, ...]:
    """The accelerators that are widely served on, in the order of the file; only these are parsed."""
    found = (_record(name.strip('"')) for name, text in load.chunks(_FILE).items() if _COMMON in text)
    return tuple(card for card in found if card is not None)


def find(word: str) -> Accelerator | None:
    """The accelerator that a word names ("h100", "NVIDIA A100-SXM4-80GB", "a100-40g", "p5.48xlarge"), or None.

    A word for several ("a100") gives the commonest; `matches` gives all. A MIG slice is no accelerator of its own.
    """
    if _SLICE.search(word):
        return None
    key = _key(word)
    name = _index().get(key)
    if name:
        return _record(name)
    sized = _BARE_SIZE.fullmatch(word.strip())
    return _beside_a_size(key) or (find(f"{word.strip()}GB") if sized else None)


def matches(word: str) -> tuple[Accelerator, ...]:
    """Every accelerator that a word may mean, the one that `find` gives first ("a100": 80 GB first, then 40)."""
    key, first = _key(word), find(word)
    if not key or first is None:
        return ()
    names = dict.fromkeys((first.name, *(name for alias, name in _index().items() if _extends(alias, key))))
    return tuple(accelerators()[name] for name in names)


def suggest(word: str) -> tuple[str, ...]:
    """Names of accelerators that are spelled like an unknown word, at most three, the closest first.

    A number alone is a size without its unit.
    """
    if re.fullmatch(r"[1-9]\d{0,3}", word.strip()):
        return (f"{word.strip()}GiB",)
    close = difflib.get_close_matches(_key(_SLICE.split(word)[0]), _index(), n=6, cutoff=0.5)
    return tuple(dict.fromkeys(_index()[alias] for alias in close))[:3]


def by_memory(total_bytes: float) -> tuple[Accelerator, ...]:
    """The accelerators whose servers report this total, the closest first; () when none does."""
    seen = [item for item in accelerators().values() if item.memory.low <= total_bytes <= item.memory.high]
    return tuple(sorted(seen, key=lambda item: abs(item.memory.likely - total_bytes)))


def split_count(word: str) -> tuple[int, str]:
    """Count and card of "8x H200", "H200 x8" or "H200:8"; one where nothing counts."""
    text = word.strip()
    if leading := _LEADING_COUNT.fullmatch(text):
        return int(leading.group(1)), leading.group(2).strip()
    if trailing := _TRAILING_COUNT.fullmatch(text):
        return int(trailing.group(2)), trailing.group(1).strip()
    return 1, text


def parse_memory(word: str) -> int | None:
    """Bytes of a plain size ("24GiB", "24GB", "81559MiB"), or None when it is no size.

    GB is read as GiB: cards are sold in GB and hold about as many GiB (an "80 GB" H100 has 79.65 GiB).
    """
    match = _MEMORY.fullmatch(word.strip())
    return round(float(match.group(1)) * _UNITS[match.group(2).lower()]) if match else None


def _key(word: str) -> str:
    """A word without case, separators, maker and series: "NVIDIA A100-SXM4-80GB" and "a100 sxm4 80g" are the same."""
    text = _SHARED.sub("", _ASIDE.sub("", word).strip())
    if _INSTANCE.fullmatch(text):
        text = text.split(".")[0]
    parts = [part for part in _WORDS.findall(text.lower()) if part not in _MAKERS]
    return "".join(_CAPACITY.sub(r"\1gb", part) for part in parts)


def _extends(alias: str, key: str) -> bool:
    """An alias says more than the key, but is about the same card."""
    return alias.startswith(key) and bool(_VARIANT.fullmatch(alias, len(key)))


@cache
def _index() -> dict[str, str]:
    """Key of every name and alias -> name of the record. Read from the text: parsing all records takes too long."""
    found: dict[str, str] = {}
    for quoted, text in load.chunks(_FILE).items():
        name = quoted.strip('"')
        line = _ALIASES.search(text)
        words = [name, *(word.strip(' "') for word in line.group(1).split(","))] if line else [name]
        found.update({_key(word): name for word in words if word})
    return found


def _beside_a_size(key: str) -> Accelerator | None:
    """The card of a key that ends with its size: the sold one, or what nvidia-smi or torch make of it ("l40s46gb")."""
    for digits in range(1, 4):  # "t416gb" is a size of 6, 16 or 416 beside a name
        split = re.fullmatch(rf"(.+)([1-9]\d{{{digits - 1}}})gb", key)
        name = _index().get(split.group(1)) if split else None
        card = _record(name) if name else None
        if split and card and card.memory_mib.low / 1024 - 1 <= float(split.group(2)) <= card.nominal_gb:
            return card
    return None


@cache
def _record(name: str) -> Accelerator | None:
    """The one record, parsed alone; a name that YAML has to quote is quoted in the file too."""
    return load.record(_FILE, name if name in load.chunks(_FILE) else f'"{name}"', Accelerator)
