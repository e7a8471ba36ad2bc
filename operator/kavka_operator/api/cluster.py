"""`KafkaCluster`: nodes that are brokers, controllers or both, and what they have in common.

Node pools say how many nodes there are and where; the ids of a pool's nodes follow from its place in the list
(`NODE_IDS_PER_POOL` apart), so that a pool can grow without touching another. Everything Kafka can be told stands
under `config` by Kafka's own names; only what the operator itself must know has a field of its own.
"""

from typing import Annotated, Any, ClassVar, Literal

from kavka_operator.api import API_VERSION
from kavka_operator.api.model import Model, Rule, Transition, field
from kavka_operator.api.quantity import Quantity
from kavka_operator.api.resource import (
    AGE_COLUMN,
    MESSAGE_COLUMN,
    NAME_LENGTH_MAX,
    READY_COLUMN,
    REASON_COLUMN,
    Column,
    KafkaConfig,
    Metadata,
    Moment,
    Resource,
    ResourceName,
    Status,
)
from kavka_operator.api.shapes import Bounds

NODE_IDS_PER_POOL = 100
POOLS_MAX = 16
LISTENERS_MAX = 8
RACKS_MAX = 32
VOLUMES_MAX = 16
WINDOWS_MAX = 16
BROKERS_MAX = POOLS_MAX * NODE_IDS_PER_POOL
UNMANAGED_MAX = 100

ADVERTISED_PATTERN = r"^([a-zA-Z0-9._-]|\{id\}|\{port\})+:([0-9]|\{id\}|\{port\})+$"

Role = Literal["broker", "controller"]
Port = Annotated[int, Bounds(ge=1, le=65_535)]

OPERATOR_KEYS = (
    "process.roles",
    "node.id",
    "broker.id",
    "broker.rack",
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "controller.listener.names",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "kavka.admin.listener",
)
"""Settings that follow from other fields, so that `config` may not set them as well."""

FIXED_LIST: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}


class Volume(Model):
    """One log directory of a node."""

    name: ResourceName = field(description="The name of the volume; also of its directory on the local platform.")
    size: Quantity | None = field(default=None, description="How much to ask for. Kubernetes only.")
    storage_class: str | None = field(
        default=None, max_length=253, description="The StorageClass to ask. Kubernetes only."
    )


class Storage(Model):
    """Where nodes keep their logs."""

    volumes: tuple[Volume, ...] = field(
        default=(Volume(name="data"),),
        min_length=1,
        max_length=VOLUMES_MAX,
        description="The log directories of each node, one a volume.",
        schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )


class NodePool(Model):
    """Nodes that are alike."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!(has(self.racks) && size(self.racks) > 0 && has(self.topologyKey))",
            message="racks and topologyKey say the same thing twice; keep one of them",
            holds=lambda pool: not (pool.racks and pool.topology_key),
            path="topologyKey",
        ),
    )

    name: ResourceName = field(description="The name of the pool.")
    replicas: int = field(
        default=1, ge=0, le=NODE_IDS_PER_POOL, description="How many nodes. Those that go have to be empty of replicas."
    )
    roles: tuple[Role, ...] = field(
        default=("broker", "controller"),
        min_length=1,
        max_length=2,
        description="What the nodes are: brokers, controllers, or both.",
        schema={"x-kubernetes-list-type": "set"},
    )
    racks: tuple[Annotated[str, Bounds(min_length=1, max_length=63)], ...] = field(
        default=(),
        max_length=RACKS_MAX,
        description="Racks, given to the nodes in turn. Excludes topologyKey.",
        schema=FIXED_LIST,
    )
    topology_key: str | None = field(
        default=None, max_length=317, description="The node label whose value is the rack. Kubernetes only."
    )
    storage: Storage = field(default_factory=Storage, description="Where the nodes keep their logs.")
    resources: dict[str, Any] = field(
        default_factory=dict,
        description="Requests and limits of the broker's container. Kubernetes only.",
        schema={"x-kubernetes-preserve-unknown-fields": True},
    )
    placement: dict[str, Any] = field(
        default_factory=dict,
        description="nodeSelector, affinity, tolerations and topologySpreadConstraints of the pods. Kubernetes only.",
        schema={"x-kubernetes-preserve-unknown-fields": True},
    )


class Listener(Model):
    """Where clients connect."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.host) || self.host != '0.0.0.0' || has(self.advertised)",
            message="0.0.0.0 is no address to connect to; say in advertised what clients are told",
            holds=lambda listener: listener.host != "0.0.0.0" or listener.advertised is not None,
            path="host",
        ),
    )

    name: str = field(
        min_length=1,
        max_length=32,
        pattern=r"^[A-Z][A-Z0-9_]*$",
        description="The name, in Kafka's spelling: PLAINTEXT.",
    )
    port: Port = field(description="The port; on the local platform that of the first node, the others count up.")
    host: str = field(
        default="127.0.0.1",
        max_length=253,
        description="The address to bind, and to advertise unless advertised says another. Local platform only.",
    )
    advertised: str | None = field(
        default=None,
        max_length=300,
        pattern=ADVERTISED_PATTERN,
        description="HOST:PORT as clients are told it, where that is not what a node binds: behind a proxy, in another"
        " network. {id} stands for the id of the node, {port} for the port that it binds:"
        " kafka-{id}.example.com:{port}. Nodes talk to each other on the first listener without it.",
    )
    protocol: Literal["PLAINTEXT"] = field(default="PLAINTEXT", description="How clients talk on it.")


