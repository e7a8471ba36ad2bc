"""What is seen of a cluster, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kavka_operator.quota.entities import AnyEntity


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """A topic as the cluster describes it. `overrides` are settings of its own, `values` all that apply."""

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    overrides: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    under_replicated: int = 0
    offline: int = 0
    records: int | None = None  # only asked for where a decision needs it


@dataclass(frozen=True, slots=True)
class SeenBroker:
    """A broker that is a member of the cluster."""

    id: int
    address: str
    rack: str | None = None
    leaders: int = 0
    under_replicated: int = 0


@dataclass(frozen=True, slots=True)
class SeenUsage:
    """What the clients of one entity use of one broker. `used` is 1.0 for a client that is at its limit."""

    broker: int
    producer_byte_rate: float
    consumer_byte_rate: float
    throttled_seconds: float
    used: float


@dataclass(frozen=True, slots=True)
class SeenCluster:
    """A cluster at one moment."""

    cluster_id: str
    controller: int | None
    brokers: Mapping[int, SeenBroker]
    topics: Mapping[str, SeenTopic] = field(default_factory=dict)
    quotas: Mapping[AnyEntity, Mapping[str, float]] = field(default_factory=dict)
    usage: Mapping[str, tuple[SeenUsage, ...]] = field(default_factory=dict)  # by the entity's description


NodeState = Literal["Running", "Starting", "Restarting", "Failed", "Stopped"]


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node as the platform sees it. `fingerprint` tells which settings it was started with."""

    id: int
    state: NodeState
    fingerprint: str = ""
    restarts: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class WantedNode:
    """A node as the resource wants it."""

    id: int
    fingerprint: str
    rack: str | None = None
    roles: tuple[str, ...] = ("broker", "controller")
