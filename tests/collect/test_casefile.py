"""Case files: taken apart for the sources that can read them, refused with one clear line when they are wrong."""

from __future__ import annotations

import contextlib
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from llmedic.collect import casefile
from llmedic.errors import InputError
from llmedic.model.evidence import Symptoms
from llmedic.model.observation import Change, Quantiles, Series

CASE = b"""
id: '7'
title: never read
report: never read
engine: {name: "llama.cpp server", version: b4621}
hardware: {accelerator: L4, count: 2, memory_gib: 24}
model: {name: a/b, config: {rope_scaling: {factor: 4.0}}}
launch: {args: [--parallel, 6, --api-key, s3cret], env: {VLLM_PORT: "tcp://x"}}
observations:
  requests_waiting: 3
  ttft_s: {p50: 0.1, p99: 2}
  prompt_tokens_mean: {before: 300, after: {mean: 5000, p99: 9000}}
  kv_cache_usage_ratio: [[0, 0.5], [10, 0.9]]
log: |
  first line
gpu: "ACSCtl: ReqRedir+"
kubernetes:
- {kind: Pod, spec: {containers: [{readinessProbe: null, resources: {limits: {cpu: 6}}}]}}
bench:
- {label: one, ttft_s: 1.5}
symptoms: {seen: [ttft-high], when: [under-load], not_when: [direct-to-engine]}
expect: {cause: never read}
"""


def test_log_and_command_line_go_to_the_sources_that_read_them() -> None:
    raws = {(raw.source, raw.target): raw for raw in casefile.capture("c.yaml", CASE)}

    assert set(raws) == {("case", "c.yaml"), ("flags", "c.yaml"), ("logs", "log"), ("logs", "gpu")}
    assert json.loads(raws["flags", "c.yaml"].body) == ["--parallel", "6", "--api-key", "s3cret"]
    assert raws["flags", "c.yaml"].meta == {"engine": "llama.cpp", "origin": "case"}
    assert raws["logs", "log"].body == b"first line\n"


def test_every_form_of_value_is_read() -> None:
    evidence = casefile.read(casefile.capture("c.yaml", CASE)[0])

    values = {observation.name: observation.value for observation in evidence.observations}
    assert values == {
        "requests_waiting": 3.0,
        "ttft_s": Quantiles(p50=0.1, p99=2.0),
        "prompt_tokens_mean": Change(before=300.0, after=Quantiles(mean=5000.0, p99=9000.0)),
        "kv_cache_usage_ratio": Series(points=((0.0, 0.5), (10.0, 0.9))),
    }
    assert {observation.source for observation in evidence.observations} == {"case"}


def test_facts_symptoms_rows_and_objects_are_read() -> None:
    evidence = casefile.read(casefile.capture("c.yaml", CASE)[0])

    assert evidence.deployment.engine == "llama.cpp"
    assert evidence.deployment.hardware.count == 2
    assert evidence.deployment.environment == {"VLLM_PORT": "tcp://x"}
    assert evidence.symptoms == Symptoms(
        seen=frozenset({"ttft-high"}), when=frozenset({"under-load"}), not_when=frozenset({"direct-to-engine"})
    )
    assert [(row.label, dict(row.values)) for row in evidence.bench] == [("one", {"ttft_s": 1.5})]
    leaves = {leaf.path: leaf.value for leaf in evidence.kubernetes}
    assert leaves["spec.containers.readinessProbe"] is None
    assert leaves["spec.containers.resources.limits.cpu"] == 6.0


