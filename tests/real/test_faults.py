"""Every fault on a real vLLM, under real load, diagnosed by the command line: the first cause must be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Servers
from .diagnosis import SURE, Diagnosis, diagnose
from .engine import Engine
from .scenarios import SCENARIOS, Scenario
from .stage import staged

RUNNING = [scenario for scenario in SCENARIOS if scenario.starts]
LONG = frozenset({"shard-missing"})
"""Left to the full run: each start that fails takes a minute, and a damaged file is already among them."""
BROKEN = [scenario for scenario in SCENARIOS if not scenario.starts]

pytestmark = pytest.mark.real


def arguments(scenario: Scenario, engine: Engine) -> list[str]:
    window = f"{scenario.window_s:g}s"
    return [engine.url, "--log", str(engine.log), "--window", window, *scenario.options]


def assert_first(found: Diagnosis, scenario: Scenario) -> None:
    assert found.causes, found.text
    first, confidence = found.causes[0]
    assert first in scenario.expected, found.text
    assert confidence >= SURE, found.text


@pytest.mark.parametrize("scenario", RUNNING, ids=lambda scenario: scenario.name)
def test_a_running_server(scenario: Scenario, servers: Servers, tmp_path: Path) -> None:
    engine = servers.ready(scenario.server)
    options = arguments(scenario, engine)
    before: list[Diagnosis] = []

    def keep_baseline() -> None:
        if scenario.baseline:
            before.append(diagnose([*options, "--save-baseline", "earlier"], home=tmp_path))

    with staged(scenario, engine, look_back=keep_baseline):
        if scenario.baseline:
            options += ["--baseline", "earlier"]
        found = diagnose(options, home=tmp_path)

    assert [seen.first for seen in before] == ["healthy"] * scenario.baseline
    assert_first(found, scenario)
    assert found.exit_code == 0 or "healthy" not in scenario.expected, found.text


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(one, id=one.name, marks=[pytest.mark.long] if one.name in LONG else []) for one in BROKEN],
)
def test_a_server_that_does_not_start(scenario: Scenario, servers: Servers, tmp_path: Path) -> None:
    engine = servers.started(scenario.server)

    assert engine.wait_exit() != 0
    found = diagnose(arguments(scenario, engine), home=tmp_path)

    assert_first(found, scenario)
    assert found.health == "down", found.text
    assert found.exit_code == 1, found.text
