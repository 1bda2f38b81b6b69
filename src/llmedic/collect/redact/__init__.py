"""Takes secrets, prompts and callers out of what was fetched, so that a bundle can be handed to somebody else.

Pure: text in, text out. What a verdict needs (numbers, names, log wording, chat templates) stays, and text stays
readable by the parser that reads it unredacted. Redacting twice changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from llmedic.collect.redact.clients import forget_numbers, hide_clients
from llmedic.collect.redact.paragraphs import Kind, suspicious
from llmedic.collect.redact.prompts import hide_prompts
from llmedic.collect.redact.secrets import hide_private_keys, hide_secrets, is_secret_name
from llmedic.model.raw import Raw

__all__ = ["HIDDEN", "Redacted", "is_secret_name", "raws", "setting", "text"]

HIDDEN = "<redacted>"
_NameOf = Callable[[str], str]

# Here `content` is a token's spelling and `prompt` a setting: files of a model hold no requests.
_MODEL_FILES = frozenset({"config", "generation_config", "tokenizer_config", "special_tokens_map", "chat_template"})
# Hiding one thing can bring another to light (a list whose end was inside a string); it settles at once in practice.
_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """The raws without secrets, and how many were hidden of each kind.

    Kinds: prompt, client, header, url, query, flag, env, setting, token, private-key.
    """

    raws: tuple[Raw, ...]
    counts: Mapping[str, int]


def text(shown: str) -> str:
    """One piece of text for a report or a log line. Callers become "<client>"."""
    return forget_numbers(_Redaction(lambda _: "<client>").apply(shown))


def setting(name: str, value: str) -> str:
    """A flag's or environment variable's value as it may be shown: HIDDEN when the name says it is a secret."""
    return HIDDEN if value and is_secret_name(name) else text(value)


def raws(fetched: Iterable[Raw]) -> Redacted:
    """Every raw with body, target, error, hint and meta redacted. A caller has one number throughout."""
    redaction = _Redaction(_Numbering())
    done = tuple(_redact_raw(raw, redaction) for raw in fetched)
    return Redacted(raws=done, counts=dict(sorted((+redaction.counts).items())))


class _Numbering:
    """Names callers <client-1>, <client-2>, … in the order of their first line."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __call__(self, who: str) -> str:
        return self._names.setdefault(who, f"<client-{len(self._names) + 1}>")


class _Redaction:
    """One run over several texts, which keeps the counts."""

    def __init__(self, name_of: _NameOf) -> None:
        self._name_of = name_of
        self.counts: Counter[str] = Counter()

    def apply(self, shown: str, *, with_prompts: bool = True) -> str:
        """The text without anything that should not be shown."""
        shown, keys = hide_private_keys(shown)
        self.counts["private-key"] += keys
        parts: list[str] = []
        done = 0
        for paragraph in suspicious(shown):
            parts.append(shown[done : paragraph.start])
            kinds = paragraph.kinds if with_prompts else paragraph.kinds - {"prompt"}
            parts.append(self._settle(shown[paragraph.start : paragraph.end], kinds))
            done = paragraph.end
        return "".join((*parts, shown[done:])) if parts else shown

    def _settle(self, shown: str, kinds: frozenset[Kind]) -> str:
        for _ in range(_MOST_ROUNDS):
            before = shown
            if "prompt" in kinds:
                shown, prompts = hide_prompts(shown)
                self.counts["prompt"] += prompts
            if "secret" in kinds:
                shown, secrets = hide_secrets(shown)
                self.counts.update(secrets)
            if "client" in kinds:
                shown, clients = hide_clients(shown, self._name_of)
                self.counts["client"] += clients
            if shown == before:
                break
        return shown


def _redact_raw(raw: Raw, redaction: _Redaction) -> Raw:
    # surrogateescape: bytes that are no UTF-8 come out as they went in.
    body = raw.body.decode("utf-8", "surrogateescape")
    kept = redaction.apply(body, with_prompts=raw.kind not in _MODEL_FILES)
    return replace(
        raw,
        target=redaction.apply(raw.target),
        body=raw.body if kept == body else kept.encode("utf-8", "surrogateescape"),
        error=redaction.apply(raw.error),
        hint=redaction.apply(raw.hint),
        meta={
            key: HIDDEN if value and is_secret_name(key) else redaction.apply(value) for key, value in raw.meta.items()
        },
    )
