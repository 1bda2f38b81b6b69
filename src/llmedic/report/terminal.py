"""The verdict for a person at a terminal, woken at night: the answer first, then what supports it.

Every state is a word as well as a colour, so it reads the same in a pipe, in a ticket and without colour.
rich is imported only here, and only when a report is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from llmedic.knowledge import causes, phrases
from llmedic.knowledge.texts import Lang, label
from llmedic.model.evidence import Gap
from llmedic.model.finding import Fact
from llmedic.model.verdict import BindingLimit, Cause, Change, Disagreement, Layer, Verdict
from llmedic.report import words
from llmedic.report.page import WIDTH, Page

MOST_IDS = 6
"""Undecided causes that are named; the rest is counted."""


_HEALTH_STYLE = {"healthy": "bold green", "degraded": "bold yellow", "down": "bold red", "unknown": "bold magenta"}
_STATUS_STYLE = {"ok": "green", "cause": "bold red", "symptom": "yellow", "not-evaluated": "dim"}
_STATUS_MARK = {"ok": "+", "cause": "!", "symptom": "~", "not-evaluated": "?"}
_SEVERITY_STYLE = {"info": "bold cyan", "warning": "bold yellow", "critical": "bold red"}


def render(verdict: Verdict, *, lang: Lang = "en", width: int = WIDTH, colour: bool = False) -> str:
    """The report as text of at most `width` columns, with ANSI colours if asked for."""
    page = _Verdict(lang=lang, width=width, colour=colour)
    page.verdict(verdict)
    return page.show()


class _Verdict(Page):
    """Writes the parts of a verdict, one method per part."""

    def verdict(self, verdict: Verdict) -> None:
        self._head(verdict)
        if verdict.restart_warning:
            self.line(("! " + self._say("restart"), "bold red"))
            self.blank()
        if verdict.causes:
            self._cause(verdict.causes[0])
        else:
            self.line((self._say("healthy" if verdict.health == "healthy" else "undecided"), "bold"))
            self.blank()
        if verdict.binding:
            self._binding(verdict.binding)
        self._layers(verdict.layers)
        self._others(verdict.causes[1:])
        self._disagreements(verdict.disagreements)
        self._gaps(verdict.gaps)
        self._undecided(verdict.cannot_tell)

    def _head(self, verdict: Verdict) -> None:
        health = self._say(f"health.{verdict.health}")
        parts = [("LLMedic: ", "bold"), (health, _HEALTH_STYLE.get(verdict.health, "bold"))]
        if verdict.engine:
            parts.append((f"  ({verdict.engine})", "dim"))
        self.line(*parts)
        self.blank()

    def _cause(self, cause: Cause) -> None:
        self._cause_head(cause)
        self.line((cause.summary, ""), indent=2)
        self.blank()
        self._facts(cause.evidence)
        if cause.change:
            self._change(cause.id, cause.change)
        if cause.symptoms:
            self.heading(self._say("beneath"))
            for symptom in cause.symptoms:
                self.line(("- " + self._named(symptom), ""), indent=2, hang=2)
            self.blank()

    def _cause_head(self, cause: Cause) -> None:
        if cause.id in causes.SPECIAL:
            self.line((cause.title, "bold"))
            return
        sure = self._say("sure").format(percent=round(cause.confidence * 100))
        severity = self._say(f"severity.{cause.severity}")
        self.line((f"{severity}  ", _SEVERITY_STYLE[cause.severity]), (cause.title, "bold"))
        self.line((f"{cause.id}, {self._say(f'layer.{cause.layer}')}, {sure}", "dim"), indent=2)

    def _facts(self, facts: Sequence[Fact]) -> None:
        said = [words.in_words(fact, self.lang) for fact in facts]
        rows = [(fact.name, words.value(fact), fact.compared_to, words.origin(fact)) for fact in said]
        if not rows:
            return
        heads = ("observation", "value", "compared", "source")
        used = [column for column in range(len(heads)) if any(row[column] for row in rows)]
        self.heading(self._say("evidence"))
        self.table(
            [self._say(heads[column]) for column in used], [tuple(row[column] for column in used) for row in rows]
        )

    def _change(self, cause: str, change: Change) -> None:
        self.heading(self._say("change"))
        if cause in causes.ids():
            self.line((getattr(causes.cause(cause).remedy, self.lang), ""), indent=2)
        self.line((words.change(change, self.lang), "bold green"), indent=2, hang=2)
        if change.add:
            self.command(self._say("add"), change.add, indent=2)
        if change.drop:
            self.command(self._say("drop"), change.drop, indent=2)
        self.line((self._say("expected") + self._say("colon"), "dim"), (change.expected, ""), indent=2, hang=2)
        self.command(self._say("verify"), change.verify, indent=2)
        self.blank()

    def _binding(self, binding: BindingLimit) -> None:
        self.heading(self._say("binding"))
        self.line((binding.summary, ""), indent=2)
        self.blank()

    def _layers(self, layers: Sequence[Layer]) -> None:
        rows = [
            (
                self._say(f"layer.{layer.layer}"),
                f"{_STATUS_MARK.get(layer.status, ' ')} {self._say(f'status.{layer.status}')}",
                layer.summary,
            )
            for layer in layers
        ]
        if rows:
            self.heading(self._say("layers"))
            self.table(
                [self._say(head) for head in ("layer", "status", "summary")],
                rows,
                styles=[_STATUS_STYLE.get(x.status, "") for x in layers],
            )

    def _others(self, others: Sequence[Cause]) -> None:
        for position, cause in enumerate(others):
            if position == 0:
                self.heading(self._say("others"))
            sure = self._say("sure").format(percent=round(cause.confidence * 100))
            self.line(
                ("- ", ""), (f"{self._say(f'severity.{cause.severity}')} ", _SEVERITY_STYLE[cause.severity]),
                (f"{cause.title} ({sure})", ""), indent=2, hang=2,
            )  # fmt: skip
            for fact in cause.evidence[:2]:
                self.line((self._fact_line(fact), ""), indent=4, hang=2)
            self.line((self._say("more").format(id=cause.id), "cyan"), indent=4)
        if others:
            self.blank()

    def _disagreements(self, items: Sequence[Disagreement]) -> None:
        for position, item in enumerate(items):
            if position == 0:
                self.heading(self._say("disagreements"))
            about = phrases.chinese(item.about) if self.lang == "zh" else item.about
            self.line((f"- {about}{self._say('colon')}", "bold"), (item.meaning, ""), indent=2, hang=2)
            for fact in (item.first, item.second):
                self.line((self._fact_line(fact), ""), indent=4, hang=2)
        if items:
            self.blank()

    def _gaps(self, gaps: Sequence[Gap]) -> None:
        for position, gap in enumerate(words.gap(one, self.lang) for one in gaps):
            if position == 0:
                self.heading(self._say("gaps"))
            self.line((f"- {gap.what}{self._say('colon')}", "bold"), (gap.why, ""), indent=2, hang=2)
            if gap.how:
                self.command(self._say("how"), gap.how, indent=4)
        if gaps:
            self.blank()

    def _undecided(self, ids: tuple[str, ...]) -> None:
        if ids:
            self.heading(self._say("cannot-tell"))
            more = [self._say("and-more").format(count=len(ids) - MOST_IDS)] if len(ids) > MOST_IDS else []
            self.line((", ".join([*ids[:MOST_IDS], *more]), ""), indent=2)

    def _named(self, below: str) -> str:
        title, name = words.named(below, self.lang)
        return f"{title} ({name})" if name else title

    def _fact_line(self, fact: Fact) -> str:
        return words.line(words.in_words(fact, self.lang))

    def _say(self, key: str) -> str:
        return label(key, self.lang)
