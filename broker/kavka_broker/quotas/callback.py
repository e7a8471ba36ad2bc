"""The interface of `client.quota.callback.class`, after Apache Kafka's ClientQuotaCallback (KIP-257).

A callback says with whom a client shares an allowance, and how large that is, in place of Kafka's eight levels. Write a
class with the methods that are needed, and name it as `module:Class`, or as an entry point of the group
`kavka.quota_callback`. docs/explanation/quota-callback.md has the rules and an example.

All methods are called in one thread of their own, one at a time, so they may wait and need no locks. Until a method has
answered, what it said before holds for a client, and Kafka's own rule where it has said nothing yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.quota.entity import Entity

__all__ = ["CONTROLLER_MUTATION", "FETCH", "PRODUCE", "REQUEST", "ClientQuotaCallback", "Cluster", "Entity"]

PRODUCE: Final = "produce"
FETCH: Final = "fetch"
REQUEST: Final = "request"
CONTROLLER_MUTATION: Final = "controller_mutation"
QUOTA_TYPES: Final = (PRODUCE, FETCH, REQUEST, CONTROLLER_MUTATION)

USER: Final = "user"
CLIENT_ID: Final = "client-id"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a callback may know of the cluster: for each topic the leader of each partition, -1 where there is none."""

    node_id: int  # the broker that asks
    brokers: tuple[int, ...] = ()  # those that are not fenced
    leaders: Mapping[str, tuple[int, ...]] | None = None


class ClientQuotaCallback:
    """The default of each method: one allowance for each user and client id, and no limit."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """Take the broker's properties as they stand in its file. What it raises stops the start."""

    def quota_metric_tags(self, quota_type: str, user: str, client_id: str) -> Mapping[str, str]:
        """Return the tags of the client's allowance: clients with the same tags share it. No tags: no quota."""
        del quota_type
        return {USER: user, CLIENT_ID: client_id}

    def quota_limit(self, quota_type: str, tags: Mapping[str, str]) -> float | None:
        """Return what clients with these tags have on this broker; None is no limit.

        It is bytes a second for `produce` and `fetch`, a percentage of the loop's time for `request`, and partitions
        created or deleted a second for `controller_mutation`, which the active controller asks for.
        """
        del quota_type, tags
        return None

    def update_quota(self, quota_type: str, entity: Entity, limit: float) -> None:
        """Take over a limit that was set in the metadata, or that stands there at the start."""

    def remove_quota(self, quota_type: str, entity: Entity) -> None:
        """Forget a limit that was taken out of the metadata."""

    def quota_reset_required(self, quota_type: str) -> bool:
        """Return whether tags or limits have changed for another reason than the metadata. Asked each second."""
        del quota_type
        return False

    def update_cluster_metadata(self, cluster: Cluster) -> bool:
        """Look at topics and leaders, at the start and after a change; return whether limits have changed by it."""
        del cluster
        return False

    def close(self) -> None:
        """Give back what the callback holds; the broker stops."""
