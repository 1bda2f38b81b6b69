"""`--ask` puts the questions that tell the most, and takes what the person says."""

from __future__ import annotations

from llmedic.analysis import interview
from llmedic.app.diagnose import diagnose
from llmedic.app.request import DiagnoseRequest, Lang, Sources
from llmedic.knowledge import symptoms
from llmedic.model.evidence import Symptoms


class Person:
    """Knows what is seen; remembers what was asked."""

    def __init__(self, *seen: str) -> None:
        self._yes = {symptoms.entries()[name].question.en for name in seen}
        self.asked: list[str] = []

    def __call__(self, question: str) -> bool | None:
        self.asked.append(question)
        return question in self._yes


def ask(known: Symptoms, person: Person, lang: Lang = "en") -> Symptoms:
    request = DiagnoseRequest(sources=Sources(symptoms=known), lang=lang)
    return diagnose(request, answer=person).evidence.symptoms


def test_what_the_person_sees_is_ticked() -> None:
    ticked = ask(Symptoms(), Person("start-fails", "at-start"))

    assert ticked.seen == {"start-fails"}
    assert "at-start" in ticked.when


def test_no_question_is_put_twice_and_there_is_an_end() -> None:
    person = Person()

    assert ask(Symptoms(), person) == Symptoms()
    assert 0 < len(person.asked) <= interview.MOST
    assert len(set(person.asked)) == len(person.asked)


def test_what_is_known_is_kept_and_not_asked_again() -> None:
    known = Symptoms(seen=frozenset({"output-garbled"}), not_when=frozenset({"with-bf16"}))
    person = Person()

    assert ask(known, person) == known
    assert symptoms.entries()["output-garbled"].question.en not in person.asked


def test_conditions_are_asked_only_when_something_is_seen() -> None:
    person = Person()

    ask(Symptoms(), person)

    conditions = {symptoms.entries()[name].question.en for name in symptoms.ids("condition")}
    assert not conditions & set(person.asked)


def test_answers_lead_to_the_cause() -> None:
    request = DiagnoseRequest(sources=Sources(symptoms=Symptoms(seen=frozenset({"cache-misses"}))))
    person = Person("after-restart", "ttft-high")

    verdict = diagnose(request, answer=person).verdict

    assert verdict.causes[0].id == "cold-cache-after-restart"


def test_questions_come_in_the_language_asked_for() -> None:
    person = Person()

    ask(Symptoms(), person, "zh")

    assert set(person.asked) <= {entry.question.zh for entry in symptoms.entries().values()}
