"""One sick replica must not vanish in the sum: where the service as a whole shows nothing, each replica is asked."""

from __future__ import annotations

from dataclasses import replace

from llmedic.model.evidence import Evidence
from llmedic.model.finding import Fact
from llmedic.model.verdict import SURE, Verdict


def names(evidence: Evidence) -> tuple[str, ...]:
    """The replicas that were seen apart, without their data-parallel engines; empty where there is only one."""
    found = {one.instance.partition("#")[0] for one in evidence.observations if one.instance}
    return tuple(sorted(found - {""})) if len(found - {""}) >= 2 else ()


def alone(evidence: Evidence, replica: str) -> Evidence:
    """The evidence as if this replica were the whole service; what is not any replica's own stays."""
    own = {one.name for one in evidence.observations if one.instance == replica}
    kept = []
    for one in evidence.observations:
        if one.instance == replica:
            kept.append(replace(one, instance=""))
        elif one.instance.startswith(f"{replica}#") or (not one.instance and one.name not in own):
            kept.append(one)
    return replace(evidence, observations=tuple(kept))


def is_decided(verdict: Verdict) -> bool:
    """Whether a cause was named with enough confidence to act on."""
    return any(cause.layer != "none" and cause.confidence >= SURE for cause in verdict.causes)


def told(service: Verdict, one: Verdict, replica: str) -> Verdict:
    """The service's verdict with the causes of one replica, which is named as the first evidence."""
    where = Fact(name="replica", value=replica, source="targets")
    causes = tuple(replace(cause, evidence=(where, *cause.evidence)) for cause in one.causes)
    return replace(service, causes=causes, health="degraded", layers=one.layers, binding=one.binding)
