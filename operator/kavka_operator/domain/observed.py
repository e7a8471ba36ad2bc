"""What is seen of a cluster, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain.access_rules import Binding

BEHIND_MS_MAX = 2000  # Kafka's controller.quorum.fetch.timeout.ms: beyond it, a voter looks for another leader


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """A topic as the cluster describes it.

    `overrides` are settings of its own, `values` all that apply; `moving` are the partitions whose replicas are on
    their way to other brokers, with `replicas_to_come` that are not in sync yet. `offline_on` are the brokers with
    replicas of partitions that have no leader.
    """

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    overrides: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    under_replicated: int = 0
    offline: int = 0
    offline_on: tuple[int, ...] = ()
    records: int | None = None  # only asked for where a decision needs it
    assignment: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    moving: tuple[int, ...] = ()
    replicas_to_come: int = 0


@dataclass(frozen=True, slots=True)
class SeenBroker:
    """A broker that is a member of the cluster."""

    id: int
    address: str
    rack: str | None = None
    leaders: int = 0
    under_replicated: int = 0


@dataclass(frozen=True, slots=True)
class SeenPartition:
    """A partition and where its replicas are. `in_sync_min` is what acks=all asks for; `leader` is None without one.

    `elr` and `last_known_elr` are only asked for where the ISR is empty (KIP-966).
    """

    topic: str
    index: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    in_sync_min: int = 1
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.index

    @property
    def name(self) -> str:
        """The partition as messages name it: orders-7."""
        return f"{self.topic}-{self.index}"

    @property
    def preferred(self) -> int:
        """The replica that leads when all is well."""
        return self.replicas[0]

    @property
    def complete(self) -> tuple[int, ...]:
        """The replicas that the controller knows to have all committed records."""
        return self.isr or self.elr

    @property
    def heirs(self) -> tuple[int, ...]:
        """The replicas of which one leads next, by what the controller knows; empty where it knows none."""
        return self.complete or self.last_known_elr

    def counts_on(self, node: int) -> bool:
        """Whether records may be lost with the replica of this node: the controller vouches for no other."""
        return node in (self.heirs or self.replicas)


@dataclass(frozen=True, slots=True)
class SeenObserver:
    """A node that fetches the metadata log without a vote: a broker, or a controller that may get one."""

    id: int
    directory_id: str
    behind_ms: int | None  # None: never caught up
    lag: int = 0  # records

    @property
    def is_caught_up(self) -> bool:
        """Whether it has had all there was a moment ago."""
        return self.behind_ms is not None and self.behind_ms <= BEHIND_MS_MAX


@dataclass(frozen=True, slots=True)
class SeenQuorum:
    """The controllers: the active one, the voters, and how long ago each was caught up.

    `directories` are the ids of the directories that vote; a quorum whose voters stand in every configuration has none.
    """

    leader: int | None
    voters: tuple[int, ...]
    behind_ms: Mapping[int, int | None] = field(default_factory=dict)  # None: never
    directories: Mapping[int, str] = field(default_factory=dict)
    observers: tuple[SeenObserver, ...] = ()

    def is_caught_up(self, node: int) -> bool:
        """Whether a voter has caught up with the active controller, to within the half second between its fetches."""
        behind = self.behind_ms.get(node)
        return node == self.leader or (behind is not None and behind <= BEHIND_MS_MAX)

    def observer(self, node: int, directory_id: str) -> SeenObserver | None:
        """The node that observes with this directory, if it does."""
        key = (node, directory_id)
        return next((found for found in self.observers if (found.id, found.directory_id) == key), None)


@dataclass(frozen=True, slots=True)
class Survey:
    """Every partition of every topic, and the controllers: what a roll has to know before it takes a node away.

    `doubt` says why it may be out of date, if it may; nothing is taken away then. `moving` are the replicas that the
    partitions under way to other brokers will have.
    """

    partitions: tuple[SeenPartition, ...]
    quorum: SeenQuorum
    doubt: str = ""
    moving: Mapping[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SeenUsage:
    """Usage of one broker by the clients of an entity. `used` is 1.0 for a client at its limit."""

    broker: int
    producer_byte_rate: float
    consumer_byte_rate: float
    throttled_seconds: float  # in which at least one connection was held
    used: float
    producer_demand: float = 0.0  # bytes a second that clients would use if nothing held them
    consumer_demand: float = 0.0
    observed_seconds: float | None = None  # those for which an observed limit would have held clients


@dataclass(frozen=True, slots=True)
class Login:
    """A place where clients log in by a mechanism: Kafka's name of the kind of listener, and the addresses there."""

    protocol: str
    bootstrap: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeenAccess:
    """Access to a cluster, as it describes that.

    `rules` is None where no authorizer asks for any. `credentials` are the iterations of each user's passwords by
    mechanism. `logins` are the mechanisms that listeners offer; None where brokers do not tell. `takes_certificates`
    where a listener asks for them. `protected` are the users that no resource may touch.
    """

    rules: Mapping[str, frozenset[Binding]] | None = None
    credentials: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    logins: Mapping[str, Login] | None = None
    takes_certificates: bool = False
    protected: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SeenSecret:
    """The Secret of a user. `version` changes with the password, and tells nothing of it.

    `iterations` is how often the password is to be hashed, drawn with it; `made` when, `rotate` for which text of the
    resource. `is_ours` where the operator has made it, `is_current` where all that stands beside the password is as
    wanted. One that `outlives` its user has to be removed.
    """

    version: str
    iterations: int
    password: str = field(repr=False)
    made: datetime | None = None
    rotate: str | None = None
    is_ours: bool = True
    is_current: bool = True
    outlives: bool = False


