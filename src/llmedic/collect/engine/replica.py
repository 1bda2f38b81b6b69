"""One server during the window: what is asked when, and how each answer or failure is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from llmedic.collect.engine import raws, refusals
from llmedic.errors import AnswerError, LLMedicError
from llmedic.knowledge import metrics
from llmedic.model.raw import Raw
from llmedic.wire import http, jsontext, openai
from llmedic.wire.parallel import run_all

_LOOKS = 5
_SHORTEST_STEP_S = 0.5
_LOOK_SHARE = 4
_ANSWER_BYTES = 4 << 20
_DESCRIBE_S = 5.0
_PROBE_S = 10.0
_LEAST_S = 1.0
_FAIR_S = 3.0
_HANDOVER_S = 0.1
"""For an answer that came at its deadline to be written down before nobody waits for it any more."""
_PRIVATE = frozenset({"prompt", "generated", "content", "next_token", "input", "messages", "api_key", "hf_token"})
_TELLING = (raws.SLOTS, raws.PROPS, raws.SERVER_INFO)
_ACCEPT = "text/plain;version=0.0.4,*/*;q=0.5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The window that all replicas share, in Unix seconds; nothing is awaited after hard_end."""

    begun: float
    window_s: float
    ends: float
    hard_end: float


class Replica:
    """Collects the raw answers of one server. `watch` blocks for the window; `seen` may be called at any time."""

    def __init__(
        self,
        base: str,
        access: http.Access,
        span: Span,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self.base = base
        self.target = http.shown(base)
        self._access = access
        self._span = span
        self._clock = clock
        self._sleep = sleep
        self._raws: list[Raw] = []
        self._engine = ""
        self._looked = threading.Event()
        self._wanted: tuple[bytes, ...] = ()

    def seen(self) -> tuple[Raw, ...]:
        """What has been collected so far, in order of time."""
        return tuple(sorted(self._raws, key=lambda raw: (raw.at, raw.kind)))

    def watch(self, *, probe: bool) -> None:
        """Follow the server to the end of the window."""
        aside = threading.Thread(target=partial(self._describe, probe=probe), name="llmedic-describe", daemon=True)
        aside.start()
        step_s = max(self._span.window_s / _LOOKS, _SHORTEST_STEP_S)
        page = self._page("first" if self._span.window_s else "last", self._first_deadline_s())
        self._looked.set()
        step_s = max(step_s, _LOOK_SHARE * page.elapsed_s)  # a server that is slow to answer is asked less often
        due = self._span.begun + step_s
        while due < self._span.ends - step_s / 2:
            self._wait_until(due)
            left_s = self._span.ends - self._clock()
            if page.error:
                page = self._page("first", left_s)
            else:
                self._glance(min(step_s, left_s))
            due = max(due + step_s, self._clock())
        if self._span.window_s:
            self._wait_until(self._span.ends)
            self._page("last", self._span.hard_end - self._clock())
        aside.join(self._describe_left_s() + 2 * _HANDOVER_S)

    def _first_deadline_s(self) -> float:
        left_s = self._span.hard_end - self._clock()
        return min(left_s, max(self._span.ends - self._clock(), _LEAST_S)) if self._span.window_s else left_s

    def _describe_end(self) -> float:
        """What only describes the server may not hold up the end, but has a fair chance in a short window."""
        return min(self._span.hard_end, max(self._span.ends + 0.3, self._span.begun + _FAIR_S))

    def _describe_left_s(self) -> float:
        return max(0.0, self._describe_end() - self._clock())

    def _wait_until(self, moment: float) -> None:
        left_s = moment - self._clock()
        if left_s > 0:
            self._sleep(left_s)

    def _page(self, end: str, deadline_s: float) -> Raw:
        """The whole metrics page; remembers which engine wrote it and which gauge lines to keep from now on."""
        raw = self._ask(raws.METRICS, "/metrics", deadline_s, what=refusals.METRICS_PAGE, max_bytes=http.MAX_BYTES)
        meta = {"end": end, "begun": repr(self._span.begun), "window_s": repr(self._span.window_s)}
        raw = replace(raw, meta=meta)
        self._raws.append(raw)
        if not raw.error:
            self._engine = metrics.engine_of(raw.body)
            gauges = (name.encode() for name in metrics.names(self._engine).gauges)
            self._wanted = tuple(name for name in gauges if name in raw.body)
        return raw

    def _glance(self, deadline_s: float) -> None:
        """A light look: the page is fetched, only its gauge lines are kept."""
        raw = self._ask(raws.GAUGES, "/metrics", deadline_s, what=refusals.METRICS_PAGE, max_bytes=http.MAX_BYTES)
        kept = b"\n".join(line for line in raw.body.split(b"\n") if line.startswith(self._wanted))
        self._raws.append(replace(raw, meta={"begun": repr(self._span.begun)}, body=kept))

    def _describe(self, *, probe: bool) -> None:
        """Everything beside the metrics page; runs while the window is open."""
        self._ask_all(raws.COMMON, min(_DESCRIBE_S, self._describe_left_s()))
        tasks: dict[str, Callable[[], None]] = {"details": self._details}
        if probe:
            tasks["probe"] = self._probe
        run_all(tasks, self._describe_left_s() + _HANDOVER_S)

    def _details(self) -> None:
        """What only this kind of engine answers; all of them are asked when the page did not tell in good time."""
        self._looked.wait(self._describe_left_s() / 2)
        self._ask_all(raws.OF_ENGINE[self._engine], min(_DESCRIBE_S, self._describe_left_s()))

    def _ask_all(self, kinds: tuple[str, ...], deadline_s: float) -> None:
        if deadline_s <= 0:
            return
        run_all({kind: partial(self._ask_kind, kind, deadline_s) for kind in kinds}, deadline_s + _HANDOVER_S)

    def _ask_kind(self, kind: str, deadline_s: float) -> None:
        raw = None
        for path in raws.PATHS[kind]:
            raw = self._ask(kind, path, deadline_s, what=f"{path} answer", max_bytes=_ANSWER_BYTES)
            if raw.status not in (404, 405):
                break
        if raw is not None:
            self._raws.append(raw)

    def _ask(self, kind: str, path: str, deadline_s: float, *, what: str, max_bytes: int) -> Raw:
        started = self._clock()
        try:
            answer = http.get(
                self.base + path, self._access, deadline_s=max(deadline_s, 0.05), max_bytes=max_bytes, accept=_ACCEPT
            )
        except LLMedicError as failure:
            status = failure.status if isinstance(failure, AnswerError) else 0
            elapsed_s = self._clock() - started
            return self._raw(kind, elapsed_s, status, error=failure.message, hint=failure.hint)
        error, hint = ("", "") if kind == raws.HEALTH and answer.status == 200 else refusals.explained(answer, what)
        body = _without_secrets(answer.body) if kind in _TELLING else answer.body
        return self._raw(kind, answer.elapsed_s, answer.status, body=body, error=error, hint=hint)

    def _probe(self) -> None:
        model = next((openai.first_model(raw.body) for raw in self._raws if raw.kind == raws.MODELS), "")
        limit_s = min(_PROBE_S, self._describe_left_s())
        found = openai.probe(self.base, self._access, model=model, deadline_s=limit_s)
        self._raws.append(self._raw(raws.PROBE, found.elapsed_s, found.status, error=found.error, hint=found.hint))
        limit_s = min(_PROBE_S, self._describe_left_s())
        if found.status == 200 and "chat" not in found.path and limit_s > 0:
            chat = openai.probe_chat(self.base, self._access, model=model, deadline_s=limit_s)
            self._raws.append(self._raw(raws.PROBE_CHAT, chat.elapsed_s, chat.status, error=chat.error, hint=chat.hint))

    def _raw(
        self, kind: str, elapsed_s: float, status: int, *, body: bytes = b"", error: str = "", hint: str = ""
    ) -> Raw:
        return Raw(
            source=raws.SOURCE,
            kind=kind,
            target=self.target,
            at=self._clock(),
            elapsed_s=elapsed_s,
            status=status,
            body=body,
            error=error,
            hint=hint,
        )


def _without_secrets(body: bytes) -> bytes:
    """A JSON answer without keys and prompts: SGLang shows its API key, older llama.cpp the prompt of every slot."""
    try:
        return msgspec.json.encode(_stripped(msgspec.json.decode(body)))
    except jsontext.NOT_READABLE:
        return b""


def _stripped(value: object) -> object:
    if isinstance(value, dict):
        return {key: _stripped(item) for key, item in value.items() if key not in _PRIVATE}
    return [_stripped(item) for item in value] if isinstance(value, list) else value
