"""Deletion of resources: what has to go in Kafka first, and how long it waits for a cluster that does not answer."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource, Managed
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.stored_resources import Unreadable
from kavka_operator.api.user import KafkaUser
from kavka_operator.domain.plan import Word

DELETION_SECONDS_MAX = 600.0
"""How long a deleted resource is held for a cluster that does not answer: its namespace cannot go before."""


def has_cluster(resources: Sequence[AnyResource], unreadable: Sequence[Unreadable]) -> bool:
    """Whether there is a KafkaCluster that is to stay, be it one that cannot be understood."""
    kind = KafkaCluster.kind_name
    clusters_here = [resource for resource in resources if resource.kind == kind]
    stays = any(cluster.metadata.deletion_timestamp is None for cluster in clusters_here)
    return stays or any(unread.key[0] == kind and not unread.is_deleted for unread in unreadable)


def outlives(resource: Managed) -> bool:
    """Whether something in Kafka has to go when the resource is deleted."""
    if isinstance(resource, ClientQuota):
        return True
    if isinstance(resource, KafkaUser):
        return resource.spec.deletion_policy == "Delete"
    return resource.spec.deletion_policy != "Retain" or resource.status.move is not None


def is_overdue(resource: Managed, now: datetime) -> bool:
    """Whether a resource was deleted so long ago that it goes, whatever stays of it in Kafka."""
    end = _end_of(resource)
    return end is not None and now >= end


def doubts(resource: Managed, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words for a resource whose cluster is silent, with how long a deletion waits for it, if it is deleted."""
    if (end := _end_of(resource)) is None:
        return words
    waits = f"its deletion waits for that until {end:%H:%M:%SZ}; what it has set stays in Kafka then"
    return tuple(replace(word, message=f"{word.message}; {waits}") for word in words)


def _end_of(resource: Managed) -> datetime | None:
    deleted = resource.metadata.deletion_timestamp
    return None if deleted is None else deleted + timedelta(seconds=DELETION_SECONDS_MAX)
