"""How well ticked symptoms fit a cause: a log-likelihood ratio against what people tick in any incident.

Naive Bayes over closed lists. Ticking is sparse (two or three of forty symptoms), so an id that was not ticked
says little, and ids are not independent, so the sum is damped.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import log

from llmedic.knowledge.profiles import Profile, Ticked
from llmedic.model.evidence import Symptoms

GRADES = {"mostly": 0.7, "often": 0.4, "sometimes": 0.15}
"""How often the id is ticked when the cause is at work."""
LEAK = {"seen": 0.3, "when": 0.7, "not_when": 0.5}
"""What a profile does not list is ticked this many times as often as in any incident. A symptom that a cause does not
bring is rare; a condition is often a mere side fact (several GPUs, a container, bfloat16)."""
DAMPING = 0.75
"""Ids go together (start-fails with at-start), so their sum counts for less than independent evidence would."""
PRIOR = {"common": 0.06, "usual": 0.03, "rare": 0.012}

BACKGROUND_SEEN = {
    "start-fails": 0.27, "ttft-high": 0.10, "tokens-slow": 0.09, "hangs": 0.07, "throughput-drops": 0.06,
    "out-of-memory": 0.10, "throughput-low": 0.08, "latency-high": 0.07, "queue-grows": 0.06, "cache-misses": 0.05,
    "crashes-at-runtime": 0.06, "gpu-idle": 0.05, "throughput-flat-with-load": 0.04,
}  # fmt: skip
"""Share of incidents in which the id is ticked, over public incident reports; `RARE` for the rest."""
BACKGROUND_WHEN = {
    "at-start": 0.28, "multi-gpu": 0.17, "under-load": 0.20, "with-tensor-parallel": 0.15, "in-kubernetes": 0.11,
    "behind-proxy": 0.10, "with-long-prompts": 0.12, "with-quantization": 0.09, "with-kv-quantization": 0.06,
    "more-concurrency": 0.08, "after-upgrade": 0.07, "with-prefix-caching": 0.05, "streaming": 0.05,
    "with-fp16": 0.05, "with-speculation": 0.05,
}  # fmt: skip
RARE = 0.03


def prior(profile: Profile) -> float:
    """How common the cause is among incidents, as a probability."""
    return PRIOR[profile.prior]


def log_likelihood_ratio(profile: Profile, symptoms: Symptoms) -> float:
    """Natural logarithm of P(ticked | cause) / P(ticked | any incident), damped; 0.0 when nothing was ticked."""
    if not symptoms:
        return 0.0
    total = (
        _sum(_chances(profile, "seen"), BACKGROUND_SEEN, symptoms.seen, LEAK["seen"])
        + _sum(_chances(profile, "when"), BACKGROUND_WHEN, symptoms.when, LEAK["when"])
        + _sum(_chances(profile, "not_when"), {}, symptoms.not_when, LEAK["not_when"])
    )
    return DAMPING * total


def chance(profile: Profile, kind: str, name: str) -> float:
    """P(the id is ticked | the cause), listed or not."""
    background = {"seen": BACKGROUND_SEEN, "when": BACKGROUND_WHEN}.get(kind, {}).get(name, RARE)
    return _chances(profile, kind).get(name, LEAK[kind] * background)


def _sum(chances: Mapping[str, float], background: Mapping[str, float], ticked: frozenset[str], leak: float) -> float:
    total = 0.0
    for name in ticked:
        usual = background.get(name, RARE)
        total += log(chances.get(name, leak * usual) / usual)
    for name, likely in chances.items():
        if name not in ticked:
            total += log((1 - likely) / (1 - background.get(name, RARE)))
    for name, usual in background.items():
        if name not in chances and name not in ticked:
            total += log((1 - leak * usual) / (1 - usual))
    return total


@cache
def _flat(grades: tuple[tuple[str, tuple[str, ...]], ...]) -> Mapping[str, float]:
    return {name: GRADES[grade] for grade, names in grades for name in names}


def _chances(profile: Profile, kind: str) -> Mapping[str, float]:
    grades: Ticked = getattr(profile, kind)
    return _flat(tuple((str(grade), names) for grade, names in grades.items()))
