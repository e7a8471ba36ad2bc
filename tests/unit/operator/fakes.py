"""A Kafka in memory that takes the operator's actions, and resources from a few words."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from kavka_operator.api.audit import AnalyticsStatus
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import NodeStatus
from kavka_operator.api.kinds import AnyResource, Key, key_of
from kavka_operator.api.quota import AnyEntity, ClientQuota
from kavka_operator.api.stored_resources import Unreadable, resource_from
from kavka_operator.api.topic import Topic
from kavka_operator.api.user import KafkaUser
from kavka_operator.domain.access_rules import Binding
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.observed import (
    Login,
    NodeState,
    NoSecret,
    SeenAccess,
    SeenBroker,
    SeenCluster,
    SeenDisk,
    SeenNode,
    SeenPartition,
    SeenQuorum,
    SeenTopic,
    Survey,
    WantedNode,
)
from kavka_operator.domain.plan import (
    AddPartitions,
    AddVoter,
    AlterBrokers,
    AlterQuota,
    AlterTopic,
    CordonNode,
    CreateAcls,
    CreateTopic,
    DeleteAcls,
    DeleteTopic,
    DropCredential,
    ElectLeaders,
    KafkaAction,
    LimitBrokers,
    LimitReplicas,
    MoveReplicas,
    NodeAction,
    RemoveVoter,
    SetCredential,
    StopNode,
    TopicAction,
    UserAction,
)
from kavka_operator.kafka.admin import AdminError
from kavka_operator.loop.interfaces import NotWrittenError, PlatformUnavailableError
from kavka_operator.loop.passwords import Place, Stored, Written, place_of
from kavka_operator.platform.nodes import nodes_of
from kavka_operator.reconcile.reassignments import LISTS, RATES
from kavka_operator.reconcile.status import Status

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DEFAULTS = {"retention.ms": "604800000", "retention.bytes": "-1", "cleanup.policy": "delete"}


class FakeKafka:
    """What a cluster does with actions; `writes` are those carried out, `checked` those only asked about."""

    def __init__(self, brokers: int = 1) -> None:
        self.brokers = {number: SeenBroker(number, f"127.0.0.1:{9092 + number}") for number in range(brokers)}
        self.topics: dict[str, SeenTopic] = {}
        self.quotas: dict[AnyEntity, dict[str, float]] = {}
        self.config: dict[str, str] = {}
        self.rate_of: dict[int, dict[str, str]] = {}
        self.disk_of: dict[int, tuple[SeenDisk, ...]] = {}
        self.held: dict[str, int] = {}
        self.writes: list[KafkaAction] = []
        self.checked: list[KafkaAction] = []
        self.refuse: AdminError | None = None
        self.partitions: tuple[SeenPartition, ...] = ()
        self.is_slow = False  # a reassignment is on its way until its partitions `arrive`
        self.rules: dict[str, frozenset[Binding]] | None = {}
        self.passwords: dict[tuple[str, str], tuple[int, str]] = {}  # by user and mechanism
        self.logins: dict[str, Login] | None = {}
        self.takes_certificates = False
        self.protected = frozenset({"admin"})
        self.refuse_access: AdminError | None = None
        self.away: AdminError | None = None  # while nobody answers
        self.untold: AdminError | None = None  # while the controllers are not told of
        self.seen: SeenCluster | None = None  # what brokers show that have not heard of the newest yet
        self.requests = 0  # that write
        self._ids = count(1)

    def access(self, brokers: Iterable[int]) -> SeenAccess:
        if self.refuse_access is not None:
            raise self.refuse_access
        credentials: dict[str, dict[str, int]] = {}
        for (user, mechanism), (iterations, _) in self.passwords.items():
            credentials.setdefault(user, {})[mechanism] = iterations
        rules = None if self.rules is None else dict(self.rules)
        return SeenAccess(rules, credentials, self.logins, self.takes_certificates, self.protected)

    def look(self, topics: Iterable[str]) -> SeenCluster:
        if self.away is not None:
            raise self.away
        if self.seen is not None:
            return self.seen
        found = {name: self.topics[name] for name in topics if name in self.topics}
        quotas = {entity: dict(values) for entity, values in self.quotas.items()}
        return SeenCluster("a-cluster", 0, self.brokers, found, quotas, config=dict(self.config))

    def survey(self) -> Survey:
        if self.untold is not None:
            raise self.untold
        return Survey(self.partitions, SeenQuorum(0, (0,)))

    def records(self, topic: str) -> int:
        return self.held.get(topic, 0)

    def rates(self, brokers: Iterable[int]) -> Mapping[int, Mapping[str, str]]:
        return {broker: dict(self.rate_of.get(broker, {})) for broker in brokers}

    def disks(self, brokers: Iterable[int]) -> Mapping[int, tuple[SeenDisk, ...]]:
        return {broker: self.disk_of[broker] for broker in brokers if broker in self.disk_of}

    def close(self) -> None:
        pass

    def perform(self, action: KafkaAction) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.writes.append(action)
        match action:
            case AlterQuota():
                values = {k: v for k, v in self.quotas.get(action.entity, {}).items() if k not in action.remove}
                self.quotas[action.entity] = {**values, **action.set}
                if not self.quotas[action.entity]:
                    del self.quotas[action.entity]
            case AlterBrokers():
                self.config = {k: v for k, v in self.config.items() if k not in action.reset} | dict(action.set)
            case ElectLeaders() | AddVoter() | RemoveVoter() | CordonNode():
                pass
            case SetCredential() | DropCredential() | CreateAcls() | DeleteAcls():
                self._perform_on_user(action)
            case LimitBrokers(brokers, rate):
                self.rate_of |= {broker: dict.fromkeys(RATES, str(rate)) if rate else {} for broker in brokers}
            case _:
                self._perform_on_topic(action)

    def _perform_on_user(self, action: UserAction) -> None:
        match action:
            case SetCredential(user, mechanism, iterations, password):
                self.passwords[user, mechanism] = iterations, password
            case DropCredential(user, mechanism):
                self.passwords.pop((user, mechanism), None)
            case CreateAcls(principal, rules):
                assert self.rules is not None, "without an authorizer no rule is kept"
                self.rules[principal] = self.rules.get(principal, frozenset()) | set(rules)
            case DeleteAcls(principal, rules):
                assert self.rules is not None, "without an authorizer no rule is kept"
                self.rules[principal] = self.rules.get(principal, frozenset()) - set(rules)

    def check(self, action: KafkaAction) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.checked.append(action)

    def perform_many(self, actions: Sequence[KafkaAction]) -> list[AdminError | None]:
        self.requests += 1
        return [self._perform_one(action) for action in actions]

    def _perform_one(self, action: KafkaAction) -> AdminError | None:
        try:
            self.perform(action)
        except AdminError as error:
            return error
        return None

    def _perform_on_topic(self, action: TopicAction) -> None:
        match action:
            case CreateTopic():
                self.make(action.name, action.partitions or 1, action.replication_factor or 1, action.config)
            case AddPartitions():
                self._place(action.name, action.total, self.topics[action.name].replication_factor)
            case MoveReplicas():
                self._move(action)
            case LimitReplicas():
                kept = {k: v for k, v in self.topics[action.name].overrides.items() if k not in LISTS}
                self._configure(action.name, {**kept, **action.lists})
            case AlterTopic():
                kept = {k: v for k, v in self.topics[action.name].overrides.items() if k not in action.reset}
                self._configure(action.name, {**kept, **action.set})
            case DeleteTopic():
                assert self.topics[action.name].topic_id == action.topic_id
                del self.topics[action.name]

    def _move(self, action: MoveReplicas) -> None:
        assignment = {**self.topics[action.name].assignment, **action.replicas}
        moving = tuple(action.replicas) if self.is_slow else ()
        changed = {"assignment": assignment, "moving": moving, "replicas_to_come": len(moving)}
        self._replace(action.name, replication_factor=action.replication_factor, **changed)

    def arrive(self, name: str, *indexes: int) -> None:
        """Let partitions of a topic have their new replicas, where moving is slow."""
        moving = tuple(index for index in self.topics[name].moving if index not in indexes)
        self._replace(name, moving=moving, replicas_to_come=len(moving))

    def make(
        self, name: str, partitions: int = 1, replicas: int = 1, config: Mapping[str, str] | None = None
    ) -> SeenTopic:
        """A topic, as if somebody had created it."""
        self.topics[name] = SeenTopic(name, f"id-{next(self._ids)}", partitions, replicas)
        self._place(name, partitions, replicas)
        self._configure(name, config or {})
        return self.topics[name]

    def _place(self, name: str, partitions: int, replicas: int) -> None:
        old, brokers = self.topics[name].assignment, sorted(self.brokers)
        new = {
            index: tuple(brokers[(index + step) % len(brokers)] for step in range(replicas))
            for index in range(partitions)
        }
        self._replace(name, partitions=partitions, assignment={**new, **old})

    def _configure(self, name: str, config: Mapping[str, str]) -> None:
        self._replace(name, overrides=dict(config), values={**DEFAULTS, **config})

    def _replace(self, name: str, **changes: Any) -> None:
        old = self.topics[name]
        fields = {key: getattr(old, key) for key in old.__slots__}
        self.topics[name] = SeenTopic(**{**fields, **changes})


def _metadata(name: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "creationTimestamp": "2026-11-01T00:00:00Z", **metadata}


def topic(
    name: str = "orders",
    *,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Topic:
    """A Topic of the cluster "main"."""
    return Topic.decode(
        {
            "metadata": _metadata(name, metadata or {}),
            "spec": {"clusterRef": {"name": "main"}, **spec},
            "status": dict(status or {}),
        }
    )


def quota(
    name: str = "etl",
    entity: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> ClientQuota:
    """A ClientQuota of the cluster "main"; of client id "etl" and 1Mi a second unless said otherwise."""
    return ClientQuota.decode(
        {
            "metadata": _metadata(name, metadata or {}),
            "spec": {
                "clusterRef": {"name": "main"},
                "entity": entity or {"clientId": {"name": "etl"}},
                "limits": limits or {"producerByteRate": "1Mi"},
                **spec,
            },
            "status": dict(status or {}),
        }
    )


def user(
    name: str = "etl",
    *,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> KafkaUser:
    """A KafkaUser of the cluster "main", which logs in by SCRAM-SHA-512 unless said otherwise."""
    return KafkaUser.decode(
        {
            "metadata": _metadata(name, metadata or {}),
            "spec": {"clusterRef": {"name": "main"}, **spec},
            "status": dict(status or {}),
        }
    )


class FakeSecrets:
    """Secrets in memory, which change their version with each write."""

    def __init__(self, *, outlives: bool = True) -> None:
        self.outlives = outlives
        self.kept: dict[Place, Stored] = {}
        self.writes, self.refuse = 0, ""
        self.fault: NoSecret | None = None

    def words(self, place: Place) -> str:
        return f'Secret "{place[1]}"'

    def location(self, place: Place) -> str:
        return place[1]

    def read(self, places: Sequence[Place]) -> Mapping[Place, Stored | NoSecret]:
        missing: Stored | NoSecret = NoSecret()
        return {place: self.fault if self.fault is not None else self.kept.get(place, missing) for place in places}

    def write(self, wanted: Sequence[Written]) -> list[str]:
        for written in wanted:
            place = place_of(written.user)
            before = self.kept.get(place)
            assert written.version == (before.version if before else None), "nobody else's is overwritten"
            if not self.refuse:
                self.writes += 1
                self.kept[place] = Stored(dict(written.texts), f"v{self.writes}", written.user.name)
        return [self.refuse] * len(wanted)

    def remove(self, place: Place) -> None:
        self.writes += 1
        del self.kept[place]

    def put(self, name: str, texts: Mapping[str, str], owner: str | None = None) -> None:
        """Let somebody make or change a Secret."""
        self.writes += 1
        self.kept["default", name] = Stored(dict(texts), f"v{self.writes}", owner)


def cluster(name: str = "main", *, metadata: Mapping[str, Any] | None = None, **spec: Any) -> KafkaCluster:
    """A KafkaCluster of one node unless said otherwise."""
    return KafkaCluster.decode(
        {"metadata": _metadata(name, metadata or {}), "spec": {"nodePools": [{"name": "nodes"}], **spec}}
    )


def cordoning(resource: KafkaCluster, *nodes: int) -> KafkaCluster:
    """The cluster, whose status says that these nodes are cordoned as they go."""
    lines = tuple(NodeStatus(id=number, roles=("broker",), state="Running", cordoned=True) for number in nodes)
    return resource.replaced({"status": resource.status.replaced({"nodes": lines})})


class FakePlatform:
    """Nodes that run as soon as they are started; `move` changes one behind the loop's back."""

    def __init__(self, refusal: str | None = None) -> None:
        self.refusal, self.actions, self.moves = refusal, list[NodeAction](), 0
        self.nodes: dict[int, SeenNode] = {}
        self.allowed, self.refuse, self.begin = frozenset[int](), "", ""
        self.analytics: AnalyticsStatus | None = None
        self.unseen: Exception | None = None  # while it cannot be looked at
        self.calls: list[str] = []

    def allow(self, cluster: KafkaCluster, nodes: frozenset[int]) -> bool:
        if self.refuse:
            raise PlatformUnavailableError(self.refuse)
        before, self.allowed = self.allowed, nodes
        return before != nodes

    def look(self, cluster: KafkaCluster) -> View:
        self.calls.append("look")
        if self.unseen is not None:
            raise self.unseen
        wanted = [
            WantedNode(node.id, "one", node.rack, node.roles) for node in nodes_of(cluster, cluster.status.first_ids)
        ]
        running = [number for number, node in self.nodes.items() if node.state == "Running"]
        bootstrap = ",".join(f"127.0.0.1:{9092 + number}" for number in running)
        seen = dict(self.nodes)
        return View(
            wanted,
            seen,
            bootstrap=bootstrap,
            begin=self.begin,
            refusal=self.refusal,
            stamp=self.moves,
            analytics=self.analytics,
        )

    def perform(self, action: NodeAction) -> None:
        self.actions.append(action)
        self.move(action.node, "Stopped" if isinstance(action, StopNode) else "Running")

    def move(self, number: int, state: NodeState) -> None:
        """Change the state of a node."""
        self.moves += 1
        self.nodes[number] = SeenNode(number, state, "one")


