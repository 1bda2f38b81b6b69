from __future__ import annotations

import math
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import parser

from llmedic.errors import AnswerError
from llmedic.wire import exposition

names = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,20}", fullmatch=True)
label_names = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,10}", fullmatch=True)
label_values = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00\x85\u2028\u2029"), max_size=20
)
values = st.one_of(st.floats(), st.integers(-(2**60), 2**60).map(float))


def escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, str, dict[str, str], float]:
    name = draw(names)
    labels = draw(st.dictionaries(label_names, label_values, max_size=4))
    value = draw(values)
    shown = "NaN" if math.isnan(value) else repr(value).replace("inf", "Inf")
    inside = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
    comma = draw(st.sampled_from(["", ","])) if labels else ""
    braces = "{" + inside + comma + "}" if labels or draw(st.booleans()) else ""
    stamp = draw(st.sampled_from(["", " 1700000000000"]))
    space = draw(st.sampled_from([" ", "  "]))
    return f"{name}{braces}{space}{shown}{stamp}", name, labels, value


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@given(st.lists(lines(), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_reads_back_what_was_written(written: list[tuple[str, str, dict[str, str], float]], end: str) -> None:
    scrape = exposition.read(end.join(line for line, *_ in written).encode() + end.encode())
    assert scrape.bad_lines == 0
    assert len(scrape.samples) == len(written)
    for (series, value), (_, name, labels, expected) in zip(scrape.samples, written, strict=True):
        assert (series.name, dict(series.labels)) == (name, labels)
        assert same(value, expected)


@given(st.lists(lines(), min_size=1, max_size=8))
def test_agrees_with_the_reference_parser(written: list[tuple[str, str, dict[str, str], float]]) -> None:
    page = "\n".join(line for line, *_ in written) + "\n"
    reference = [
        (sample.name, dict(sample.labels), float(sample.value))
        for family in parser.text_string_to_metric_families(page)
        for sample in family.samples
    ]
    ours = [(series.name, dict(series.labels), value) for series, value in exposition.read(page.encode()).samples]
    assert len(ours) == len(reference)
    for (name, labels, value), (their_name, their_labels, their_value) in zip(ours, reference, strict=True):
        assert (name, labels) == (their_name, their_labels)
        assert same(value, their_value)


@given(st.lists(lines(), min_size=1, max_size=6))
def test_a_second_reading_is_the_same_as_the_first(written: list[tuple[str, str, dict[str, str], float]]) -> None:
    page = "\n".join(line for line, *_ in written).encode()
    reader = exposition.Reader()
    first, second = reader.read(page), reader.read(page)
    assert [id(series) for series, _ in first.samples] == [id(series) for series, _ in second.samples]
    assert all(same(a[1], b[1]) for a, b in zip(first.samples, second.samples, strict=True))


@given(st.lists(lines(), min_size=1, max_size=8), st.data())
def test_wanted_names_are_a_filter_and_nothing_else(
    written: list[tuple[str, str, dict[str, str], float]], data: st.DataObject
) -> None:
    wanted = data.draw(st.sets(st.sampled_from([name for _, name, *_ in written])))
    page = "\n".join(line for line, *_ in written).encode()
    everything = [series for series, _ in exposition.read(page).samples if series.name in wanted]
    reader = exposition.Reader(wanted)
    for _ in range(2):
        kept = [series for series, _ in reader.read(page).samples]
        assert [(s.name, dict(s.labels)) for s in kept] == [(s.name, dict(s.labels)) for s in everything]


def outcome(body: bytes, wanted: set[str] | None = None) -> exposition.Scrape | AnswerError:
    try:
        return exposition.read(body, wanted)
    except AnswerError as error:
        return error


@given(st.one_of(st.binary(max_size=300), st.text(string.printable, max_size=200).map(str.encode)))
def test_any_bytes_give_a_scrape_or_an_answer_error(body: bytes) -> None:
    for wanted in (None, {"a"}):
        found = outcome(body, wanted)
        if isinstance(found, AnswerError):
            assert found.message
            assert "\n" not in found.message
        else:
            assert found.bad_lines <= len(found.samples) + len(found.types)


def test_exemplar_help_type_and_end_mark_are_not_values() -> None:
    page = b"""# HELP x_seconds how long it took
# TYPE x_seconds histogram
x_seconds_bucket{le="1.0"} 5 # {trace_id="a b } 7"} 0.5 1700000000.1
x_seconds_bucket{le="+Inf"} 6.0 1700000000.1 # {trace_id="b"} 3
x_seconds_count 6

# EOF
"""
    reader = exposition.Reader()
    for _ in range(2):
        scrape = reader.read(page)
        assert [value for _, value in scrape.samples] == [5.0, 6.0, 6.0]
        assert scrape.types == {"x_seconds": "histogram"}
        assert scrape.bad_lines == 0


def test_quoted_metric_names() -> None:
    ((series, value),) = exposition.read(b'{"my.metric",host="a"} 3\n').samples
    assert (series.name, dict(series.labels), value) == ("my.metric", {"host": "a"}, 3.0)


def test_label_order_does_not_make_another_series() -> None:
    scrape = exposition.read(b'x{a="1",b="2"} 1\nx{b="2",a="1"} 2\n')
    assert scrape.samples[0][0] is scrape.samples[1][0]


def test_values_that_are_not_numbers_are_kept_for_the_caller_to_judge() -> None:
    values = [value for _, value in exposition.read(b"a NaN\nb +Inf\nc -Inf\nd 1e3\n").samples]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, 1000.0]


def test_one_bad_line_does_not_spoil_the_page() -> None:
    scrape = exposition.read(b"a 1\nb{x= 2\nc 3\nd 1_000\ne 5\n")
    assert [series.name for series, _ in scrape.samples] == ["a", "c", "e"]
    assert scrape.bad_lines == 2


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b"", "empty"),
        (b" \r\n", "empty"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"\xef\xbb\xbf  <html>", "web page"),
        (b"\x7fELF\x00\x01\x02", "binary"),
        (b'{"detail":"Not Found"}', "not Prometheus text"),
        (b"hello world, how are you\nanother line of prose\n", "not Prometheus text"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe\xfd", "not Prometheus text"),
    ],
)
@pytest.mark.parametrize("wanted", [None, {"up"}])
def test_what_is_not_a_metrics_page_is_said_to_be_so(body: bytes, part: str, wanted: set[str] | None) -> None:
    with pytest.raises(AnswerError, match=part):
        exposition.read(body, wanted)


def test_sample_names_cover_every_kind() -> None:
    assert {"x", "x_total", "x_bucket", "x_sum", "x_count"} <= exposition.sample_names({"x"})


def test_a_hundred_thousand_series() -> None:
    page = b"".join(b'x{a="%d"} %d\n' % (i, i) for i in range(100_000))
    scrape = exposition.read(page)
    assert len(scrape.samples) == 100_000
    assert scrape.samples[-1][1] == 99_999


def test_a_line_of_megabytes_is_read() -> None:
    # In the square of its length, this would take minutes.
    labels = ",".join(f'l{number}="b"' for number in range(300_000))
    page = f'a{{{labels}}} 1\nb{{m="{"M" * 1_000_000}"}} 2\nc{{m="{"x" * 1_000_000}\n'.encode()

    scrape = exposition.read(page)

    assert [(series.name, len(series.labels), value) for series, value in scrape.samples] == [
        ("a", 300_000, 1),
        ("b", 1, 2),
    ]
    assert scrape.bad_lines == 1
