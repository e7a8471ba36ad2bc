"""`KafkaCluster`: nodes that are brokers, controllers or both, and what they have in common.

Node pools say how many nodes there are and where; the ids of a pool's nodes belong to its name (`NODE_IDS_PER_POOL`
apart), so that a pool can grow without touching another. Everything Kafka can be told stands under `config` by Kafka's
own names; only what the operator itself must know has a field of its own.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kavka_operator.api import API_VERSION, security
from kavka_operator.api.audit import IMAGE_PATTERN, Analytics, Audit, AuditVolume
from kavka_operator.api.cluster_status import LISTENERS_MAX, KafkaClusterStatus
from kavka_operator.api.exposure import Exposure
from kavka_operator.api.external import External
from kavka_operator.api.grants import GRANTS_MAX, Grant
from kavka_operator.api.model import ListOf, Model, Rule, Transition, Unique
from kavka_operator.api.pools import FIXED_LIST, NODE_IDS_PER_POOL, POOLS_MAX, NodePool, Role
from kavka_operator.api.resource import (
    AGE_COLUMN,
    MESSAGE_COLUMN,
    READY_COLUMN,
    REASON_COLUMN,
    Column,
    HostName,
    KafkaConfig,
    Metadata,
    Resource,
)

WINDOWS_MAX = 16
NODE_NAME_LENGTH_MAX = 46  # of a cluster and a pool: with the id of a node and what Kubernetes adds, 63

ADVERTISED_PATTERN = r"^([a-zA-Z0-9._-]|\{id\}|\{port\})+:([0-9]|\{id\}|\{port\}|\{nodePort\})+$"

Port = Annotated[int, Field(ge=1, le=security.PORT_MAX)]

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

AUDIT_KEY_FILE = "kavka.audit.key.file"
AUDIT_VOLUME = "{0}.audit.analytics.storage.volume"
NEW_VOLUME, OLD_VOLUME = AUDIT_VOLUME.format("self"), AUDIT_VOLUME.format("oldSelf")
HAS_AUDIT_VOLUME = f"has({{0}}.audit) && has({{0}}.audit.analytics) && has({AUDIT_VOLUME})"


class Listener(Model):
    """An address at which clients connect."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.host) || self.host != '0.0.0.0' || has(self.advertised)",
            message="0.0.0.0 is no address to connect to; say in advertised what clients are told",
            holds=lambda listener: listener.host != "0.0.0.0" or listener.advertised is not None,
            path="host",
        ),
        Rule(
            cel="!has(self.service) || self.name != 'CONTROLLER'",
            message="controllers are reached by nodes of the cluster alone; take out service",
            holds=lambda listener: listener.service is None or listener.name != "CONTROLLER",
            path="service",
        ),
        Rule(
            cel="!has(self.advertised) || !self.advertised.contains('{nodePort}')"
            " || has(self.service) && self.service.type == 'NodePort'",
            message="{nodePort} is the port of a Service; write service: {type: NodePort}, or a port",
            holds=lambda listener: (
                "{nodePort}" not in (listener.advertised or "")
                or (listener.service is not None and listener.service.type == "NodePort")
            ),
            path="advertised",
        ),
        *security.LISTENER_RULES,
    )

    name: str = Field(
        min_length=1,
        max_length=32,
        pattern=r"^[A-Z][A-Z0-9_]*$",
        description="The name, in Kafka's spelling: PLAINTEXT.",
    )
    port: Port = Field(description="The port; on the local platform that of the first node, the others count up.")
    host: str | None = Field(
        default=None,
        min_length=1,
        max_length=253,
        description="The address to bind, and to advertise unless advertised says another; on the local platform"
        " 127.0.0.1 where it is left out. Local platform only.",
    )
    advertised: str | None = Field(
        default=None,
        max_length=300,
        pattern=ADVERTISED_PATTERN,
        description="HOST:PORT as clients are told it, where that is not what a node binds: behind a proxy, in another"
        " network. {id} stands for the id of the node, {port} for the port that it binds:"
        " kafka-{id}.example.com:{port}, and {nodePort} for that of its Service. Nodes talk to each other on the first"
        " listener without it and without a service, in a secured cluster on NODES.",
    )
    protocol: security.Protocol = Field(
        default="PLAINTEXT",
        description="How clients talk on it: SSL and SASL_SSL are encrypted, SASL_ asks for a login.",
    )
    sasl: security.ListenerSasl | None = Field(default=None, description="How clients log in, for the protocols SASL_.")
    tls: security.ListenerTls | None = Field(
        default=None, description="Its certificates, for the protocols SSL and SASL_SSL, where they are not the usual."
    )
    service: Exposure | None = Field(
        default=None,
        description="Services by which clients outside of the Kubernetes reach the listener. Kubernetes only.",
    )


