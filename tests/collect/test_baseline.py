from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.collect import baseline
from llmedic.errors import AnswerError, InputError, UsageError
from llmedic.knowledge import vocabulary
from llmedic.model.deployment import Deployment, Flag, HardwareFacts, ModelFacts
from llmedic.model.evidence import Evidence
from llmedic.model.observation import Observation, Quantiles, Series, Value
from llmedic.model.raw import Raw

NOW = 1_790_000_000.0
SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "reference" / "baseline-1.schema.json"
TTFT = Quantiles(p50=0.1, p90=0.2, p95=0.25, p99=0.4, mean=0.12, count=900.0, cap=640.0)

DEPLOYMENT = Deployment(
    engine="vllm",
    version="0.33.0",
    flags=(
        Flag(name="max_num_seqs", value=256.0),
        Flag(name="api_key", value="CANARY"),
        Flag(name="port", value=8000.0),
    ),
    model=ModelFacts(name="m"),
    hardware=HardwareFacts(accelerator="H100", count=2),
)


def seen(name: str, value: Value, **about: Any) -> Observation:
    return Observation(name=name, value=value, unit=vocabulary.unit(name), source="metrics", window_s=60.0, **about)


def healthy(*more: Observation, deployment: Deployment = DEPLOYMENT) -> Evidence:
    return Evidence(observations=(seen("ttft_s", TTFT), *more), deployment=deployment)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "llmedic" / "baselines"


def values(evidence: Evidence) -> dict[str, Value]:
    return {found.name: found.value for found in evidence.observations}


def test_what_was_saved_is_read_as_the_baseline() -> None:
    baseline.save(healthy(seen("request_rate_per_s", 4.0)), "prod", now=NOW)

    evidence = baseline.read("prod")

    assert values(evidence) == {"ttft_s": TTFT, "request_rate_per_s": 4.0}
    assert {(found.period, found.source, found.at, found.window_s) for found in evidence.observations} == {
        ("baseline", "baseline", NOW, 60.0)
    }


numbers = st.floats(0, 1e9)
quantiles = st.builds(
    Quantiles, p50=numbers, p99=st.none() | numbers, mean=numbers, count=numbers, floor=st.none() | numbers
)


@given(found=st.dictionaries(st.sampled_from(baseline.NAMES), numbers | quantiles, max_size=8), latency=quantiles)
def test_every_value_comes_back(
    tmp_path_factory: pytest.TempPathFactory, found: dict[str, Value], latency: Quantiles
) -> None:
    path = tmp_path_factory.mktemp("baseline") / "b.json"
    kept = {**found, "ttft_s": latency}

    baseline.save(Evidence(observations=tuple(seen(name, value) for name, value in kept.items())), path, now=NOW)

    assert values(baseline.read(path)) == kept


def test_a_series_is_kept_as_its_range() -> None:
    baseline.save(healthy(seen("kv_cache_usage_ratio", Series(points=((0, 0.2), (5, 0.4))))), "prod", now=NOW)

    usage = values(baseline.read("prod"))["kv_cache_usage_ratio"]

    assert isinstance(usage, Quantiles)
    assert (usage.mean, usage.min, usage.max) == (pytest.approx(0.3), 0.2, 0.4)


def test_only_the_window_of_the_service_is_kept() -> None:
    evidence = healthy(
        seen("e2e_s", TTFT, period="lifetime"),
        seen("queue_s", TTFT, instance="a:8000"),
        seen("queue_s", TTFT, instance="b:8000"),
        seen("uptime_s", 5.0),
    )

    baseline.save(evidence, "prod", now=NOW)

    assert values(baseline.read("prod")).keys() == {"ttft_s"}


def test_a_single_replica_is_the_service() -> None:
    baseline.save(Evidence(observations=(seen("ttft_s", TTFT, instance="a:8000"),)), "prod", now=NOW)

    assert values(baseline.read("prod")) == {"ttft_s": TTFT}


def test_values_that_are_no_numbers_are_left_out() -> None:
    baseline.save(healthy(seen("request_rate_per_s", float("nan"))), "prod", now=NOW)

    assert values(baseline.read("prod")).keys() == {"ttft_s"}


def test_a_window_without_traffic_is_no_baseline(store: Path) -> None:
    with pytest.raises(AnswerError, match="no request finished"):
        baseline.save(Evidence(observations=(seen("request_rate_per_s", 0.0),)), "prod", now=NOW)

    assert not store.exists()


def test_a_name_lies_in_the_users_store(store: Path) -> None:
    path = baseline.save(healthy(), "prod", now=NOW)

    assert path == store / "prod.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_store_without_the_variable_is_under_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/x")

    assert baseline.path_of("prod") == Path("/home/x/.local/share/llmedic/baselines/prod.json")


@pytest.mark.parametrize("given_path", ["./prod", "a/prod", "prod.json"])
def test_a_slash_or_an_ending_makes_a_path(given_path: str) -> None:
    assert baseline.path_of(given_path) == Path(given_path)


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a b", "a\nb", "x" * 65])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(UsageError, match="is no name for a baseline"):
        baseline.path_of(name)


