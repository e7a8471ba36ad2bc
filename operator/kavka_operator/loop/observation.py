"""Holds the facts of a cluster that a reconciliation pass begins with, before Kafka is asked for topics and quotas."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import Key, Managed
from kavka_operator.domain.observed import SeenAccess, SeenCluster, SeenUsage
from kavka_operator.domain.plan import Word
from kavka_operator.reconcile.grants import refusals
from kavka_operator.reconcile.pause import is_paused
from kavka_operator.reconcile.users import declared_access

Usage = Mapping[str, tuple[SeenUsage, ...]]
"""The usage of quotas by entity, from the metrics pages of brokers."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The resources of a cluster and the facts about it that hold for one reconciliation pass.

    `brokers_expected` is how many brokers there will be once all have joined; `is_forming` is true until all had joined
    for the first time. `claimed` are topics that unreadable resources name; `refused` are resources that may do nothing
    here, and with `paused` no resource may. `is_external` is true of a cluster that others run, `knows_users` of one
    that asks clients who they are. `cluster_id` is the id that the cluster has to have; None where any is right.
    `declared` is what the KafkaCluster tells of access.
    """

    resources: Sequence[Managed]
    now: datetime
    usage: Usage = field(default_factory=dict)
    brokers_expected: int = 0
    is_forming: bool = False
    claimed: Collection[str] = ()
    refused: Mapping[Key, tuple[Word, ...]] = field(default_factory=dict)
    is_external: bool = False
    knows_users: bool = False
    cluster_id: str | None = None
    declared: SeenAccess = field(default_factory=SeenAccess)
    paused: bool = False

    def completed(self, seen: SeenCluster, usage: Usage) -> SeenCluster:
        """The cluster that brokers describe, with the facts that they cannot tell."""
        return replace(
            seen,
            brokers_expected=self.brokers_expected,
            is_forming=self.is_forming,
            is_external=self.is_external,
            knows_users=self.knows_users,
            usage=usage,
        )


def observe(
    cluster: KafkaCluster | None,
    resources: Sequence[Managed],
    now: datetime,
    *,
    brokers_expected: int = 0,
    claimed: Collection[str] = (),
) -> Observation:
    """Derive the facts of a pass from the KafkaCluster, if there is one, and from its resources."""
    if cluster is None:
        return Observation(resources, now, brokers_expected=brokers_expected, claimed=claimed)
    return Observation(
        resources,
        now,
        brokers_expected=brokers_expected,
        claimed=claimed,
        refused=refusals(cluster, resources),
        is_external=cluster.spec.external is not None,
        knows_users=cluster.spec.asks_who,
        declared=declared_access(cluster),
        paused=is_paused(cluster),
    )
