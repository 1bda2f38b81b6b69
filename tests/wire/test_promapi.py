from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.errors import AnswerError, UsageError
from llmedic.wire import promapi
from llmedic.wire.http import Answer

RECORDED = Path(__file__).parents[1] / "collect" / "prometheus_answers"
URL = "http://p:9090/api/v1/query"


def answer(body: bytes, status: int = 200) -> Answer:
    return Answer(status=status, headers={}, body=body, elapsed_s=0.1)


def test_a_recorded_answer() -> None:
    result = promapi.decode(answer((RECORDED / "window.json").read_bytes()), URL)

    waiting = next(one for one in result.series if one.name == "vllm:num_requests_waiting")
    assert waiting.labels["instance"].startswith("10.0.0.")
    assert len(waiting.points) == 12
    assert list(waiting.points) == sorted(waiting.points)


def test_a_recorded_answer_without_series() -> None:
    assert promapi.decode(answer((RECORDED / "empty.json").read_bytes()), URL) == promapi.Result(series=())


@pytest.mark.parametrize("name", ["refused", "too_many_points"])
def test_a_recorded_refusal(name: str) -> None:
    with pytest.raises(UsageError, match="Prometheus does not understand the selector"):
        promapi.decode(answer((RECORDED / f"{name}.json").read_bytes(), 400), URL)


def test_an_instant_vector_is_read_as_series_of_one_point() -> None:
    body = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1,"2"]}]}}'

    assert promapi.decode(answer(body), URL).series == (promapi.Series(labels={"a": "b"}, points=((1.0, 2.0),)),)


points = st.lists(st.tuples(st.floats(0, 2e9), st.floats(allow_nan=False)), min_size=1, max_size=5)


@given(labels=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3), values=points)
def test_every_series_comes_through(labels: dict[str, str], values: list[tuple[float, float]]) -> None:
    spelled = [
        [at, "+Inf" if value == math.inf else "-Inf" if value == -math.inf else repr(value)] for at, value in values
    ]
    data = {"resultType": "matrix", "result": [{"metric": labels, "values": spelled}]}

    result = promapi.decode(answer(json.dumps({"status": "success", "data": data}).encode()), URL)

    assert result.series == (promapi.Series(labels=labels, points=tuple(values)),)


@given(body=st.binary(max_size=100) | st.just(b"[" * 100_000), status=st.integers(200, 599))
def test_bytes_that_are_no_answer_are_refused_in_one_line(body: bytes, status: int) -> None:
    with pytest.raises(AnswerError) as caught:
        promapi.decode(answer(body, status), URL)

    assert "\n" not in caught.value.message
    assert caught.value.status == status


@given(text=st.text(max_size=10))
def test_a_value_that_is_no_number_is_left_out(text: str) -> None:
    data = {"resultType": "matrix", "result": [{"metric": {}, "values": [[1, f"x{text}"], [2, "3"]]}]}

    result = promapi.decode(answer(json.dumps({"status": "success", "data": data}).encode()), URL)

    assert result.series[0].points == ((2.0, 3.0),)
