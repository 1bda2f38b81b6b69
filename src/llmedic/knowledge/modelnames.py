"""How names of models are cut into words, and what the words beside a known name mean."""

from __future__ import annotations

import re
from functools import cache

from llmedic.errors import KnowledgeError
from llmedic.knowledge import load
from llmedic.knowledge.schema import Record

Words = tuple[str, ...]

_RULES = "checkpoints.yaml"

_LISTED = re.compile(r"^  words: \[([^\]]+)\]$", re.MULTILINE)
_CACHE = re.compile(r"models--([^/\\]+?)--([^/\\]+)")
_FILE = re.compile(r"(-\d{5}-of-\d{5})?\.(gguf|safetensors|bin|json)$")
_WORD = re.compile(r"[a-z0-9]+")
_FAMILY = re.compile(r"(?!int|nvfp|mxfp)([a-z]{3,})(\d.*)")
_SIZE = re.compile(r"e?\d+[bm]")
_NUMBER = re.compile(r"\d{1,2}[a-z]?")

_PLAIN = re.compile(
    r"instruct|chat|base|it|hf|pt|text|thinking|reasoning|instruction|pretrained|release|latest|final|main|preview|"
    r"model|weights|dynamic|static|per|tensor|channel|token|block|sym|asym|quantized|compressed|tensors|ct|qat|torch|"
    r"ao|gemm|marlin|v\d|q\d|iq\d|k|m|s|l|xl|xs|nl|ud|\d|gs?\d+"
)
"""Words that leave the layout alone: of tuning, of a release, and the details of a quantisation."""

DATE = re.compile(r"\d{4}|\d{6}|\d{8}")
"""A release by its date: "2507", "0905"."""

_OTHER = re.compile(
    r"moe|vl|vlm|vision|visual|omni|audio|speech|asr|tts|ocr|video|image|multimodal|embed\w*|rerank\w*|retriever|"
    r"colbert|guard|reward|rm|prm|mtp|nextn|eagle|dflash|dspark|medusa|hydra|draft\w*|speculat\w*|assistant|"
    r"lora|qlora|dora|adapter|prun\w*|reap|minitron|depth|upscal\w*|expand\w*|merge\w*|franken\w*|mini|nano|micro|"
    r"tiny|small|medium|large|lite|light|air|flash|plus|pro|max|ultra|super|next|hybrid|mamba|linear|sparse|"
    r"diffusion|bitnet|ternary|1bit|random|dummy|\d*x\d+b?|\d+x|e?a?\d+[bm]|\d+e|\d+l|layers?|vocab\w*"
)
"""Words that say the model is built differently, or of which nothing certain can be said."""


class Checkpoint(Record, frozen=True):
    """What words of a name say of how the weights are stored.

    plain  not quantised. Otherwise an empty `quantization_config` means: narrowed, unknown how
    """

    id: str
    words: tuple[str, ...]
    quantization_config: dict[str, object]
    source: str
    plain: bool = False


def split(name: str) -> Words:
    """A name cut into the words that are compared: "Qwen/Qwen2.5-7B_AWQ" -> ("qwen", "2", "5", "7b", "awq")."""
    words: list[str] = []
    for word in _WORD.findall(_last(name).lower()):
        family = None if word.isalpha() or word[0].isdigit() else _FAMILY.fullmatch(word)
        words += family.groups() if family else (word,)
    return tuple(words)


def organisation(name: str) -> str:
    """Whose model it is, in lower case; empty when the name does not say."""
    cached = _CACHE.search(name)
    if cached:
        return cached.group(1).lower()
    parts = name.strip().split("/")
    return parts[0].lower() if len(parts) == 2 and parts[1] else ""


def same_layout(words: Words, start: int, end: int) -> bool:
    """Whether a model with these words has the layout of the one that `words[start:end]` names.

    Words that no list knows are those of a fine-tune: they are taken where the known name has a size in it.
    """
    rest = (*words[:start], *words[end:])
    if any(_OTHER.fullmatch(word) for word in rest) or (words[end:] and _NUMBER.fullmatch(words[end])):
        return False
    return any(_SIZE.fullmatch(word) for word in words[start:end]) or all(map(harmless, rest))


def harmless(word: str) -> bool:
    """Whether a word beside a model's name leaves its layout alone."""
    return bool(_PLAIN.fullmatch(word) or DATE.fullmatch(word)) or any(word in phrase for phrase, _ in _phrases())


def checkpoints(rest: Words) -> tuple[Checkpoint, ...]:
    """The ways of storing weights that the words name, each once; a word is used up by the first that has it."""
    left = list(rest)
    found: dict[str, Checkpoint] = {}
    for phrase, key in _phrases():
        for at in range(len(left) - len(phrase) + 1):
            if tuple(left[at : at + len(phrase)]) == phrase:
                left[at : at + len(phrase)] = [""] * len(phrase)
                found[key] = _checkpoint(key)
    told = [way for way in found.values() if way.quantization_config or way.plain]
    return tuple(told or found.values())


@cache
def _phrases() -> tuple[tuple[Words, str], ...]:
    """The phrases and the ids of their records, in the order of the file, read without parsing the records."""
    return tuple(
        (split(phrase), key)
        for key, text in load.chunks(_RULES).items()
        for line in _LISTED.findall(text)
        for phrase in line.split(",")
    )


def _checkpoint(key: str) -> Checkpoint:
    found = load.record(_RULES, key, Checkpoint)
    if found is None:
        raise KnowledgeError(f"{_RULES}: {key} is not read as a record of its own")
    return found


def _last(name: str) -> str:
    """What of a path or an id names the model."""
    if "models--" in name and (cached := _CACHE.search(name)):
        return cached.group(2)
    last = name.strip().replace("\\", "/").rstrip("/").rpartition("/")[2]
    return _FILE.sub(lambda found: "-gguf" if found.group(2) == "gguf" else "", last) if last[-1:].isalpha() else last
