"""`--ask` puts the questions that tell the most, and takes what the person says."""

from __future__ import annotations

from llmedic.cli import ask
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


def test_what_the_person_sees_is_ticked() -> None:
    person = Person("start-fails", "at-start")

    ticked = ask.ask(Symptoms(), "en", person)

    assert ticked.seen == {"start-fails"}
    assert "at-start" in ticked.when


def test_no_question_is_put_twice_and_there_is_an_end() -> None:
    person = Person()

    assert ask.ask(Symptoms(), "en", person) == Symptoms()
    assert 0 < len(person.asked) <= ask.MOST
    assert len(set(person.asked)) == len(person.asked)


def test_what_is_known_is_kept_and_not_asked_again() -> None:
    known = Symptoms(seen=frozenset({"output-garbled"}), not_when=frozenset({"with-bf16"}))
    person = Person()

    assert ask.ask(known, "en", person) == known
    assert symptoms.entries()["output-garbled"].question.en not in person.asked


def test_conditions_are_asked_only_when_something_is_seen() -> None:
    first = ask.next_question(Symptoms(), set())

    assert first is not None
    assert first.kind == "seen"
    following = {ask.next_question(Symptoms(seen=frozenset({name})), set()) for name in symptoms.ids("symptom")}
    assert "when" in {question.kind for question in following if question}


def test_questions_come_in_the_language_asked_for() -> None:
    asked: list[str] = []

    def person(question: str) -> None:
        asked.append(question)

    ask.ask(Symptoms(), "zh", person)

    assert all(question.endswith("吗？") for question in asked)
