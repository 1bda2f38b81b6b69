"""Keys, tokens and passwords: by the name they stand under, by the place they stand in, by the shape they have."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from llmedic.collect.redact.values import is_harmless, replace_value

_SHOWN = "<redacted>"

_WORDS = (
    r"api[_-]?keys?|access[_-]?keys?|access[_-]?key[_-]?id|account[_-]?key|secret[_-]?keys?|secret[_-]?access[_-]?key|"
    r"private[_-]?keys?|encryption[_-]?key|license[_-]?key|secrets?|passwords?|passwd|pwd|passphrase|credentials?|"
    r"auth|signature|sig|sas|token"
)
_SECRET_NAME = re.compile(rf"(?:.*[^a-z0-9])?(?:{_WORDS})", re.IGNORECASE)
_ENVIRONMENT_NAME = re.compile(
    r"[A-Z][A-Z0-9_]*(?:TOKENS?|KEYS?|KEY_ID|SECRETS?|PASSWORD|PASSWD|PASS|PAT|CREDENTIALS?|AUTH)"
)
# Parts of a tokenizer and of a scheduler, not keys to anything.
_NOT_SECRET = re.compile(
    r"(?:.*[^a-z0-9])?(?:eos|bos|pad|unk|sep|cls|mask|image|audio|video|special|start|end|stop|next|first|last|new|draft|"
    r"sampled|accepted|output|input|prompt|per|add\w*|decoder_start|placeholder|think|user|assistant|tool)[ _-]token",
    re.IGNORECASE,
)

_NAMED = re.compile(
    rf"(?:(?<![A-Za-z0-9])(?:{_WORDS}|(?<=_)(?:KEYS?|TOKENS?|PASS|PAT))(?![\w-])|"
    r"(?<=[a-z])(?:ApiKey|AccessKey|SecretKey|Token|Password|Secret))"
    r"(?P<quote>(?:\\*[\"'])?)(?P<mark>[ \t]*[:=][ \t]*)",
    re.IGNORECASE,
)
_NAME_BEFORE = re.compile(r"[\w.-]*\Z")
_BARE = re.compile(r"[^\s\0,;&\"'<>)\]}|]+")

_LONGEST_HEAD = 200
"""How far a name may stand in from the beginning of its line and still open it."""

_VALUE_WORD = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|(?![-|&;<>\\])[^\s\0"',\])}|&;<>]+)"""
_METHODS = "Bearer|Basic|Digest|Negotiate"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A pattern whose group `hidden` is replaced; `triggers` are lower-case, and one of them must be there at all."""

    kind: str
    triggers: tuple[str, ...]
    pattern: re.Pattern[str]


_PRIVATE_KEY = _Rule(
    kind="private-key",
    triggers=("private key-----",),
    pattern=re.compile(
        r"-----BEGIN (?P<type>[A-Z0-9 ]*)PRIVATE KEY-----"
        r"(?P<hidden>(?:(?!-----BEGIN ).)*?(?=-----END (?P=type)PRIVATE KEY-----)|(?:\\[rn]|[A-Za-z0-9+/=:,\-\s])*)",
        re.DOTALL,
    ),
)
_URL_USER = _Rule(
    kind="url",
    triggers=("://",),
    # A password may hold a slash that nobody encoded; "host:8000/" is a port all the same.
    pattern=re.compile(
        r"(?<=://)(?P<hidden>[^\s/\"'<>?#:]{0,256}+:(?!\d{1,5}/)[^\s\"'<>@]{1,2048}+|[^\s/\"'<>?#]{1,2048})(?=@)"
    ),
)
_QUERY = _Rule(
    kind="query",
    triggers=("?", "&"),
    pattern=re.compile(
        r"[?&;](?:[\w.%-]*(?:token(?!s)|key|sig|secret|passw|pwd|auth|credential|sas|jwt|cookie|session)[\w.%-]*|code|pass)"
        r"=(?P<hidden>[^\s&;\"'<>#]+)",
        re.IGNORECASE,
    ),
)
_HEADERS = (
    r"(?:proxy-)?authorization|(?:set-)?cookie|x-amz-security-token|"
    r"(?:x-)?(?:[a-z]+-)?(?:api-key|auth-token|access-token)"
)
_HEADER = _Rule(
    kind="header",
    triggers=("authorization", "cookie", "api-key", "auth-token", "access-token", "security-token"),
    pattern=re.compile(
        rf"(?<![\w-])(?:{_HEADERS})(?:(?P<q>\\*[\"'])\s*[:,=]\s*(?:\[\s*)?b?(?P<v>\\*[\"'])(?P<hidden>(?:(?!(?P=v))[^\n])+)"
        r"|\s*[:=][ \t]*(?P<hidden2>[^\r\n\0\"',<>\[\](){}\s][^\r\n\0\"'<>]*))",
        re.IGNORECASE,
    ),
)
_BEARER = _Rule(
    kind="header",
    triggers=("bearer", "basic", "digest", "negotiate"),
    pattern=re.compile(
        rf"(?<!\w)(?:{_METHODS})(?:\s|%20|\+)+(?!(?:auth\w*|token\w*|scheme|realm|mode|model|support|the|and|or)\b)"
        r"(?P<hidden>(?=[\w.~+/=-]*\d|[\w.~+/=-]{20})[\w.~+/=-]{6,})",
        re.IGNORECASE,
    ),
)
_FLAG_NAME = r"(?<![\w-])--?[\w.-]*(?:api[-_]keys?|token|secret(?:[-_]key)?|passw(?:or)?d|credentials?|access[-_]key)"
_FLAG_TRIGGERS = ("api-key", "token", "secret", "password", "passwd", "credential", "api_key", "access-key")
_QUOTED_ITEM = r"(?P=q)(?!-)(?:(?!(?P=q))[^\n])*(?P=q)"
_BARE_ITEM = r"""(?![-|&;<>\\\[{])[^\s\0"',\])}|&;<>]+"""
# A flag may take several values: in a list, all up to the next flag are its own.
_FLAG_IN_LIST = _Rule(
    kind="flag",
    triggers=_FLAG_TRIGGERS,
    pattern=re.compile(
        rf"{_FLAG_NAME}(?:(?P<q>\\*[\"'])\s*,\s*(?P<hidden>{_QUOTED_ITEM}(?:\s*,\s*{_QUOTED_ITEM})*)"
        rf"|[ \t]*,[ \t]*(?P<hidden2>{_BARE_ITEM}(?:[ \t]*,[ \t]*{_BARE_ITEM})*))",
        re.IGNORECASE,
    ),
)
_FLAG_IN_BLOCK = _Rule(
    kind="flag",
    triggers=_FLAG_TRIGGERS,
    pattern=re.compile(
        rf"{_FLAG_NAME}[\"']?[ \t]*\n(?P<margin>[ \t]*)-[ \t]+(?P<hidden>{_VALUE_WORD}"
        rf"(?:[ \t]*\n(?P=margin)-[ \t]+(?![\"']?-){_VALUE_WORD}(?=[ \t]*(?:\n|\Z)))*)",
        re.IGNORECASE,
    ),
)
_FLAG = _Rule(
    kind="flag",
    triggers=_FLAG_TRIGGERS,
    pattern=re.compile(
        rf"{_FLAG_NAME}"
        r"(?:[ \t\0]+(?:\\\n\s*)?|=|[\"']\s*,\s*|[\"']?[ \t]*\n[ \t]*-[ \t]+)"
        rf"(?P<hidden>{_VALUE_WORD}(?:(?<![\"'])[ \0]+{_VALUE_WORD})*)",
        re.IGNORECASE,
    ),
)
_KUBERNETES_PAIR = _Rule(
    kind="env",
    triggers=("value",),
    pattern=re.compile(
        r"\bname\\*[\"']?\s*:\s*\\*[\"']?\w*(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS?|AUTH|PAT)\\*[\"']?\s*,?\s*"
        rf"\\*[\"']?value\\*[\"']?[ \t]*:[ \t]*(?P<hidden>\\\"(?:(?!\\\")[^\n])*\\\"|{_VALUE_WORD})"
    ),
)
_SHAPE = _Rule(
    kind="token",
    triggers=(
        *("hf_", "sk-", "sk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "akia", "asia"),
        *("aiza", "eyj", "nvapi-", "gsk_", "r8_", "npm_", "pypi-", "dckr_pat_", "wandb_v1_"),
    ),
    pattern=re.compile(
        r"(?<![A-Za-z0-9_])(?P<hidden>hf_[A-Za-z0-9]{16,}|sk[-_][A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|"
        r"github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|"
        r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)*|nvapi-[\w-]{16,}|gsk_[A-Za-z0-9]{16,}|r8_[A-Za-z0-9]{16,}|"
        r"npm_[A-Za-z0-9]{20,}|pypi-[\w-]{30,}|dckr_pat_[\w-]{16,}|wandb_v1_\w{16,})"
    ),
)
_RULES = (_URL_USER, _HEADER, _FLAG_IN_LIST, _FLAG_IN_BLOCK, _FLAG, _KUBERNETES_PAIR, _QUERY, _BEARER, _SHAPE)
_NAMED_TRIGGERS = (
    "key",
    "secret",
    "passw",
    "passphrase",
    "pwd",
    "credential",
    "auth",
    "sig",
    "sas",
    "token",
    "pass",
    "pat",
)


def is_secret_name(name: str) -> bool:
    """Whether a flag, setting or environment variable of this name holds a secret (`--api-key`, `HF_TOKEN`)."""
    if _NOT_SECRET.fullmatch(name):
        return False
    return bool(_ENVIRONMENT_NAME.fullmatch(name) or _SECRET_NAME.fullmatch(_split_humps(name)))


def hide_private_keys(text: str) -> tuple[str, int]:
    """The text without PEM private keys, which go over many lines, and how many there were."""
    counts: Counter[str] = Counter()
    if "PRIVATE KEY-----" in text:
        text = _apply(_PRIVATE_KEY, text, counts)
    return text, counts.total()


def hide_secrets(text: str) -> tuple[str, Counter[str]]:
    """The text without secrets, and how many were hidden of each kind."""
    counts: Counter[str] = Counter()
    lowered = text.lower()
    for rule in _RULES:
        if any(trigger in lowered for trigger in rule.triggers):
            text = _apply(rule, text, counts)
    if any(trigger in lowered for trigger in _NAMED_TRIGGERS):
        text = _hide_named(text, counts)
    return text, counts


def _apply(rule: _Rule, text: str, counts: Counter[str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        group = "hidden" if match["hidden"] is not None else "hidden2"
        value = match[group]
        inner = value.strip("\"'\\")
        if not inner.strip() or is_harmless(inner, 0):
            return match[0]
        counts[rule.kind] += 1
        whole, start = match[0], match.start()
        quote = _outer_quote(value)
        shown = f"{quote}{_SHOWN}{quote}"
        return whole[: match.start(group) - start] + shown + whole[match.end(group) - start :]

    return rule.pattern.sub(replacement, text)


def _outer_quote(value: str) -> str:
    quote = re.match(r"\\*[\"']", value)
    return quote[0] if quote and len(value) > 2 * len(quote[0]) and value.endswith(quote[0]) else ""


def _hide_named(text: str, counts: Counter[str]) -> str:
    parts: list[str] = []
    done = 0
    position = 0
    while key := _NAMED.search(text, position):
        position = key.end()
        name = _name_before(text, key)
        if position < done or not is_secret_name(name):
            continue
        replaced = replace_value(text, key.end(), key_quote=key["quote"])
        end, shown = (replaced.end, replaced.text) if replaced else _replace_bare(text, key, name)
        if shown == text[key.end() : end]:
            continue
        counts["env" if name.isupper() else "setting"] += 1
        parts += (text[done : key.end()], re.sub(r"<redacted \d+ \w+>", _SHOWN, shown))
        done = position = end
    return "".join((*parts, text[done:]))


def _name_before(text: str, key: re.Match[str]) -> str:
    """The whole name that the matched word ends, for instance HF_TOKEN where TOKEN was matched."""
    head = _NAME_BEFORE.search(text, max(0, key.start() - 80), key.start())
    tail = re.match(r"[\w-]+", key[0])
    return (head[0] if head else "").lstrip("-.") + (tail[0] if tail else "")


def _replace_bare(text: str, key: re.Match[str], name: str) -> tuple[int, str]:
    start = key.end()
    value = _BARE.match(text, start)
    mark = key["mark"].strip()
    # "unexpected token: x" is prose; a number after `token:` is a token's id.
    in_prose = mark == ":" and not _opens_line(text, key, name) and not key["quote"]
    if value is None or in_prose or value[0] in {"None", "null", "True", "False", "true", "false"}:
        return start, ""
    if name.lower() == "token" and value[0].isdigit():
        return start, ""
    return value.end(), _SHOWN


def _opens_line(text: str, key: re.Match[str], name: str) -> bool:
    nearest = max(0, key.start() - len(name) - _LONGEST_HEAD)
    begin = text.rfind("\n", nearest, key.start()) + 1
    if not begin and nearest:
        return name.isupper()
    head = text[begin : key.start()]
    return name.isupper() or not head.removesuffix(name[: -len(re.split(r"[^\w-]", key[0])[0])]).strip(" \t-")


def _split_humps(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
