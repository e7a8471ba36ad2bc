"""Pauses reconciliation: while a resource or its KafkaCluster has the annotation, nothing is changed in Kafka for it.

The plan is still computed, so the status says what is held back. A deletion waits too. Nodes are not concerned: rolls
have `spec.rollout.hold`.
"""

from dataclasses import replace

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import Managed
from kavka_operator.domain.name_lists import some
from kavka_operator.domain.plan import KafkaPlan, Word, reconciling

PAUSE = "kavka.dev/pause"
NO = frozenset({"", "false"})


def is_paused(resource: Managed | KafkaCluster) -> bool:
    """Whether a resource has the annotation; one on a KafkaCluster is for all resources of it."""
    return resource.metadata.annotations.get(PAUSE, "") not in NO


def held_back(plan: KafkaPlan) -> KafkaPlan:
    """The plan of a paused resource: it does nothing, and says what it would do."""
    paused = Word("Paused", "True", "AskedFor", f"the annotation {PAUSE} holds back every change")
    if plan.words and not plan.actions:
        return replace(plan, words=(*plan.words, paused))
    waiting = some([str(action) for action in plan.actions] or ["the end of its deletion"])
    return replace(plan, actions=(), words=(*reconciling("Paused", f"paused by {PAUSE}; held back: {waiting}"), paused))
