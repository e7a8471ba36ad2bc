"""What is seen of a `KafkaCluster`."""

import json
from hashlib import sha256
from typing import Annotated, Literal, Self

from pydantic import Field

from kavka_operator.api.audit import AnalyticsStatus
from kavka_operator.api.model import ListOf, Model
from kavka_operator.api.pools import FIXED_LIST, NODE_IDS_PER_POOL, POOLS_MAX, VOLUMES_MAX, Role
from kavka_operator.api.resource import NAME_LENGTH_MAX, Moment, Status
from kavka_operator.api.security import Protocol

BROKERS_MAX = POOLS_MAX * NODE_IDS_PER_POOL
POOL_NAMES_MAX = 4 * POOLS_MAX
UNMANAGED_MAX = 100
LISTENERS_MAX = 8
BOOTSTRAP_LENGTH_MAX = 4096
LISTENER_LENGTH_MAX = 65536
CHECKSUM_LENGTH = 16


class VolumeStatus(Model):
    """The seen state of one log directory of a node."""

    name: str = Field(max_length=NAME_LENGTH_MAX, description="The name of the volume.")
    size: int | None = Field(default=None, ge=0, description="The bytes that its file system has.")
    used: str | None = Field(
        default=None, max_length=4, description="How full its file system is, to a few percent; none while offline."
    )


class NodeStatus(Model):
    """The seen state of one node."""

    id: int = Field(ge=0, description="The node's id.")
    rack: str | None = Field(default=None, max_length=63, description="Its rack.")
    roles: ListOf[Role] = Field(default=(), max_length=2, description="What it is.")
    state: Literal["Running", "Starting", "Stopping", "Restarting", "Failed", "Stopped"] = Field(
        description="What it does."
    )
    address: str | None = Field(default=None, max_length=300, description="Where clients reach it.")
    leaders: int | None = Field(default=None, ge=0, description="Partitions that it leads.")
    under_replicated: int | None = Field(
        default=None, ge=0, description="Partitions that it leads with fewer replicas in sync than they have."
    )
    restarts: int | None = Field(default=None, ge=0, description="How often it died and was started again.")
    volumes: ListOf[VolumeStatus] = Field(
        default=(),
        max_length=VOLUMES_MAX,
        description="How full its volumes are, as the broker tells it.",
    )
    cordoned: bool | None = Field(
        default=None,
        description="Whether it is asked to take no new replicas, as it goes (KIP-1066). Left out: it is not.",
    )
    directory: str | None = Field(default=None, max_length=4096, description="Its log directory. Local platform only.")


class RolloutStatus(Model):
    """The progress of a restart of the nodes.

    It is the memory of a roll, and anybody with a right on the status may write there: one is gone on with only as it
    was `signed`. That is no secret, and holds off a slip of the hand, not somebody who computes it.
    """

    plan: str | None = Field(default=None, max_length=64, description="The hash of the plan, to approve it by.")
    progress: str | None = Field(default=None, max_length=16, description="Nodes restarted, of nodes to restart: 2/3.")
    done: int = Field(default=0, ge=0, description="Nodes restarted.")
    total: int = Field(default=0, ge=0, description="Nodes to restart.")
    current: ListOf[int] = Field(
        default=(),
        max_length=NODE_IDS_PER_POOL,
        description="The nodes that are on their way down or up.",
        json_schema_extra=FIXED_LIST,
    )
    blocked_by: ListOf[str] = Field(default=(), max_length=16, description="What it waits for.")
    blocked_since: Moment | None = Field(default=None, description="Since when it waits.")
    resume_time: Moment | None = Field(
        default=None, description="When spec.rollout.delaySeconds after the last node are over."
    )
    at_risk: ListOf[str] = Field(
        default=(),
        max_length=100,
        description="Partitions that will be unavailable meanwhile, a line a topic.",
    )
    checksum: str | None = Field(
        default=None,
        max_length=CHECKSUM_LENGTH,
        description="The checksum of the rest: a rollout that was written by hand is not gone on with.",
    )

    def signed(self) -> Self:
        """The same with its checksum."""
        return self.replaced({"checksum": self._sum()})

    @property
    def is_signed(self) -> bool:
        """Whether it stands as it was signed."""
        return self.checksum == self._sum()

    def _sum(self) -> str:
        rest = {key: value for key, value in self.to_dict().items() if key != "checksum"}
        return sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:CHECKSUM_LENGTH]