@pytest.mark.parametrize(
    ("typed", "engine"),
    [
        ("vllm (ROCm)", "vllm"),
        ("ollama (llama.cpp)", "llama.cpp"),
        ("vLLM behind a proxy", "vllm"),
        ("Text-Generation-Inference", "tgi"),
        ("llamacpp", "llama.cpp"),
        ("trtllm", ""),
        (None, ""),
    ],
)
def test_a_typed_engine_name_is_understood(typed: str | None, engine: str) -> None:
    assert casefile.engine_name(typed) == engine


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"engine: [", "not a YAML case file"),
        (b"- a list", "is a mapping"),
        (b"colour: red", "unknown keys: colour"),
        (b"observations: {made_up: 1}", "unknown observation 'made_up'"),
        (b"observations: {ttft_s: {p50: fast}}", "ttft_s has no value"),
        (b"observations: {ttft_s: true}", "ttft_s has no value"),
        (b"observations: {ttft_s: .nan}", "ttft_s has no value"),
        (b"observations: {ttft_s: .inf}", "ttft_s has no value"),
        (b"observations: {ttft_s: 1" + b"0" * 400 + b"}", "ttft_s has no value"),
        (b"observations: {ttft_s: [[1, 2], 3]}", "ttft_s has no value"),
        (b"symptoms: {seen: [under-load]}", "unknown id 'under-load'"),
        (b"symptoms: {felt: [x]}", "unknown keys in symptoms: felt"),
        (b"hardware: {colour: red}", "unknown keys in hardware: colour"),
        (b"launch: {args: '--a b'}", "launch.args is a list"),
        (b"bench: {label: x}", "bench is a list"),
        (b"launch: {arguments: [a]}", "unknown keys in launch: arguments"),
        (b"engine: {name: vllm, verison: 1}", "unknown keys in engine: verison"),
        (b"model: {names: [a]}", "unknown keys in model: names"),
        (b"engine: {version: [1]}", "engine.version is text"),
        (b"launch: {env: {A: {b: c}}}", "launch.env.A is text"),
        (b"log: [one, two]", "log is text"),
        (b"hardware: {accelerator: [H100]}", "hardware.accelerator is text"),
        (b"bench: [{label: {a: b}}]", "label of a bench row is text"),
        (b"engine: {name: vllm}\nengine: {name: sglang}", "'engine' is given twice, in line 2"),
        (b"observations: {requests_waiting: 1, requests_waiting: 2}", "'requests_waiting' is given twice"),
        (b"kubernetes: &a [*a]", "contains itself"),
        (b"\xff\xfe\x00", "not a YAML case file"),
    ],
)
def test_a_wrong_file_is_refused_with_one_line_and_a_hint(body: bytes, complaint: str) -> None:
    with pytest.raises(InputError) as refused:
        casefile.capture("c.yaml", body)

    assert complaint in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.hint


def test_a_fact_that_is_no_finite_number_is_not_known() -> None:
    body = b"hardware: {count: .inf, memory_gib: .nan}"

    evidence = casefile.read(casefile.capture("c.yaml", body)[0])

    assert evidence.deployment.hardware.count is None
    assert evidence.deployment.hardware.memory_gib is None


def test_a_value_typed_as_yaml_is_the_json_that_the_engine_takes() -> None:
    body = b"launch: {args: [--rope-scaling, {factor: 4.0}, --port, 8000, --x, null]}"

    words = casefile.capture("c.yaml", body)[1].body

    assert json.loads(words) == ["--rope-scaling", '{"factor": 4.0}', "--port", "8000", "--x", "None"]


@pytest.mark.parametrize("key", ["log", "gpu", "engine", "bench", "source"])
def test_a_few_lines_that_unfold_to_gigabytes_are_refused(key: str) -> None:
    levels = "".join(f"- &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 12))

    with pytest.raises(InputError, match="more than 32 MiB"):
        casefile.capture("c.yaml", f"report:\n- &l0 [lol, lol]\n{levels}{key}: *l11\n".encode())


def test_a_tree_that_explodes_is_refused() -> None:
    levels = "\n".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 6))
    bomb = "kubernetes:\n- kind: Pod\n  l0: &l0 x\n" + "\n".join("  " + line for line in levels.splitlines())

    with pytest.raises(InputError, match="too many"):
        casefile.capture("c.yaml", bomb.encode())


def test_a_large_file_is_refused() -> None:
    with pytest.raises(InputError, match="larger than"):
        casefile.capture("c.yaml", b"#" * (casefile.MAX_BYTES + 1))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


@given(st.dictionaries(st.sampled_from(sorted(casefile.KEYS)), TREES, max_size=4))
def test_any_tree_is_read_or_refused_never_a_traceback(case: dict[str, object]) -> None:
    with contextlib.suppress(InputError):
        casefile.capture("c.yaml", yaml.safe_dump(case).encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(InputError):
        casefile.capture("c.yaml", body)