class Window(Model):
    """A time of the week in which nodes may be restarted."""

    days: Annotated[
        ListOf[Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]], Field(min_length=1, max_length=7), Unique()
    ] = Field(
        description="The days of the week.",
    )
    start_time: str = Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", description="When it opens, by timeZone.")
    time_zone: str = Field(
        default="UTC",
        max_length=64,
        pattern=r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$",
        description="The time zone of days and startTime, by its name: Europe/Berlin.",
    )
    duration_minutes: int = Field(ge=1, le=7 * 24 * 60, description="How long it is open.")


class Rollout(Model):
    """The rules by which nodes are restarted."""

    approval: Literal["Auto", "Manual"] = Field(
        default="Auto", description="Manual: a plan waits until its hash is approved."
    )
    max_concurrent: int = Field(default=1, ge=1, le=NODE_IDS_PER_POOL, description="Nodes restarted at the same time.")
    delay_seconds: int = Field(default=0, ge=0, le=86_400, description="The pause after each node.")
    windows: ListOf[Window] = Field(
        default=(),
        max_length=WINDOWS_MAX,
        description="When nodes may be restarted; none means at any time.",
        json_schema_extra=FIXED_LIST,
    )
    hold: bool = Field(default=False, description="True: no node is restarted.")


class Metrics(Model):
    """The brokers' own HTTP port: /metrics, /healthz, /readyz."""

    enabled: bool = Field(default=True, description="False: no HTTP port.")
    port: Port = Field(
        default=9644,
        description="The port; on the local platform that of the first node, the others count up.",
    )


def _has_role(role: Role) -> "Rule":
    return Rule(
        cel="!has(self.nodePools) || size(self.nodePools) == 0"
        f" || self.nodePools.exists(pool, '{role}' in pool.roles && pool.replicas > 0)",
        message=f"has no {role}; give one pool the role {role}",
        holds=lambda spec: not spec.node_pools or any(role in pool.roles and pool.replicas for pool in spec.node_pools),
        path="nodePools",
    )


NOTHING_OF_NODES = (
    "!has(self.tls) && !has(self.authorization) && !has(self.audit)"
    " && !has(self.image) && (!has(self.config) || size(self.config) == 0)"
    " && size(self.listeners) == 1 && self.listeners[0].name == 'PLAINTEXT' && self.listeners[0].port == 9092"
    " && !has(self.listeners[0].host) && !has(self.listeners[0].advertised) && !has(self.listeners[0].service)"
    " && self.listeners[0].protocol == 'PLAINTEXT'"
    " && self.metrics.enabled && self.metrics.port == 9644 && self.rollout.approval == 'Auto'"
    " && self.rollout.maxConcurrent == 1 && self.rollout.delaySeconds == 0 && !self.rollout.hold"
    " && (!has(self.rollout.windows) || size(self.rollout.windows) == 0)"
)
"""Whether the fields that are about nodes are as they are when nobody writes them."""


def _says_nothing_of_nodes(spec: "KafkaClusterSpec") -> bool:
    """Whether the fields that are about nodes are as they are when nobody writes them."""
    about = (spec.image, spec.audit, spec.config, spec.listeners, spec.metrics, spec.rollout)
    return (*about, spec.tls, spec.authorization) == (None, None, {}, LISTENERS, Metrics(), Rollout(), None, None)


def _has_port_for_controllers(spec: "KafkaClusterSpec") -> bool:
    """Whether CONTROLLER is listed, or its port 1000 above the first listener's is free."""
    port, names = spec.listeners[0].port + security.CONTROLLER_PORT_STEP, {listener.name for listener in spec.listeners}
    taken = {listener.port for listener in spec.listeners} | ({spec.metrics.port} if spec.metrics.enabled else set())
    return "CONTROLLER" in names or (port <= security.PORT_MAX and port not in taken)