class FakeResources:
    """Resources in memory, as they were last written."""

    is_being_changed = False

    def __init__(self, *resources: AnyResource) -> None:
        self.documents = {key_of(resource): resource.to_dict() for resource in resources}
        self.unreadable: list[Unreadable] = []
        self.version, self.writes = 0, 0
        self.held: dict[Key, bool] = {}
        self.refuse: NotWrittenError | None = None
        self.refuse_notes: NotWrittenError | None = None
        self.noted: list[Key] = []
        self.keep: dict[str, NotWrittenError] = {}  # what cannot be removed, by name
        self.together: list[int] = []  # how many statuses were handed over at a time
        self.calls: list[str] = []

    def stamp(self) -> int:
        return self.version

    def read(self) -> tuple[list[AnyResource], list[Unreadable]]:
        hidden = {unread.key for unread in self.unreadable}
        return [resource_from(each) for key, each in self.documents.items() if key not in hidden], self.unreadable

    def hide(self, *unreadable: Unreadable) -> None:
        """Let resources be such as cannot be understood."""
        self.version += 1
        self.unreadable = list(unreadable)

    def put(self, resource: AnyResource) -> None:
        """Change what is wanted."""
        self.version += 1
        self.documents[key_of(resource)] = resource.to_dict()

    def status(self, resource: AnyResource) -> dict[str, Any]:
        """What was last said of a resource."""
        found: dict[str, Any] = self.documents[key_of(resource)].get("status", {})
        return found

    def set_status(self, resource: AnyResource, status: Status) -> bool:
        if status == resource.status:
            return False
        self.writes += 1
        self.documents[key_of(resource)]["status"] = status.to_dict()
        return True

    def set_statuses(self, wanted: Sequence[tuple[AnyResource, Status]]) -> Mapping[Key, Exception]:
        self.together.append(len(wanted))
        faults: dict[Key, Exception] = {}
        for resource, status in wanted:
            try:
                self.set_status(resource, status)
            except (NotWrittenError, OSError) as error:
                faults[key_of(resource)] = error
        return faults

    def note_unreadable(self, unread: Unreadable, status: Mapping[str, Any]) -> None:
        if self.refuse_notes is not None:
            raise self.refuse_notes
        self.writes += 1
        self.noted.append(unread.key)

    def hold(self, wanted: Sequence[tuple[AnyResource, bool]]) -> Mapping[Key, Exception]:
        self.calls.append("hold")
        if self.refuse is not None:
            return {key_of(resource): self.refuse for resource, _ in wanted}
        self.held.update((key_of(resource), is_needed) for resource, is_needed in wanted)
        return {}

    def remove(self, key: Key) -> bool:
        self.version += 1
        return self.documents.pop(key, None) is not None

    def remove_all(self, keys: Sequence[Key]) -> Mapping[Key, bool | Exception]:
        return {key: self.keep.get(key[2]) or self.remove(key) for key in keys}