@dataclass(frozen=True, slots=True)
class NoSecret:
    """There is no Secret to be used; `fault` says why, and is empty where one may be made."""

    reason: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class SeenCluster:
    """A cluster at one moment."""

    cluster_id: str
    controller: int | None
    brokers: Mapping[int, SeenBroker]
    topics: Mapping[str, SeenTopic] = field(default_factory=dict)
    quotas: Mapping[AnyEntity, Mapping[str, float]] = field(default_factory=dict)
    usage: Mapping[str, tuple[SeenUsage, ...]] = field(default_factory=dict)  # by the entity's description
    config: Mapping[str, str] = field(default_factory=dict)  # settings of all brokers that were altered while they run
    rates: Mapping[int, Mapping[str, str]] = field(default_factory=dict)  # of throttled replicas, by broker
    brokers_expected: int = 0  # how many the platform runs, whether they have joined or not
    is_forming: bool = False  # not all of its brokers have joined yet, ever
    is_external: bool = False  # not run by us: which of Kafka's settings act there is not known
    access: SeenAccess | None = None  # only asked for where there are users
    knows_users: bool = False  # a listener asks clients who they are

    @property
    def brokers_to_be(self) -> int:
        """The number of brokers that share a limit of the whole cluster, also those that are down."""
        return max(len(self.brokers), self.brokers_expected)


@dataclass(frozen=True, slots=True)
class SeenDisk:
    """The disk under a log directory, as its broker tells it: its bytes and those that are left, None where unknown."""

    path: str
    total: int | None = None
    usable: int | None = None
    is_online: bool = True

    @property
    def volume(self) -> str:
        """The name of the volume, which is that of its directory."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def percent(self) -> int | None:
        """The part of it that is used; 100 only with no byte left."""
        if not self.total or self.usable is None:
            return None
        return 100 * (self.total - self.usable) // self.total


NodeState = Literal["Running", "Starting", "Stopping", "Restarting", "Failed", "Stopped"]


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node as the platform sees it.

    `fingerprint` tells which settings it was started with, `changed` which of them are wanted otherwise now,
    `obstacles` what it says itself about why it does not serve. `lost` are the ids of directories that are gone, and
    that empty ones will take the place of at its next start; `going` are volumes that last until it stops, as someone
    has deleted them. One that `is_as_asked` was started with all that the resource asks for: what is wanted otherwise
    follows from the operator's version. One that is to be changed `is_in_place` takes all that is wanted otherwise
    without a restart; `resizing` says what a change of that kind waits for. `disks` are those of its log directories,
    as the broker tells them; `queued` names the clusters whose rolls its restart waits for. One that `has_begun` has
    run something since it was made: any other, as a pod without a machine, has nothing to lose by a restart.
    `life` names the pod with which its volumes end, and is empty where they outlive it; one that is `given_up` may lose
    what they hold. One that is `gated` waits to begin with empty volumes.
    """

    id: int
    state: NodeState
    fingerprint: str = ""
    restarts: int = 0
    message: str = ""
    changed: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    is_as_asked: bool = False
    going: tuple[str, ...] = ()
    is_in_place: bool = False
    resizing: str = ""
    disks: tuple[SeenDisk, ...] = ()
    queued: str = ""
    has_begun: bool = True
    life: str = ""
    is_given_up: bool = False
    is_gated: bool = False

    @property
    def is_alive(self) -> bool:
        """Whether there is a process that a restart would end."""
        return self.state in {"Running", "Starting"} and self.has_begun


@dataclass(frozen=True, slots=True)
class SeenVolume:
    """A log directory of a node as the platform sees it.

    `logs` are the names of what it holds, None where it cannot be read. One that `was_used` was formatted for the node
    at some time, and had this `directory_id`; one that `is_there` is so now. `grows_to` is the size that is wanted of
    it, where it is smaller and can grow.
    """

    name: str
    place: str
    logs: tuple[str, ...] | None = ()
    was_used: bool = True
    is_there: bool = True
    has_metadata: bool = False
    directory_id: str = ""
    grows_to: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the volume can go without a loss."""
        return self.logs == () and not self.has_metadata


@dataclass(frozen=True, slots=True)
class ControllerPlace:
    """The directory that a controller is to vote with, and where the other controllers find it."""

    directory_id: str
    host: str
    port: int
    listener: str = "CONTROLLER"


@dataclass(frozen=True, slots=True)
class WantedNode:
    """A node as the resource wants it.

    `controller` is None for a node that is none, and where voters stand in every configuration and never change. The
    `volumes` of a node that `is_ephemeral` end with its pod, and are not named.
    """

    id: int
    fingerprint: str
    rack: str | None = None
    roles: tuple[str, ...] = ("broker", "controller")
    volumes: tuple[str, ...] = ()
    pool: str = ""
    controller: ControllerPlace | None = None
    is_ephemeral: bool = False