def test_a_baseline_is_not_overwritten_unless_asked() -> None:
    baseline.save(healthy(), "prod", now=NOW)
    with pytest.raises(UsageError, match="exists"):
        baseline.save(healthy(), "prod", now=NOW)

    baseline.save(healthy(seen("request_rate_per_s", 1.0)), "prod", now=NOW, overwrite=True)

    assert "request_rate_per_s" in values(baseline.read("prod"))


@pytest.mark.parametrize("name", ["requests_running", "kv_cache_usage_ratio"])
def test_levels_of_an_idle_engine_are_no_baseline(name: str) -> None:
    idle = Evidence(
        observations=(seen(name, Series(points=((0.0, 0.0), (1.0, 0.0)))), seen("output_tokens_per_s", 0.0))
    )

    with pytest.raises(AnswerError, match="no request finished"):
        baseline.save(idle, "prod", now=NOW)


def test_a_place_is_checked_before_anything_is_waited_for(store: Path) -> None:
    assert baseline.check_free("prod") == store / "prod.json"
    assert store.is_dir()

    baseline.save(healthy(), "prod", now=NOW)

    with pytest.raises(UsageError, match="exists"):
        baseline.check_free("prod")


def test_a_store_that_cannot_be_made_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))

    with pytest.raises(InputError, match="cannot be made: Not a directory") as caught:
        baseline.save(healthy(), "prod", now=NOW)
    assert "XDG_DATA_HOME" in caught.value.hint


def test_one_that_is_not_there_names_those_that_are() -> None:
    baseline.save(healthy(), "prod", now=NOW)

    with pytest.raises(InputError, match="no baseline 'prd'") as caught:
        baseline.read("prd")

    assert caught.value.hint == "stored are: prod"


def test_no_secret_is_stored(store: Path) -> None:
    path = baseline.save(healthy(), "prod", now=NOW)

    assert "CANARY" not in path.read_text()


def test_a_raw_reads_like_the_file() -> None:
    baseline.save(healthy(), "prod", now=NOW)

    raws = baseline.capture("prod")

    assert baseline.read([*raws, Raw(source="engine", kind="metrics")]) == baseline.read("prod")


def test_the_same_deployment_has_no_gap() -> None:
    baseline.save(healthy(), "prod", now=NOW)

    assert baseline.read("prod", DEPLOYMENT).gaps == ()


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (Deployment(engine="sglang"), "another engine: vllm, now sglang"),
        (Deployment(version="0.30.0"), "another version: 0.33.0, now 0.30.0"),
        (Deployment(model=ModelFacts(name="n")), "another model: m, now n"),
        (Deployment(hardware=HardwareFacts(accelerator="A100")), "another accelerator: H100, now A100"),
        (Deployment(hardware=HardwareFacts(count=4)), "another accelerator count: 2, now 4"),
        (Deployment(flags=(Flag(name="max_num_seqs", value=64.0),)), "another max_num_seqs: 256.0, now 64.0"),
    ],
)
def test_another_deployment_is_a_gap(other: Deployment, why: str) -> None:
    baseline.save(healthy(), "prod", now=NOW)

    evidence = baseline.read("prod", other)

    assert [gap.why for gap in evidence.gaps] == [f"it was taken with {why}"]
    assert values(evidence) == {"ttft_s": TTFT}


def test_what_is_not_known_does_not_differ() -> None:
    baseline.save(healthy(), "prod", now=NOW)

    assert baseline.read("prod", Deployment()).gaps == ()


def edited(**changes: object) -> bytes:
    plain = json.loads(baseline.save(healthy(), "edited", now=NOW, overwrite=True).read_text())
    return json.dumps({**plain, **changes}).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"extra": 1},
        {"schema": "llmedic.baseline/2"},
        {"kind": "dream"},
        {"window_s": "60"},
        {"fingerprint": {"engine": "vllm", "extra": 1}},
        {"observations": [{"name": "ttft_s", "unit": "s", "value": {"p42": 1}}]},
        {"observations": [{"name": "ttft_s", "unit": "ms", "value": 1}]},
        {"observations": [{"name": "no_such_word", "unit": "s", "value": 1}]},
    ],
)
def test_a_file_that_is_not_as_described_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        baseline.decode(edited(**changes), "x.json")

    assert caught.value.message.startswith("x.json: ")
    assert caught.value.exit_code == 2


@given(content=st.binary(max_size=200) | st.sampled_from([b"[" * 5000, b"null", b"{}", b'{"schema": 1}']))
def test_bytes_that_are_no_baseline_are_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        baseline.decode(content, "x.json")


def test_a_file_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    path.write_bytes(b" " * (baseline.MAX_BYTES + 1))

    with pytest.raises(InputError, match="too large"):
        baseline.read(path)


def test_every_name_is_in_the_vocabulary() -> None:
    assert set(baseline.NAMES) <= set(vocabulary.names())


def test_the_schema_is_the_one_that_is_published() -> None:
    published = json.loads(SCHEMA_FILE.read_text())

    described = {key: published[key] for key in ("$ref", "$defs")}
    assert described == msgspec.json.schema(baseline.Baseline)