class Window(Model):
    """A time of the week in which nodes may be restarted."""

    days: tuple[Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], ...] = field(
        min_length=1,
        max_length=7,
        description="The days of the week.",
        schema={"x-kubernetes-list-type": "set"},
    )
    start_time: str = field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", description="When it opens, UTC.")
    duration_minutes: int = field(ge=1, le=7 * 24 * 60, description="How long it is open.")


class Rollout(Model):
    """How nodes are restarted."""

    approval: Literal["Auto", "Manual"] = field(
        default="Auto", description="Manual: a plan waits until its hash is approved."
    )
    max_concurrent: int = field(default=1, ge=1, le=NODE_IDS_PER_POOL, description="Nodes restarted at the same time.")
    delay_seconds: int = field(default=0, ge=0, le=86_400, description="The pause after each node.")
    windows: tuple[Window, ...] = field(
        default=(),
        max_length=WINDOWS_MAX,
        description="When nodes may be restarted; none means at any time.",
        schema=FIXED_LIST,
    )
    hold: bool = field(default=False, description="True: no node is restarted.")


class Audit(Model):
    """What is recorded about who did what."""

    topic: str | None = field(default=None, max_length=249, description="The topic for audit events; none: no audit.")
    failure_policy: Literal["Permit", "Reject"] = field(
        default="Permit", description="What to do with a request whose audit event cannot be kept."
    )


class Metrics(Model):
    """The brokers' own HTTP port: /metrics, /healthz, /readyz."""

    enabled: bool = field(default=True, description="False: no HTTP port.")
    port: Port = field(
        default=9644,
        description="The port; on the local platform that of the first node, the others count up.",
    )


def _has_role(role: Role) -> "Rule":
    return Rule(
        cel=f"self.nodePools.exists(pool, '{role}' in pool.roles && pool.replicas > 0)",
        message=f"has no {role}; give one pool the role {role}",
        holds=lambda spec: any(role in pool.roles and pool.replicas for pool in spec.node_pools),
        path="nodePools",
    )


def _sizes(spec: "KafkaClusterSpec") -> dict[tuple[str, str], int]:
    """The sizes that are asked for, by pool and volume."""
    pairs = [(pool, volume) for pool in spec.node_pools for volume in pool.storage.volumes]
    return {(pool.name, volume.name): volume.size for pool, volume in pairs if volume.size is not None}


def _volumes_stay(new: "KafkaCluster", old: "KafkaCluster") -> bool:
    """Whether every volume that goes is known to be empty, or nothing is known of the nodes at all."""
    names = {(pool.name, volume.name) for pool in new.spec.node_pools for volume in pool.storage.volumes}
    gone = {
        f"{p.name}/{v.name}" for p in old.spec.node_pools for v in p.storage.volumes if (p.name, v.name) not in names
    }
    return not old.status.brokers or gone <= set(old.status.empty_volumes)


