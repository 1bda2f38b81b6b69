from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.collect import engine
from llmedic.errors import InputError


def page(tokens: int, start: int = 100) -> bytes:
    return f"vllm:generation_tokens_total {tokens}\nprocess_start_time_seconds {start}\n".encode()


def values(files: list[tuple[str, bytes]], window_s: float | None, period: str = "window") -> dict[str, object]:
    evidence = engine.read(engine.read_saved(files, window_s))
    return {o.name: o.value for o in evidence.observations if o.period == period}


def test_two_pages_are_a_window(recorded: Callable[[str], bytes]) -> None:
    files = [(name, recorded(name)) for name in ("vllm-0.32.0-first.prom", "vllm-0.32.0-last.prom")]
    found = values(files, 10.0)
    assert {"ttft_s", "output_tokens_per_s", "requests_running", "kv_cache_tokens"} <= set(found)
    assert engine.read(engine.read_saved(files, 10.0)).gaps == ()


def test_one_page_is_a_level_and_a_lifetime() -> None:
    evidence = engine.read(engine.read_saved([("m.prom", page(500))], 10.0))
    assert [o.value for o in evidence.observations if o.name == "output_tokens_count"] == [500.0]
    (gap,) = evidence.gaps
    assert "--metrics" in gap.how


def test_without_the_time_between_there_are_counts_but_no_rates() -> None:
    files = [("a", page(100)), ("b", page(300))]
    found = values(files, None)
    assert found["output_tokens_count"] == 200
    assert "output_tokens_per_s" not in found
    assert any("--window" in gap.how for gap in engine.read(engine.read_saved(files, None)).gaps)


def test_the_later_page_given_first() -> None:
    with pytest.raises(InputError, match="later of the two") as caught:
        engine.read_saved([("b.prom", page(300)), ("a.prom", page(100))], 10.0)
    assert "b.prom" in caught.value.message


def test_a_restart_is_not_taken_for_swapped_files() -> None:
    found = values([("a", page(300, start=100)), ("b", page(20, start=200))], 10.0)
    assert found["output_tokens_count"] == 20


@pytest.mark.parametrize("body", [b"", b"<html></html>", b"\0\1\2", b'{"a": 1}', b"just some words\n"])
def test_what_is_not_a_metrics_page(body: bytes) -> None:
    with pytest.raises(InputError, match=r"x\.prom: ") as caught:
        engine.read_saved([("x.prom", body)], 10.0)
    assert caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("number", [0, 3])
def test_one_or_two_pages(number: int) -> None:
    with pytest.raises(InputError, match=f"{number} metrics pages"):
        engine.read_saved([("x", page(1))] * number, 10.0)


def outcome(body: bytes) -> str:
    try:
        engine.read(engine.read_saved([("x", body)], 10.0))
    except InputError as error:
        return error.message
    return ""


@given(st.binary(max_size=200))
def test_any_file_is_read_or_refused_in_one_line(body: bytes) -> None:
    assert "\n" not in outcome(body)


def test_pages_of_two_engines_make_no_window() -> None:
    other = b"# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs 1\n"
    with pytest.raises(InputError, match="one of sglang"):
        engine.read_saved([("a.prom", page(100)), ("b.prom", other)], 10.0)
