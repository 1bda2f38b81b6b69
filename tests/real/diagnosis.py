"""Runs `llmedic` as a user does: a process of its own, its exit code, its JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 120.0
SURE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The verdict's health and causes (id and confidence, best first), and how the process ended."""

    health: str
    causes: tuple[tuple[str, float], ...]
    exit_code: int
    text: str

    @property
    def first(self) -> str:
        """The first cause that counts as an answer; empty when the tool abstains."""
        return self.causes[0][0] if self.causes and self.causes[0][1] >= SURE else ""


def diagnose(arguments: Sequence[str], *, home: Path) -> Diagnosis:
    """Runs `llmedic diagnose … --format json`; stored baselines live under home."""
    ended = run(["diagnose", *arguments, "--format", "json"], home=home)
    if ended.returncode not in (0, 1, 3) or not ended.stdout.strip():
        raise AssertionError(f"exit code {ended.returncode}\n{ended.stderr}")
    verdict = json.loads(ended.stdout)
    causes = tuple((cause["id"], cause["confidence"]) for cause in verdict["causes"])
    return Diagnosis(health=verdict["health"], causes=causes, exit_code=ended.returncode, text=ended.stdout)


def run(arguments: Sequence[str], *, home: Path) -> subprocess.CompletedProcess[str]:
    """Runs `llmedic` with its data directory under home; never raises for its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "llmedic", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, "XDG_DATA_HOME": str(home), "NO_COLOR": "1"},
    )
