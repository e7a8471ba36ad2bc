"""Which nodes, in which order, and what it costs.

Unready nodes come first: restarting them takes nothing away and may well mend them. The active controller comes last,
so that the cluster changes it once and not with every node. The hash names the settings that the roll leads to, all of
them: it stays the same from the first restart to the last, and any later change of the resource makes another.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from kavka_operator.domain.observed import Survey, WantedNode
from kavka_operator.reconcile.rollout.check import at_risk
from kavka_operator.reconcile.rollout.diagnose import Diagnosis, Standing

AT_RISK_MAX = 100


@dataclass(frozen=True, slots=True)
class RollPlan:
    """The nodes that still have to be restarted, in order."""

    hash: str
    order: tuple[Diagnosis, ...]
    at_risk: tuple[str, ...] = ()


def plan(nodes: Sequence[WantedNode], diagnoses: Sequence[Diagnosis], survey: Survey | None) -> RollPlan:
    """The plan for the restarts that are left to do."""
    active = survey.quorum.leader if survey is not None else None
    to_do = [diagnosis for diagnosis in diagnoses if diagnosis.standing in {Standing.STALE, Standing.UNREADY}]
    order = sorted(
        to_do, key=lambda diagnosis: (diagnosis.standing is not Standing.UNREADY, diagnosis.id == active, diagnosis.id)
    )
    risks = at_risk([diagnosis.id for diagnosis in order], survey) if survey is not None else []
    return RollPlan(plan_hash(nodes), tuple(order), tuple(risks[:AT_RISK_MAX]))


def plan_hash(nodes: Sequence[WantedNode]) -> str:
    """The name of a roll, a hash of the wanted settings, so that an approval ends with a change of them."""
    text = " ".join(f"{node.id}:{node.fingerprint}" for node in sorted(nodes, key=lambda node: node.id))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
