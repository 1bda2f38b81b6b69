"""What is typed becomes plain values, or one line that says how to type it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic import errors
from llmedic.app.request import Sources
from llmedic.cli import options
from llmedic.model.evidence import Symptoms


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("15s", 15), ("1m", 60), ("24h", 86400), ("7d", 604800), ("90", 90), (2.5, 2.5)],
)
def test_lengths_of_time(text: str | float, seconds: float) -> None:
    assert options.duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0s", "-1m", "1 week", "1.s", "s", "nan", "1m30s", "367d", "9" * 400])
def test_what_is_no_length_of_time_says_how_to_write_one(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 15s, 1m or 24h"):
        options.duration(text)


@given(st.text(max_size=12))
def test_any_text_is_a_positive_length_or_refused(text: str) -> None:
    with contextlib.suppress(click.BadParameter):
        assert options.duration(text) > 0


@pytest.mark.parametrize(
    ("chosen", "environment", "expected"),
    [
        (None, {}, "en"),
        (None, {"LANG": "zh_CN.UTF-8"}, "zh"),
        (None, {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        (None, {"LC_ALL": "", "LC_MESSAGES": "zh_TW", "LANG": "en_GB"}, "zh"),
        ("en", {"LANG": "zh_CN.UTF-8"}, "en"),
        ("zh", {}, "zh"),
    ],
)
def test_the_language_comes_from_the_option_then_the_locale(
    chosen: str | None, environment: dict[str, str], expected: str
) -> None:
    assert options.language(chosen, environment) == expected


def test_access_reads_the_token_from_the_variable() -> None:
    access = options.access(
        headers=("X-Tenant: blue:1",), bearer_env="TOKEN", cacert=None, cert=None, key=None, environment={"TOKEN": "t"}
    )

    assert access.headers == {"X-Tenant": "blue:1"}
    assert access.bearer == "t"
    assert "'t'" not in repr(access)


@pytest.mark.parametrize(
    ("given_options", "says"),
    [
        ({"headers": ("no colon",)}, "--header"),
        ({"headers": (": value",)}, "--header"),
        ({"headers": ("a: b\r\nEvil: 1",)}, "--header"),
        ({"bearer_env": "UNSET"}, "UNSET is not set"),
        ({"key": Path("k.pem")}, "--key needs --cert"),
    ],
)
def test_access_that_cannot_work_is_refused(given_options: dict[str, Any], says: str) -> None:
    usual: dict[str, Any] = {"headers": (), "bearer_env": "", "cacert": None, "cert": None, "key": None}
    with pytest.raises(errors.UsageError, match=says):
        options.access(**{**usual, **given_options}, environment={})


def sources(*targets: str, metrics: tuple[Path, ...] = ()) -> Sources:
    return options.sources(
        targets=targets, metrics=metrics, logs=(), args="", pid=None, case=None, model=None, symptoms=Symptoms()
    )  # fmt: skip


@pytest.mark.parametrize(
    ("target", "says", "hint"),
    [
        ("ftp://host", "ftp:// is not a kind of target", "prom"),
        ("http://", "names no host", "http://host:port"),
        ("localhost:8000", "no such file", "http://localhost:8000"),
        ("missing.zip", "no such file", "http://"),
        ("", "an empty TARGET", "variable"),
        ("x" * 5000, "no such file", "http://"),
        ("http://[::1", "is not a URL", "http://host:port"),
        ("http://a:99999", "is not a URL", "http://host:port"),
        ("http://a:b", "is not a URL", "http://host:port"),
        ("prom+http://[::1?job=x", "is not a URL", "prom"),
        ("https://:443/", "names no host", "https://"),
    ],
)
def test_a_target_that_is_none_says_what_it_should_be(target: str, says: str, hint: str) -> None:
    with pytest.raises(errors.CallerError, match=says) as caught:
        sources(target)

    assert hint in caught.value.hint


def test_targets_of_every_kind_are_taken(tmp_path: Path) -> None:
    sources("http://h:1", "https://h/v1", 'prom+http://p:9090?job="vllm"', str(tmp_path))


def test_a_password_is_not_repeated_when_the_url_is_none() -> None:
    with pytest.raises(errors.UsageError) as caught:
        sources("http://user:sesame@ho\u2100st:1")

    assert "sesame" not in str(caught.value.message) + caught.value.hint


def test_the_scheme_may_be_in_capitals() -> None:
    assert sources("HTTP://Host:1", "Prom+HTTPS://p").targets == ("http://Host:1", "prom+https://p")


def test_three_metrics_pages_make_no_window() -> None:
    with pytest.raises(errors.UsageError, match="once or twice"):
        sources(metrics=(Path("a"), Path("b"), Path("c")))


def test_ticked_ids_are_checked_with_a_suggestion() -> None:
    assert options.ticked(seen=["ttft-high"], when=["under-load"], not_when=["streaming"]) == Symptoms(
        seen=frozenset({"ttft-high"}), when=frozenset({"under-load"}), not_when=frozenset({"streaming"})
    )
    with pytest.raises(errors.UsageError, match="--symptom: there is no 'ttft-hihg'") as caught:
        options.ticked(seen=["ttft-hihg"], when=[], not_when=[])
    assert "did you mean ttft-high" in caught.value.hint
    with pytest.raises(errors.UsageError, match="--when: there is no 'ttft-high'"):
        options.ticked(seen=[], when=["ttft-high"], not_when=[])
    with pytest.raises(errors.UsageError, match="both as --when and as --not-when"):
        options.ticked(seen=[], when=["streaming"], not_when=["streaming"])


def test_a_word_like_nothing_points_to_the_list() -> None:
    assert options.did_you_mean("qqqqqq", ["alpha", "beta"]) == "llmedic explain lists all ids"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("35.34GiB", round(35.34 * 2**30)),
        ("35.34 GiB", round(35.34 * 2**30)),
        ("512MiB", 512 * 2**20),
        ("24G", 24 * 2**30),
        ("24GB", 24 * 10**9),
        ("2kb", 2000),
        ("123456789", 123_456_789),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert options.size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1GiB", "nan", "3x", "1e9", "GiB", "9" * 18 + "TiB", "3 GiB more"])
def test_what_is_no_size_says_how_to_write_one(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"write 35\.34GiB"):
        options.size(text)


@pytest.mark.parametrize(
    ("text", "tokens"), [("16000", 16_000), ("16k", 16_000), ("16K", 16_384), ("131,072", 131_072)]
)
def test_numbers_of_tokens(text: str, tokens: int) -> None:
    assert options.tokens(text) == tokens


@pytest.mark.parametrize("text", ["", "0", "-5", "5.5", "1,6", "16kk", "k", "9999999k"])
def test_what_is_no_number_of_tokens_says_how_to_write_one(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 16000 or 16k"):
        options.tokens(text)


@pytest.mark.parametrize(
    ("text", "release"), [("", ""), ("0.11.0", "0.11.0"), ("v0.11.0rc1+cu128", "0.11.0rc1+cu128"), ("b5554", "b5554")]
)
def test_releases(text: str, release: str) -> None:
    assert options.release(text) == release


@pytest.mark.parametrize("text", ["banana", "latest", "-1", "0.11.0; rm", "0" * 60])
def test_what_is_no_release_says_how_to_write_one(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"write 0\.11\.0"):
        options.release(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("35.34GiB", (round(35.34 * 2**30), 0.005 * 2**30)),
        ("24GiB", (24 * 2**30, 0.0)),
        ("59212694937", (59_212_694_937, 0.0)),
    ],
)
def test_a_printed_size_is_known_to_its_last_digit(text: str, found: tuple[int, float]) -> None:
    size, slack = options.printed_size(text)
    assert (size, slack) == (found[0], pytest.approx(found[1]))


def test_a_size_without_a_unit_that_would_be_a_few_bytes_is_a_slip() -> None:
    with pytest.raises(click.BadParameter, match="would be bytes"):
        options.printed_size("35")
