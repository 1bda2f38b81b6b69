"""An engine's own flags among our options: `llmedic ledger MODEL --max-model-len 16000` needs no quoting.

Every word that starts with a dash is an option of ours or a flag that the engine is known to have; anything else is an
error with the nearest spelling, so that a misspelt flag is never taken for one that does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from llmedic import errors

if TYPE_CHECKING:
    from llmedic.knowledge.flags import FlagSpec

ENGINES = ("vllm", "sglang", "llama.cpp", "tgi")
DEFAULT_ENGINE = ENGINES[0]
_SWITCH_WORDS = ("true", "false")


class Command(click.Command):
    """A command that takes an engine's flags beside its own options, and hands them over as the parameter `flags`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the engine's flags out, then parse what is ours."""
        own = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        ours, theirs = split(args, {name: not option.is_flag for option in own for name in option.opts})
        rest = super().parse_args(ctx, ours)
        ctx.params["flags"] = theirs
        return rest


def split(words: Sequence[str], takes_value: dict[str, bool]) -> tuple[list[str], tuple[str, ...]]:
    """Our words and the engine's, each in the order typed.

    takes_value   our options, and whether each is followed by a value

    Raises:
        UsageError: a flag is neither ours nor the engine's, or lacks its value.
    """
    ours: list[str] = []
    theirs: list[str] = []
    at = 0
    engines, version = _engines(words), _version(words)
    while at < len(words):
        word = words[at]
        name, equals, _ = word.partition("=")
        if word == "--" or not _is_flag(word):
            into, length = ours, 1
        elif name in takes_value:
            into, length = ours, 2 if takes_value[name] and not equals else 1
        else:
            valued = _takes_value(name, engines, version, takes_value)
            into, length = theirs, 1 if equals else _length(name, words[at + 1 : at + 2], is_valued=valued)
        into += words[at : at + length]
        at += length
    return ours, tuple(theirs)


def guess(*, is_gguf: bool, is_told: bool, args: str = "") -> str:
    """The engine where none is named: the one that the command line starts, "" where a log will tell."""
    started = ""
    if args:  # else nothing of the knowledge is needed, such as for a help text
        from llmedic.knowledge import launchers

        started = launchers.engine_of(args)
    if started or is_told:
        return "llama.cpp" if started == "ollama" else started
    return "llama.cpp" if is_gguf else DEFAULT_ENGINE


def _engines(words: Sequence[str]) -> tuple[str, ...]:
    """Whose flags can be meant."""
    engine = _value(words, "--engine") or guess(
        is_gguf=any(map(is_gguf, words)), is_told=_is_told(words), args=_value(words, "--args")
    )
    return (engine,) if engine in ENGINES else ENGINES


def _version(words: Sequence[str]) -> str | None:
    """The release whose flags can be meant: "" for a current one, None where a log may tell."""
    return _value(words, "--engine-version") or (None if _is_told(words) else "")


def _is_told(words: Sequence[str]) -> bool:
    return any(_value(words, option) for option in ("--log", "--args"))


def is_gguf(word: str) -> bool:
    """Whether a word names a file that only llama.cpp usually serves."""
    return word.lower().endswith(".gguf")


def _value(words: Sequence[str], option: str) -> str:
    """The value that follows an option of ours, wherever it stands."""
    found = ""
    for word, following in zip(words, [*words, ""][1:], strict=True):
        name, equals, value = word.partition("=")
        if name == option:
            found = value if equals else following
    return found


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit()


def _takes_value(name: str, engines: Sequence[str], version: str | None, ours: Iterable[str]) -> bool:
    """Whether a value follows a flag. Raises UsageError for one that the engine or the release does not have."""
    from llmedic.knowledge import flags, otherflags

    for engine in engines:
        found = _spelled(name, engine)
        if found is None:
            if name in otherflags.takes_value(engine):
                return otherflags.takes_value(engine)[name]
            continue
        spec, is_yes = found
        if version is not None and not flags.exists(spec.name, engine, version):
            release = version or "a current release"
            raise errors.UsageError(f"{name}: no such flag in {engine}, {release}", hint="name it: --engine-version V")
        return is_yes and spec.type != "bool"
    raise errors.UsageError(f"no such flag: {name}", hint=_hint(name, engines, ours))


def _spelled(name: str, engine: str) -> tuple[FlagSpec, bool] | None:
    """vLLM and SGLang take --max_num_seqs for --max-num-seqs, and --a.b for a part of --a."""
    from llmedic.knowledge import flags

    table = flags.by_spelling(engine)
    head = name.partition(".")[0]
    return table.get(name) or table.get(head) or (table.get(head.replace("_", "-")) if head[:2] == "--" else None)


def _length(name: str, following: Sequence[str], *, is_valued: bool) -> int:
    """How many words a flag takes, itself included. Raises UsageError where its value is missing."""
    if not is_valued:
        return 2 if following and following[0].lower() in _SWITCH_WORDS else 1
    if not following or _is_flag(following[0]):
        raise errors.UsageError(f"{name} needs a value", hint=f"{name} VALUE")
    return 2


def _hint(name: str, engines: Sequence[str], ours: Iterable[str]) -> str:
    import difflib

    others = [engine for engine in ENGINES if engine not in engines and _spelled(name, engine)]
    if others:
        theirs = f"it is a flag of {' and '.join(others)}: add --engine {others[0]}"
        return "; ".join(filter(None, (_own_word(name, others[0], engines), theirs)))
    known = {*ours, *(spelled for engine in engines for spelled in _all(engine))}
    near = difflib.get_close_matches(name.lower().replace("_", "-"), sorted(known), n=2, cutoff=0.75)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return "a flag that llmedic does not know can be given in --args, where the whole command line may stand"


def _own_word(name: str, other: str, engines: Sequence[str]) -> str:
    """What the engine calls the setting that another one spells like this; "" where it has none."""
    from llmedic.knowledge import flags

    found = _spelled(name, other)
    setting = found[0].name if found else ""
    setting = "ctx_size" if setting == "max_model_len" and engines == ("llama.cpp",) else setting
    own = flags.typed(setting, engines[0]) if len(engines) == 1 else ""
    return f"{engines[0]} calls it {own}" if own else ""


def _all(engine: str) -> Iterable[str]:
    from llmedic.knowledge import flags, otherflags

    return (*flags.by_spelling(engine), *otherflags.takes_value(engine))


def typed(setting: str, value: Any, engine: str, beside: Sequence[str] = ()) -> tuple[str, ...]:
    """A setting as a user would type it for the engine; nothing for None.

    Raises:
        UsageError: the engine has no such setting, or it stands among the flags `beside` already.
    """
    from llmedic.knowledge import flags

    if value is None:
        return ()
    spelled = flags.typed(setting, engine or DEFAULT_ENGINE)
    if not spelled:
        raise errors.UsageError(f"{engine} has no flag for {setting.replace('_', ' ')}")
    given = next((word for word in beside if _is_flag(word) and _names(word.partition("=")[0], setting, engine)), "")
    if given:
        raise errors.UsageError(f"{given}: this is given twice", hint=f"leave either {given} or our own option away")
    return (spelled, str(value))


def _names(flag: str, setting: str, engine: str) -> bool:
    found = _spelled(flag, engine or DEFAULT_ENGINE)
    return found is not None and found[0].name == setting