class LastRolloutStatus(Model):
    """The restart of nodes that was last done."""

    plan: str | None = Field(default=None, max_length=64, description="The hash of its plan.")
    nodes: int = Field(default=0, ge=0, description="How many nodes it restarted.")
    end_time: Moment | None = Field(default=None, description="When the last of them was found back.")


class PoolStatus(Model):
    """The ids that the nodes of a pool have."""

    name: str = Field(max_length=NAME_LENGTH_MAX, description="The name of the pool.")
    first_node_id: int = Field(ge=0, description="The id of its first node; the others count up.")


class ListenerStatus(Model):
    """The addresses with which clients outside begin."""

    name: str = Field(max_length=32, description="The name of the listener.")
    bootstrap_servers: str = Field(
        max_length=LISTENER_LENGTH_MAX, description="Where they begin: HOST:PORT, the brokers' or one."
    )
    protocol: Protocol | None = Field(default=None, description="How they talk there. Left out: PLAINTEXT.")


class CertificatesStatus(Model):
    """The ends of the certificates of a secured cluster."""

    authority_end_time: Moment = Field(description="When the authority that signs ends; another follows before.")
    first_end_time: Moment | None = Field(
        default=None, description="When the first of the certificates that it has signed ends; another follows before."
    )


class KafkaClusterStatus(Status):
    """The seen state of a cluster."""

    bootstrap_servers: str | None = Field(
        default=None, max_length=BOOTSTRAP_LENGTH_MAX, description="Where clients begin."
    )
    listeners: ListOf[ListenerStatus] = Field(
        default=(),
        max_length=LISTENERS_MAX,
        description="Where clients outside begin, by the listeners that have a service; of a secured cluster where all"
        " clients begin.",
    )
    certificates: CertificatesStatus | None = Field(
        default=None, description="The certificates of a secured cluster, which are renewed without a restart."
    )
    cluster_id: str | None = Field(default=None, max_length=64, description="Kafka's id of the cluster.")
    active_controller: int | None = Field(default=None, ge=0, description="The node that decides.")
    brokers: int | None = Field(default=None, ge=0, description="How many nodes are brokers.")
    ready_brokers: int | None = Field(default=None, ge=0, description="How many of the brokers answer.")
    pools: ListOf[PoolStatus] = Field(
        default=(),
        max_length=POOL_NAMES_MAX,
        description="The ids of each pool's nodes, drawn once. A pool that was taken out and comes back has the same.",
    )
    nodes: ListOf[NodeStatus] = Field(
        default=(),
        max_length=BROKERS_MAX,
        description="The nodes, brokers and controllers, a line each.",
    )
    rollout: RolloutStatus | None = Field(default=None, description="The restart of the nodes that is under way.")
    last_rollout: LastRolloutStatus | None = Field(
        default=None, description="The restart of the nodes that was last done."
    )
    managed_config: ListOf[str] = Field(
        default=(),
        max_length=256,
        description="Settings that this resource has altered while the brokers run, so that one taken out of it goes"
        " back to its default.",
    )
    empty_volumes: ListOf[Annotated[str, Field(max_length=2 * NAME_LENGTH_MAX + 1)]] = Field(
        default=(),
        max_length=POOLS_MAX * VOLUMES_MAX,
        description="Volumes, as POOL/VOLUME, that hold nothing on any node; those may be taken out of the spec.",
        json_schema_extra=FIXED_LIST,
    )
    analytics: AnalyticsStatus | None = Field(
        default=None, description="The newest run of spec.audit.analytics, where there is one."
    )
    unmanaged_quotas: ListOf[str] = Field(
        default=(),
        max_length=UNMANAGED_MAX,
        description="Quotas in Kafka that no ClientQuota declares. They are left alone.",
    )

    @property
    def roll(self) -> RolloutStatus | None:
        """The rollout, where the operator has written it so."""
        return self.rollout if self.rollout is not None and self.rollout.is_signed else None

    @property
    def first_ids(self) -> dict[str, int]:
        """The first id of each pool's nodes, by the pool's name."""
        return {pool.name: pool.first_node_id for pool in self.pools}