class KafkaClusterSpec(Model):
    """What is wanted of a cluster."""

    rules: ClassVar[tuple[Rule, ...]] = (
        _has_role("broker"),
        _has_role("controller"),
        Rule(
            cel=f"!has(self.config) || !self.config.exists(key, key in {list(OPERATOR_KEYS)})",
            message="sets what follows from other fields (nodes, listeners, storage, metrics); leave it out: one of "
            + ", ".join(OPERATOR_KEYS),
            holds=lambda spec: not set(spec.config) & set(OPERATOR_KEYS),
            told=lambda spec: (
                f"{', '.join(key for key in OPERATOR_KEYS if key in spec.config)} follows from other fields"
                " (nodes, listeners, storage, metrics); take it out"
            ),
            path="config",
        ),
        Rule(
            cel="self.listeners.all(one, self.listeners.exists_one(other, other.port == one.port))",
            message="two listeners have the same port; give each its own",
            holds=lambda spec: len({listener.port for listener in spec.listeners}) == len(spec.listeners),
            path="listeners",
        ),
        Rule(
            cel="self.listeners.exists(one, one.name != 'CONTROLLER')",
            message="has no listener for clients; add one such as {name: PLAINTEXT, port: 9092}",
            holds=lambda spec: any(listener.name != "CONTROLLER" for listener in spec.listeners),
            path="listeners",
        ),
    )
    transitions: ClassVar[tuple[Transition, ...]] = (
        Transition(
            cel="oldSelf.nodePools.all(a, self.nodePools.exists(b, a.name == b.name && a.roles == b.roles))",
            message="a pool keeps its name and its roles, and cannot be taken out; set replicas: 0, or add another pool"
            " beside it",
            holds=lambda new, old: (
                {(p.name, frozenset(p.roles)) for p in old.node_pools}
                <= {(p.name, frozenset(p.roles)) for p in new.node_pools}
            ),
            path="nodePools",
        ),
        Transition(
            cel="oldSelf.nodePools.all(a, self.nodePools.all(b, a.name != b.name || a.storage.volumes.all(v,"
            " b.storage.volumes.all(w, v.name != w.name || !has(v.size) || !has(w.size)"
            " || quantity(string(w.size)).compareTo(quantity(string(v.size))) >= 0))))",
            message="a volume may only grow; add a larger or a smaller one beside it, under another name",
            holds=lambda new, old: all(size <= _sizes(new).get(volume, size) for volume, size in _sizes(old).items()),
            path="nodePools",
        ),
    )

    node_pools: tuple[NodePool, ...] = field(
        min_length=1,
        max_length=POOLS_MAX,
        description=f"The nodes. Ids of the first pool begin at 0, of the second at {NODE_IDS_PER_POOL}, and so on.",
        schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    listeners: tuple[Listener, ...] = field(
        default=(Listener(name="PLAINTEXT", port=9092),),
        min_length=1,
        max_length=LISTENERS_MAX,
        description="Where clients connect. CONTROLLER, which controllers use among themselves, has a port 1000 above"
        " the first listener's unless it is listed too.",
        schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    config: KafkaConfig = field(
        default_factory=dict,
        description="Settings of all nodes, by Kafka's names. Those that Kafka can change while brokers run are altered"
        " at once; a change of any other restarts the nodes, one after the other.",
    )
    image: str | None = field(default=None, max_length=512, description="The broker's image. Kubernetes only.")
    rollout: Rollout = field(default_factory=Rollout, description="How nodes are restarted.")
    audit: Audit = field(default_factory=Audit, description="What is recorded about who did what.")
    metrics: Metrics = field(default_factory=Metrics, description="The brokers' own HTTP port.")


class BrokerStatus(Model):
    """What is seen of one node."""

    id: int = field(ge=0, description="The node's id.")
    rack: str | None = field(default=None, max_length=63, description="Its rack.")
    roles: tuple[Role, ...] = field(default=(), max_length=2, description="What it is.")
    state: Literal["Running", "Starting", "Stopping", "Restarting", "Failed", "Stopped"] = field(
        description="What it does."
    )
    address: str | None = field(default=None, max_length=300, description="Where clients reach it.")
    leaders: int | None = field(default=None, ge=0, description="Partitions that it leads.")
    under_replicated: int | None = field(
        default=None, ge=0, description="Partitions that it leads with fewer replicas in sync than they have."
    )
    restarts: int | None = field(default=None, ge=0, description="How often it died and was started again.")
    directory: str | None = field(default=None, max_length=4096, description="Its log directory. Local platform only.")


class RolloutStatus(Model):
    """How far a restart of the nodes is."""

    plan: str | None = field(default=None, max_length=64, description="The hash of the plan, to approve it by.")
    done: int = field(default=0, ge=0, description="Nodes restarted.")
    total: int = field(default=0, ge=0, description="Nodes to restart.")
    current: tuple[int, ...] = field(
        default=(),
        max_length=NODE_IDS_PER_POOL,
        description="The nodes that are on their way down or up.",
        schema=FIXED_LIST,
    )
    blocked_by: tuple[str, ...] = field(default=(), max_length=16, description="What it waits for.")
    blocked_since: Moment | None = field(default=None, description="Since when it waits.")
    resume_time: Moment | None = field(
        default=None, description="When spec.rollout.delaySeconds after the last node are over."
    )
    at_risk: tuple[str, ...] = field(
        default=(),
        max_length=100,
        description="Partitions that will be unavailable meanwhile, a line a topic.",
    )


class LastRolloutStatus(Model):
    """The restart of nodes that was last done."""

    plan: str | None = field(default=None, max_length=64, description="The hash of its plan.")
    nodes: int = field(default=0, ge=0, description="How many nodes it restarted.")
    end_time: Moment | None = field(default=None, description="When the last of them was found back.")


class KafkaClusterStatus(Status):
    """What is seen of a cluster."""

    bootstrap_servers: str | None = field(default=None, max_length=4096, description="Where clients begin.")
    cluster_id: str | None = field(default=None, max_length=64, description="Kafka's id of the cluster.")
    active_controller: int | None = field(default=None, ge=0, description="The node that decides.")
    nodes: int | None = field(default=None, ge=0, description="How many nodes there are.")
    ready_nodes: int | None = field(default=None, ge=0, description="How many of them answer.")
    brokers: tuple[BrokerStatus, ...] = field(
        default=(),
        max_length=BROKERS_MAX,
        description="The nodes, a line each.",
        schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
    )
    rollout: RolloutStatus | None = field(default=None, description="The restart of the nodes that is under way.")
    last_rollout: LastRolloutStatus | None = field(
        default=None, description="The restart of the nodes that was last done."
    )
    managed_config: tuple[str, ...] = field(
        default=(),
        max_length=256,
        description="Settings that this resource has altered while the brokers run, so that one taken out of it goes"
        " back to its default.",
    )
    empty_volumes: tuple[Annotated[str, Bounds(max_length=2 * NAME_LENGTH_MAX + 1)], ...] = field(
        default=(),
        max_length=POOLS_MAX * VOLUMES_MAX,
        description="Volumes, as POOL/VOLUME, that hold nothing on any node; those may be taken out of the spec.",
        schema=FIXED_LIST,
    )
    unmanaged_quotas: tuple[str, ...] = field(
        default=(),
        max_length=UNMANAGED_MAX,
        description="Quotas in Kafka that no ClientQuota declares. They are left alone.",
    )


class KafkaCluster(Resource):
    """A Kafka cluster."""

    transitions: ClassVar[tuple[Transition, ...]] = (
        Transition(
            cel="!has(oldSelf.status) || !has(oldSelf.status.brokers) || oldSelf.spec.nodePools.all(a,"
            " a.storage.volumes.all(v, self.spec.nodePools.exists(b, b.name == a.name"
            " && b.storage.volumes.exists(w, w.name == v.name)) || (has(oldSelf.status.emptyVolumes)"
            " && (a.name + '/' + v.name) in oldSelf.status.emptyVolumes)))",
            message="a volume that holds something cannot be taken out or given another name; put it back, and take it"
            " out when status.emptyVolumes names it",
            holds=_volumes_stay,
            path="spec",
        ),
    )

    kind_name: ClassVar[str] = "KafkaCluster"
    plural: ClassVar[str] = "kafkaclusters"
    short_name: ClassVar[str] = "kc"
    purpose: ClassVar[str] = "A Kafka cluster: its nodes, listeners and settings."
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Nodes", ".status.nodes", "integer"),
        Column("Answering", ".status.readyNodes", "integer"),
        Column("Bootstrap", ".status.bootstrapServers"),
        READY_COLUMN,
        REASON_COLUMN,
        Column("Cluster-ID", ".status.clusterId", priority=1),
        Column("Controller", ".status.activeController", "integer", priority=1),
        MESSAGE_COLUMN,
        AGE_COLUMN,
    )

    api_version: Literal["kavka.dev/v1alpha1"] = API_VERSION  # type: ignore[assignment]
    kind: Literal["KafkaCluster"] = "KafkaCluster"
    metadata: Metadata
    spec: KafkaClusterSpec
    status: KafkaClusterStatus = field(default_factory=KafkaClusterStatus)