def _has_listener_inside(spec: "KafkaClusterSpec") -> bool:
    """Whether nodes have a listener among themselves, where others lead outside."""
    inside = any(
        listener.name != "CONTROLLER" and listener.service is None and listener.advertised is None
        for listener in spec.listeners
    )
    return inside or spec.is_secured or all(listener.service is None for listener in spec.listeners)


def _sizes(spec: "KafkaClusterSpec") -> dict[tuple[str, str], int]:
    """The sizes that are asked for, by pool and volume."""
    pairs = [(pool, volume) for pool in spec.node_pools for volume in pool.storage.volumes]
    return {(pool.name, volume.name): volume.size for pool, volume in pairs if volume.size is not None}


def _volumes_stay(new: "KafkaCluster", old: "KafkaCluster") -> bool:
    """Whether every volume that goes is known to be empty, or nothing is known of the nodes at all."""
    names = {pool.name: {volume.name for volume in pool.storage.volumes} for pool in new.spec.node_pools}
    gone = {
        f"{pool.name}/{volume.name}"
        for pool in old.spec.node_pools
        for volume in pool.storage.volumes
        if volume.name not in names.get(pool.name, {volume.name})
    }
    return not old.status.nodes or gone <= set(old.status.empty_volumes)


def _audit_volume(spec: "KafkaClusterSpec") -> AuditVolume | None:
    """The volume of the analytics, where there is one."""
    return spec.analytics.storage.volume if spec.analytics is not None else None


def _audit_volume_stays(new: "KafkaClusterSpec", old: "KafkaClusterSpec") -> bool:
    """Whether the volume of the analytics, if there is one before and after, has the same class and no smaller size."""
    before, after = _audit_volume(old), _audit_volume(new)
    if before is None or after is None:
        return True
    kinds = {(volume.storage_class_name, volume.access_mode) for volume in (before, after)}
    return len(kinds) == 1 and after.size >= before.size


LISTENERS = (Listener(name="PLAINTEXT", port=9092),)


