"""The vocabulary, the symptoms and the pitfalls: complete, unique, in both languages."""

from __future__ import annotations

from llmedic.knowledge import causes, pitfalls, symptoms, vocabulary

UNITS = {
    "count",
    "1/s",
    "tokens/s",
    "1/min",
    "tokens",
    "0..1",
    "s",
    "GiB",
    "MiB/s",
    "code",
    "cores",
    "GHz",
    "MHz",
    "W",
    "C",
    "-",
}


def is_chinese(text: str) -> bool:
    return any("\u4e00" <= letter <= "\u9fff" for letter in text)


def test_every_word_has_a_unit_and_a_meaning_in_both_languages() -> None:
    for word in vocabulary.words().values():
        assert word.unit in UNITS, word.name
        assert word.meaning.en
        assert is_chinese(word.meaning.zh), word.name


def test_units_are_told_by_names() -> None:
    units = {
        "_tokens_per_s": "tokens/s", "_ratio": "0..1", "_s": "s", "_gib": "GiB", "_per_min": "1/min",
        "_cores": "cores", "_per_s": "1/s",
    }  # fmt: skip
    for word in vocabulary.words().values():
        for ending in sorted(units, key=len, reverse=True):
            if word.name.endswith(ending):
                assert word.unit in {units[ending], "MiB/s"}, word.name
                break


def test_a_word_read_alone_is_the_same() -> None:
    assert vocabulary.words()["ttft_s"] == vocabulary.word("ttft_s")
    assert vocabulary.unit("ttft_s") == "s"
    assert vocabulary.unit("nonsense") == ""
    assert vocabulary.names() == tuple(vocabulary.words())


def test_symptoms_and_conditions_do_not_overlap() -> None:
    seen, when = symptoms.ids("symptom"), symptoms.ids("condition")

    assert (len(seen), len(when)) == (44, 58)
    assert not set(seen) & set(when)


def test_every_symptom_can_be_asked_for() -> None:
    for entry in symptoms.entries().values():
        assert entry.text.en
        assert is_chinese(entry.text.zh)
        assert entry.question.en.endswith("?")
        assert entry.question.zh.endswith("吗？")


def test_a_symptom_read_alone_is_the_same() -> None:
    assert symptoms.entry("queue-grows") == symptoms.entries()["queue-grows"]
    assert symptoms.entry("nonsense") is None


def test_there_are_ten_pitfalls_with_concrete_numbers() -> None:
    found = pitfalls.pitfalls()

    assert tuple(found) == pitfalls.ids()
    assert len(found) == 10
    for pitfall in found.values():
        for text in (pitfall.title, pitfall.symptom, pitfall.green, pitfall.evidence, pitfall.remedy):
            assert text.en
            assert is_chinese(text.zh)
        assert set(pitfall.causes) <= set(causes.ids())
