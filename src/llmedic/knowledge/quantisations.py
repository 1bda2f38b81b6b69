"""Which quantisation runs on which device in which release, and on what kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from llmedic.knowledge import load, releases
from llmedic.knowledge.schema import Record

_FILE = "quantisations.yaml"
_ALIASES = re.compile(r"^  aliases: \[(.*)\]$", re.MULTILINE)
_NOT_WORD = re.compile(r"[^a-z0-9]+")
_ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "tgi": "TGI", "llama.cpp": "llama.cpp", "ollama": "Ollama"}

Runs = Literal["yes", "no", "weight-only", "emulated", "unknown"]
"""How a method runs on a device.

    yes          as it is meant
    weight-only  weights stay small, products run in 16 bit: memory is saved, arithmetic is not
    emulated     unpacked to 16 bit before each product
    no           refused, or fails at the first step
    unknown      nothing was read about it
"""


class Rule(Record, frozen=True):
    """What runs a method on some devices in some releases.

    low, high  CUDA compute capabilities, both included; high 0: open
    arch       prefixes of AMD architectures ("gfx94"); () for CUDA
    since      first release that has it; removed: first release that has not
    """

    engine: str
    runs: Literal["yes", "no", "weight-only", "emulated"]
    kernel: str
    since: str = ""
    removed: str = ""
    low: float = 0.0
    high: float = 0.0
    arch: tuple[str, ...] = ()

    def fits(self, capability: float | None, arch: str) -> bool:
        """Whether it speaks of this device."""
        if arch.startswith("gfx"):
            return arch.startswith(self.arch)
        return not self.arch and capability is not None and self.low <= capability <= (self.high or capability)


class Method(Record, frozen=True):
    """A way of storing weights, or keys and values, in fewer bits.

    aliases  other words for it: vLLM's --quantization, quant_method of a checkpoint
    bits     of one number, scales not counted
    rules    the first that fits decides
    """

    name: str
    aliases: tuple[str, ...]
    bits: float
    what: str
    rules: tuple[Rule, ...]
    source: str
    date: str
    kind: Literal["weights", "kv-cache"] = "weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """How a method runs on a device: the kernel that runs it, and one sentence that says why."""

    runs: Runs
    kernel: str = ""
    why: str = ""


@cache
def methods() -> dict[str, Method]:
    """Every method by its name, in the order of the file."""
    return {item.name: item for item in load.records(_FILE, Method)}


def find(word: str) -> Method | None:
    """The method that a word names ("awq", "modelopt_fp4", "compressed-tensors"), or None."""
    name = _index().get(_key(word))
    return _record(name) if name else None


@cache
def _record(name: str) -> Method | None:
    """The one record, parsed alone."""
    return load.record(_FILE, name, Method)


def mentioned(text: str) -> Method | None:
    """The method that a text speaks of ("compressed-tensors (AWQ W4A16)"), the longest word for one; None without."""
    words = f"_{_NOT_WORD.sub('_', text.lower())}_"
    key = max((one for one in _index() if f"_{one}_" in words), key=len, default="")
    return find(key) if key else None


def support(method: str, capability: float | None, engine: str = "vllm", version: str = "", arch: str = "") -> Support:
    """How a method runs on a device of this compute capability (9.0) or AMD architecture ("gfx942").

    No version: a current one. Never raises: what was not read about is "unknown".
    """
    known = find(method)
    if known is None:
        return Support(runs="unknown", why=f"{method or 'no method'} is no known quantisation")
    rules = [rule for rule in known.rules if rule.engine == engine]
    if not rules or (capability is None and not arch):
        return Support(runs="unknown", why=f"nothing is known of {known.name} in {_named(engine)} on this device")
    live = [rule for rule in rules if releases.lives(version, rule.since, rule.removed)]
    if not live:
        return Support(runs="no", why=_absent(known, rules, engine, version))
    rule = next((rule for rule in live if rule.fits(capability, arch)), None)
    if rule is not None:
        return Support(runs=rule.runs, kernel=rule.kernel if rule.runs != "no" else "", why=_why(known, rule))
    needs = _lowest(live)
    if arch.startswith("gfx") or capability is None or needs is None or capability >= needs:
        return Support(runs="unknown", why=f"nothing is known of {known.name} in {_named(engine)} on this device")
    return Support(runs="no", why=f"{known.name} needs compute capability {needs:g}, the device has {capability:g}")


def kv_cache(dtype: str, capability: float | None, engine: str = "vllm", version: str = "", arch: str = "") -> Support:
    """How a KV cache of this dtype ("fp8", "fp8_e4m3", "nvfp4") runs on a device."""
    word = dtype.lower().replace("fp8_e5m2", "fp8")
    if word in ("", "auto", "float16", "fp16", "half", "bfloat16", "bf16"):
        return Support(runs="yes")
    return support(f"kv-{word}", capability, engine, version, arch)


def minimum(method: str, engine: str = "vllm", version: str = "") -> float | None:
    """Lowest compute capability on which a release runs the method in any way; None when it does not or nobody read."""
    known = find(method)
    rules = known.rules if known else ()
    return _lowest(
        [rule for rule in rules if rule.engine == engine and releases.lives(version, rule.since, rule.removed)]
    )


def _lowest(rules: list[Rule]) -> float | None:
    return min((rule.low for rule in rules if not rule.arch and rule.runs != "no"), default=None)


def _why(method: Method, rule: Rule) -> str:
    if rule.runs == "no":
        return f"{method.name} does not run on this device: {rule.kernel}"
    if rule.runs == "weight-only":
        return f"{method.name} runs as weights only on this device: {rule.kernel} computes in 16 bit"
    if rule.runs == "emulated":
        return f"{method.name} is emulated on this device: {rule.kernel} unpacks it to 16 bit before each product"
    return f"{method.name} runs on {rule.kernel}"


def _absent(method: Method, rules: list[Rule], engine: str, version: str) -> str:
    """Gone, or not yet there: whether some rule began before this release tells which."""
    begun = [rule for rule in rules if releases.lives(version, rule.since, "")]
    gone = next((rule.removed for rule in begun if rule.removed), "")
    if gone:
        return f"{_named(engine)} {gone} and later have no {method.name}"
    first = min(rules, key=lambda rule: releases.numbers(rule.since)).since
    return f"{method.name} came with {_named(engine)} {first}"


def _named(engine: str) -> str:
    return _ENGINES.get(engine, engine or "this engine")


def _key(word: str) -> str:
    return word.strip().lower().replace("-", "_").replace(" ", "_")


@cache
def _index() -> dict[str, str]:
    """Key of every name and alias -> name of the record, read from the text: parsing all records takes too long."""
    found: dict[str, str] = {}
    for name, text in load.chunks(_FILE).items():
        line = _ALIASES.search(text)
        words = [name, *(line.group(1).split(",") if line else ())]
        found.update({_key(word): name for word in words if word.strip()})
    return found