class KafkaClusterSpec(Model):
    """The wanted state of a cluster."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.external) != (has(self.nodePools) && size(self.nodePools) > 0)",
            message="has either nodePools, whose nodes are run, or external, where somebody else runs them; write one",
            holds=lambda spec: (spec.external is None) == bool(spec.node_pools),
            path="nodePools",
        ),
        Rule(
            cel=f"!has(self.external) || ({NOTHING_OF_NODES})",
            message="is of a Kafka that somebody else runs, whose nodes are left alone; take out audit, config,"
            " image, listeners, metrics and rollout",
            holds=lambda spec: spec.external is None or _says_nothing_of_nodes(spec),
            path="external",
        ),
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
            cel="!self.metrics.enabled || self.listeners.all(one, one.port != self.metrics.port)",
            message="a listener has the port of metrics; give each its own",
            holds=lambda spec: (
                not spec.metrics.enabled or spec.metrics.port not in {listener.port for listener in spec.listeners}
            ),
            path="metrics",
        ),
        Rule(
            cel="self.listeners.exists(one, one.name == 'CONTROLLER') || self.listeners[0].port <= 64535"
            " && self.listeners.all(one, one.port != self.listeners[0].port + 1000)"
            " && (!self.metrics.enabled || self.metrics.port != self.listeners[0].port + 1000)",
            message="there is no port for controllers 1000 above the first listener's; add a listener such as"
            " {name: CONTROLLER, port: 9093}",
            holds=_has_port_for_controllers,
            path="listeners",
        ),
        Rule(
            cel="self.listeners.exists(one, one.name != 'CONTROLLER')",
            message="has no listener for clients; add one such as {name: PLAINTEXT, port: 9092}",
            holds=lambda spec: any(listener.name != "CONTROLLER" for listener in spec.listeners),
            path="listeners",
        ),
        Rule(
            cel=f"{security.secured('self')} || !self.listeners.exists(one, has(one.service))"
            " || self.listeners.exists(one, one.name != 'CONTROLLER'"
            " && !has(one.service) && !has(one.advertised))",
            message="nodes have no listener among themselves beside those with a service; add one such as"
            " {name: INSIDE, port: 9092}",
            holds=_has_listener_inside,
            path="listeners",
        ),
        Rule(
            cel=f"!has(self.audit) || !has(self.config) || !('{AUDIT_KEY_FILE}' in self.config)",
            message=f"{AUDIT_KEY_FILE} follows from audit; take one of them out",
            holds=lambda spec: spec.audit is None or AUDIT_KEY_FILE not in spec.config,
            path="config",
        ),
        *security.SPEC_RULES,
    )
    transitions: ClassVar[tuple[Transition, ...]] = (
        security.STAYS_SECURED,
        Transition(
            cel="has(self.external) == has(oldSelf.external)",
            message="a cluster stays external, or with nodes of its own; make another KafkaCluster",
            holds=lambda new, old: (new.external is None) == (old.external is None),
            path="external",
        ),
        Transition(
            cel="!has(oldSelf.nodePools) || !has(self.nodePools) || oldSelf.nodePools.all(a,"
            " self.nodePools.all(b, a.name != b.name || a.roles == b.roles))",
            message="a pool keeps its roles; add another pool beside it",
            holds=lambda new, old: all(
                frozenset(a.roles) == frozenset(b.roles)
                for a in old.node_pools
                for b in new.node_pools
                if a.name == b.name
            ),
            path="nodePools",
        ),
        Transition(
            cel="!has(oldSelf.nodePools) || !has(self.nodePools) || oldSelf.nodePools.all(a,"
            " self.nodePools.all(b, a.name != b.name || a.storage.volumes.all(v,"
            " b.storage.volumes.all(w, v.name != w.name || !has(v.size) || !has(w.size)"
            " || quantity(string(w.size)).compareTo(quantity(string(v.size))) >= 0))))",
            message="a volume may only grow; add a larger or a smaller one beside it, under another name",
            holds=lambda new, old: all(size <= _sizes(new).get(volume, size) for volume, size in _sizes(old).items()),
            path="nodePools",
        ),
        Transition(
            cel="!has(oldSelf.nodePools) || !has(self.nodePools) || oldSelf.nodePools.all(a,"
            " self.nodePools.all(b, a.name != b.name || a.storage.type == b.storage.type"
            " && (!has(a.storage.sizeLimit) || !has(b.storage.sizeLimit)"
            " || quantity(string(a.storage.sizeLimit)).compareTo(quantity(string(b.storage.sizeLimit))) == 0)))",
            message="a pool keeps its storage.type and sizeLimit; add another pool beside it",
            holds=lambda new, old: all(
                (a.storage.type, a.storage.size_limit) == (b.storage.type, b.storage.size_limit)
                for a in old.node_pools
                for b in new.node_pools
                if a.name == b.name
            ),
            path="nodePools",
        ),
        Transition(
            cel=f"!({HAS_AUDIT_VOLUME.format('oldSelf')}) || !({HAS_AUDIT_VOLUME.format('self')})"
            f" || quantity(string({NEW_VOLUME}.size)).compareTo(quantity(string({OLD_VOLUME}.size))) >= 0"
            f" && {NEW_VOLUME}.accessMode == {OLD_VOLUME}.accessMode"
            f" && has({NEW_VOLUME}.storageClassName) == has({OLD_VOLUME}.storageClassName)"
            f" && (!has({NEW_VOLUME}.storageClassName)"
            f" || {NEW_VOLUME}.storageClassName == {OLD_VOLUME}.storageClassName)",
            message="the volume of the analytics may only grow, and keeps its class and access mode; take analytics"
            " out and delete the PersistentVolumeClaim to begin another",
            holds=_audit_volume_stays,
            path="audit",
        ),
    )

    external: External | None = Field(
        default=None,
        description="A Kafka that somebody else runs, in place of nodePools: its topics, quotas and users are looked"
        " after, and nothing else of it is touched.",
    )
    node_pools: Annotated[ListOf[NodePool], Field(max_length=POOLS_MAX), Unique("name")] = Field(
        default=(),
        description=f"The nodes. The ids of each pool begin at the multiple of {NODE_IDS_PER_POOL} that status.pools"
        " names; neither the order of the pools nor what becomes of others changes them. The nodes of a pool that is"
        " taken out go when they hold no replica.",
    )
    listeners: Annotated[ListOf[Listener], Field(min_length=1, max_length=LISTENERS_MAX), Unique("name")] = Field(
        default=LISTENERS,
        description="Where clients connect. CONTROLLER, which controllers use among themselves, has a port 1000 above"
        " the first listener's unless it is listed too; NODES, which those of a secured cluster use, one 2000 above.",
    )
    tls: security.ClusterTls | None = Field(
        default=None,
        description="The certificates of nodes, which they have wherever a listener asks for TLS or a login, or there"
        " is authorization; {} gives them also where clients talk without.",
    )
    authorization: security.Authorization | None = Field(
        default=None, description="Who may do what, by ACLs. Left out: whoever is let in may do everything."
    )
    config: KafkaConfig = Field(
        default_factory=dict,
        description="Settings of all nodes, by Kafka's names. Those that Kafka can change while brokers run are altered"
        " at once; a change of any other restarts the nodes, one after the other.",
    )
    image: str | None = Field(
        default=None, max_length=512, pattern=IMAGE_PATTERN, description="The broker's image. Kubernetes only."
    )
    rollout: Rollout = Field(default_factory=Rollout, description="How nodes are restarted.")
    grants: ListOf[Grant] = Field(
        default=(),
        max_length=GRANTS_MAX,
        description="What resources of other namespaces may do here. Without a grant they may do nothing.",
        json_schema_extra=FIXED_LIST,
    )
    metrics: Metrics = Field(default_factory=Metrics, description="The brokers' own HTTP port.")
    audit: Audit | None = Field(
        default=None, description="The audit trail of the brokers, which {} turns on, and answers from it."
    )

    @property
    def is_audited(self) -> bool:
        """Whether the brokers keep an audit trail with a key that the operator has drawn."""
        return self.audit is not None and self.audit.enabled

    @property
    def analytics(self) -> Analytics | None:
        """The runs that answer from the trail; None where there are none."""
        return self.audit.analytics if self.audit is not None else None

    @property
    def is_secured(self) -> bool:
        """Whether nodes show each other certificates, on listeners of their own."""
        return security.is_secured(self)

    @property
    def asks_who(self) -> bool:
        """Whether a listener asks who a client is."""
        return security.asks_who(self)


class ClusterMetadata(Metadata):
    """Metadata of a KafkaCluster, whose name stands in the host names of its nodes."""

    name: HostName = Field(description="The name of the cluster; its nodes are named after it.")


class KafkaCluster(Resource):
    """A Kafka cluster."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.spec.nodePools) || self.spec.nodePools.all(pool, size(self.metadata.name) + size(pool.name)"
            f" <= {NODE_NAME_LENGTH_MAX})",
            message=f"the names of the cluster and of a pool have more than {NODE_NAME_LENGTH_MAX} characters together,"
            " too many for the host names of nodes; shorten one of them",
            holds=lambda cluster: all(
                len(cluster.metadata.name) + len(pool.name) <= NODE_NAME_LENGTH_MAX for pool in cluster.spec.node_pools
            ),
            path="metadata.name",
        ),
    )
    transitions: ClassVar[tuple[Transition, ...]] = (
        Transition(
            cel="!has(oldSelf.status) || !has(oldSelf.status.nodes) || !has(oldSelf.spec.nodePools)"
            " || !has(self.spec.nodePools) || oldSelf.spec.nodePools.all(a,"
            " a.storage.volumes.all(v, self.spec.nodePools.all(b, b.name != a.name"
            " || b.storage.volumes.exists(w, w.name == v.name)) || (has(oldSelf.status.emptyVolumes)"
            " && (a.name + '/' + v.name) in oldSelf.status.emptyVolumes)))",
            message="a volume that holds something cannot be taken out or given another name; put it back, and take it"
            " out when status.emptyVolumes names it",
            holds=_volumes_stay,
            path="spec",
        ),
    )

    kind_name: ClassVar[str] = "KafkaCluster"
    plural: ClassVar[str] = "kafkaclusters"
    short_name: ClassVar[str] = "kvc"
    purpose: ClassVar[str] = "A Kafka cluster: its nodes, listeners and settings."
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Brokers", ".status.brokers", "integer"),
        Column("Answering", ".status.readyBrokers", "integer"),
        Column("Bootstrap", ".status.bootstrapServers"),
        READY_COLUMN,
        REASON_COLUMN,
        Column("Roll", ".status.rollout.progress"),
        Column("Cluster-ID", ".status.clusterId", priority=1),
        Column("Controller", ".status.activeController", "integer", priority=1),
        MESSAGE_COLUMN,
        AGE_COLUMN,
    )

    api_version: Literal["kavka.dev/v1alpha1"] = API_VERSION  # type: ignore[assignment]
    kind: Literal["KafkaCluster"] = "KafkaCluster"
    metadata: ClusterMetadata
    spec: KafkaClusterSpec
    status: KafkaClusterStatus = Field(default_factory=KafkaClusterStatus)
