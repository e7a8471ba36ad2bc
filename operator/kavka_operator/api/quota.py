"""`ClientQuota`: how much one kind of client may do on a Kafka cluster.

The entity follows Kafka's model in full: a user, a client id, a pair of both, each by name or as the default, or an
address. A name and the default are different fields (`{name: default}` is the user called "default"), because a
principal may well be called that. Limits are Kafka's own keys, per broker, unless `scope` says that they are a budget
for the whole cluster.
"""

from ipaddress import ip_address
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from kavka_broker.core.quota.entity import DEFAULT, WHOLE_KEYS, Entity, IpEntity, Part, QuotaKey
from kavka_operator.api import API_VERSION
from kavka_operator.api.error_messages import not_whole, shown
from kavka_operator.api.field_names import keyed
from kavka_operator.api.model import ListOf, Model, Rule, Transition
from kavka_operator.api.quantity import Quantity
from kavka_operator.api.resource import (
    AGE_COLUMN,
    MESSAGE_COLUMN,
    READY_COLUMN,
    REASON_COLUMN,
    SAME_CLUSTER,
    ClusterRef,
    Column,
    Correction,
    Metadata,
    Moment,
    Resource,
    Status,
)

ENTITY_NAME_LENGTH_MAX = 1024
OVERRIDES_MAX = 32
RELATED_MAX = 64
BROKERS_MAX = 1000
KEYS_MAX = 2 * BROKERS_MAX + 32

AnyEntity = Entity | IpEntity

LIMIT_MAX = 1e12
Positive = Annotated[float, Field(gt=0, le=LIMIT_MAX)]


def _true(value: object) -> object:
    """The value. Raises ValueError for all but true, of 1 too, which Python takes for the same."""
    if value is not True:
        raise ValueError(f"{shown(value)} makes no sense here; write true or leave it out")
    return value


OnlyTrue = Annotated[Literal[True], BeforeValidator(_true)]
"""A field that is true or left out."""


def _whole(value: float) -> float:
    """The number. Raises ValueError for one with a fraction, also one that pydantic's multiple_of overlooks."""
    if value % 1:
        raise ValueError(not_whole(value))
    return value


Connections = Annotated[
    float,
    Field(ge=1, le=WHOLE_KEYS[QuotaKey.CONNECTION_CREATION_RATE], json_schema_extra={"multipleOf": 1}),
    AfterValidator(_whole),
]

KAFKA_KEYS = {
    "producer_byte_rate": "producerByteRate",
    "consumer_byte_rate": "consumerByteRate",
    "request_percentage": "requestPercentage",
    "controller_mutation_rate": "controllerMutationRate",
    "connection_creation_rate": "connectionCreationRate",
}
"""Kafka's key of a limit, and the field that sets it."""


class EntityPart(Model):
    """One part of an entity: a name, or the default for all that have no name of their own."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.name) != has(self.default)",
            message="needs either a name or the default; write {name: NAME} or {default: true}",
            holds=lambda part: (part.name is None) != (part.default is None),
        ),
    )

    name: str | None = Field(
        default=None,
        min_length=1,
        max_length=ENTITY_NAME_LENGTH_MAX,
        description="The name, as the broker sees it.",
    )
    default: OnlyTrue | None = Field(
        default=None,
        description="True: whoever has no quota by name. Excludes name.",
    )


class ClientIdPart(Model):
    """The client ids of an entity: one by its name, those that begin alike, or the default for all others."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="[has(self.name), has(self.prefix), has(self.default)].filter(given, given).size() == 1",
            message="needs a name, a prefix or the default; write {name: NAME}, {prefix: BEGINNING} or {default: true}",
            holds=lambda part: [part.name, part.prefix, part.default].count(None) == 2,
        ),
    )

    name: str | None = Field(
        default=None,
        min_length=1,
        max_length=ENTITY_NAME_LENGTH_MAX,
        description="The client.id, whole.",
    )
    prefix: str | None = Field(
        default=None,
        min_length=1,
        max_length=ENTITY_NAME_LENGTH_MAX - 1,
        description="How client ids begin. All that begin so share the limit, unless they have one by their whole name"
        " or a longer prefix. Brokers of Apache Kafka do not know it.",
    )
    default: OnlyTrue | None = Field(
        default=None,
        description="True: whoever has no quota by name. Excludes name and prefix.",
    )


class IpPart(EntityPart):
    """The addresses of an entity: one, or the default for all that have no quota of their own."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *EntityPart.rules,
        Rule(
            cel="!has(self.name) || isIP(self.name)",
            message="is not the address of one machine; write one as 10.0.0.1 or 2001:db8::1",
            holds=lambda part: part.name is None or is_address(part.name),
            path="name",
        ),
    )


INTERNAL_USERS = ("CN=node,O=kavka.dev", "CN=operator,O=kavka.dev")
"""As whom nodes and the operator log in, where a cluster has certificates."""


class EntitySpec(Model):
    """Whom a quota limits."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"!has(self.user) || !has(self.user.name) || !(self.user.name in {list(INTERNAL_USERS)})",
            message="is a user of the cluster itself, nodes or the operator, and what it does must not be held back;"
            " name another",
            holds=lambda entity: entity.user is None or entity.user.name not in INTERNAL_USERS,
            path="user",
        ),
        Rule(
            cel="has(self.user) || has(self.clientId) || has(self.ip)",
            message="limits nobody; name at least one of user, clientId, ip",
            holds=lambda entity: bool(entity.user or entity.client_id or entity.ip),
        ),
        Rule(
            cel="!has(self.ip) || !(has(self.user) || has(self.clientId))",
            message="ip stands alone: Kafka has no quota on an address together with a user or client id;"
            " write two resources",
            holds=lambda entity: entity.ip is None or not (entity.user or entity.client_id),
            path="ip",
        ),
    )

    user: EntityPart | None = Field(default=None, description="The principal's name, without the User: prefix.")
    client_id: ClientIdPart | None = Field(default=None, description="The client.id that clients give themselves.")
    ip: IpPart | None = Field(default=None, description="The address that connections come from.")


def entity_of(spec: EntitySpec) -> AnyEntity:
    """The entity that a resource limits, as the broker's core names it."""
    if spec.ip is not None:
        ip = _part(spec.ip)
        assert ip is not None, "a rule of the model"
        return IpEntity(ip)
    return Entity(_part(spec.user), _part(spec.client_id))


def is_address(text: str) -> bool:
    """Whether the text is an address as API servers take one: without a zone, and not of IPv4 within IPv6."""
    try:
        found = ip_address(text)
    except ValueError:
        return False
    return found.version == 4 or (found.ipv4_mapped is None and found.scope_id is None)


def _part(spec: EntityPart | ClientIdPart | None) -> Part:
    if spec is None:
        return None
    if isinstance(spec, ClientIdPart) and spec.prefix is not None:
        return spec.prefix  # what makes it more than a name is a key of the quota
    return spec.name if spec.name is not None else DEFAULT


class Limits(Model):
    """Upper limits. What is left out is not limited by this resource."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.producerByteRate) || has(self.consumerByteRate) || has(self.requestPercentage)"
            " || has(self.controllerMutationRate) || has(self.connectionCreationRate)",
            message="limits nothing; set at least one of " + ", ".join(KAFKA_KEYS.values()),
            holds=lambda limits: bool(limits.kafka_values()),
        ),
    )

    producer_byte_rate: Quantity | None = Field(default=None, description="Bytes a second that clients may produce.")
    consumer_byte_rate: Quantity | None = Field(default=None, description="Bytes a second that clients may fetch.")
    request_percentage: Positive | None = Field(
        default=None,
        description="Share of the broker's request time, in per cent of one loop. May be above 100.",
    )
    controller_mutation_rate: Positive | None = Field(
        default=None, description="Partitions a second that clients may create or delete."
    )
    connection_creation_rate: Connections | None = Field(
        default=None, description="Connections a second that an address may open, a whole number. For ip only."
    )

    def kafka_values(self) -> dict[str, float]:
        """The limits that are set, by Kafka's keys."""
        fields = {key: getattr(self, key) for key in KAFKA_KEYS}
        return {key: float(value) for key, value in fields.items() if value is not None}


class Override(Model):
    """Other limits for a while, which end by themselves."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.until > self.from",
            message="ends before it begins; let until be later than from",
            holds=lambda override: override.until > override.begin,
            path="until",
        ),
    )

    begin: Moment = keyed("from", description="When it begins.")
    until: Moment = Field(description="When it ends, exclusive.")
    limits: Limits = Field(description="The limits meanwhile; what is left out keeps the usual value.")
    reason: str = Field(min_length=1, max_length=1024, description="Why, for who reads the status.")


def _address_limits(spec: "ClientQuotaSpec") -> bool:
    keys = set(spec.limits.kafka_values()).union(*(override.limits.kafka_values() for override in spec.overrides))
    return keys == {"connection_creation_rate"} if spec.entity.ip else "connection_creation_rate" not in keys


def _only_connections(limits: str) -> str:
    """CEL: these limits name the connection rate and nothing else."""
    others = [field for field in KAFKA_KEYS.values() if field != "connectionCreationRate"]
    return " && ".join([f"has({limits}.connectionCreationRate)", *(f"!has({limits}.{field})" for field in others)])


class ClientQuotaSpec(Model):
    """The wanted state of a quota."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"has(self.entity.ip) ? {_only_connections('self.limits')}"
            f" && (!has(self.overrides) || self.overrides.all(each, {_only_connections('each.limits')}))"
            " : !has(self.limits.connectionCreationRate)"
            " && (!has(self.overrides) || self.overrides.all(each, !has(each.limits.connectionCreationRate)))",
            message="connectionCreationRate goes with entity.ip, and entity.ip with nothing else",
            holds=_address_limits,
            path="limits",
        ),
    )
    transitions: ClassVar[tuple[Transition, ...]] = (
        SAME_CLUSTER,
        Transition(
            cel="self.entity == oldSelf.entity",
            message="entity is immutable; delete the resource and create another",
            holds=lambda new, old: new.entity == old.entity,
            path="entity",
        ),
    )

    cluster_ref: ClusterRef = Field(description="The KafkaCluster that it belongs to. Cannot be changed.")
    entity: EntitySpec = Field(description="Whom it limits. Cannot be changed.")
    limits: Limits = Field(description="How much they may do.")
    scope: Literal["PerBroker", "Cluster"] = Field(
        default="PerBroker",
        description="PerBroker: each broker allows the limits, as Kafka does. Cluster: they are divided among the"
        " brokers; the byte rates of a named entity by where the traffic is, where brokers tell it, and others evenly.",
    )
    mode: Literal["Enforce", "Observe"] = Field(
        default="Enforce",
        description="Enforce: brokers throttle. Observe: brokers measure against the limits, tell for how long they"
        " would have held somebody back, and throttle nobody.",
    )
    overrides: ListOf[Override] = Field(
        default=(),
        max_length=OVERRIDES_MAX,
        description="Other limits for a while; of several at once the last in the list wins. Brokers begin and end the"
        " one in force, or the next to begin, by themselves.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class RelatedQuota(Model):
    """Another quota that meets the same clients."""

    entity: str = Field(max_length=2 * ENTITY_NAME_LENGTH_MAX + 64, description="The other entity.")
    keys: ListOf[str] = Field(max_length=8, description="The limits that both set, by Kafka's keys.")
    clients: Literal["All", "Some"] = Field(
        description="All: every client of the one that loses. Some: those that both entities meet."
    )


class BrokerUsage(Model):
    """The use that the entity's clients made of one broker, rounded so that the status rests when they do."""

    broker: int = Field(ge=0, description="The broker's id.")
    producer_byte_rate: int | None = Field(default=None, ge=0, description="Bytes a second produced.")
    consumer_byte_rate: int | None = Field(default=None, ge=0, description="Bytes a second fetched.")
    throttled_seconds: int | None = Field(
        default=None,
        ge=0,
        description="Seconds in which at least one connection was held back since the broker started; those of"
        " producing and those of fetching are added.",
    )
    observed_seconds: int | None = Field(
        default=None,
        ge=0,
        description="Seconds in which an observed limit would have held somebody back, likewise.",
    )


class ClientQuotaStatus(Status):
    """The seen state of a quota."""

    entity: str | None = Field(default=None, max_length=2 * ENTITY_NAME_LENGTH_MAX + 64, description="The entity.")
    level: int | None = Field(
        default=None,
        ge=1,
        le=8,
        description="How specific the entity is: 1, user and client id by name, to 8, the default client id.",
    )
    applied: dict[str, float] = Field(
        default_factory=dict,
        max_length=KEYS_MAX,
        description="The values in Kafka, per broker, by its keys; kavka_ is before those of overrides and observing.",
    )
    applied_time: Moment | None = Field(default=None, description="When they were last changed.")
    unmanaged: dict[str, float] = Field(
        default_factory=dict,
        max_length=KEYS_MAX,
        description="Values of the entity in Kafka that this resource has not set, by Kafka's keys; they hold too.",
    )
    last_correction: Correction | None = Field(
        default=None, description="What somebody else had changed of it last, and was put back."
    )
    override: str | None = Field(default=None, max_length=1024, description="The reason of the override in force.")
    shadowed_by: ListOf[RelatedQuota] = Field(
        default=(),
        max_length=RELATED_MAX,
        description="Quotas that win over this one for clients that both meet.",
    )
    shadows: ListOf[RelatedQuota] = Field(
        default=(),
        max_length=RELATED_MAX,
        description="Quotas that this one wins over for clients that both meet.",
    )
    used: str | None = Field(
        default=None,
        max_length=16,
        description="How much of its limit the client uses that is nearest to it; 100% is at the limit.",
    )
    usage: ListOf[BrokerUsage] = Field(
        default=(),
        max_length=BROKERS_MAX,
        description="Usage, a line a broker.",
    )


class ClientQuota(Resource):
    """Limits for a kind of client."""

    kind_name: ClassVar[str] = "ClientQuota"
    plural: ClassVar[str] = "clientquotas"
    short_name: ClassVar[str] = "kvq"
    purpose: ClassVar[str] = "How much a user, a client id, a pair of both or an address may do on a Kafka cluster."
    selectable: ClassVar[tuple[str, ...]] = (".spec.clusterRef.name",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Cluster", ".spec.clusterRef.name"),
        Column("Entity", ".status.entity"),
        Column("Level", ".status.level", "integer"),
        Column("Produce", ".spec.limits.producerByteRate"),
        Column("Fetch", ".spec.limits.consumerByteRate"),
        Column("Used", ".status.used"),
        READY_COLUMN,
        REASON_COLUMN,
        Column("Not-Served", '.status.conditions[?(@.type=="NotServed")].reason'),
        Column("Requests", ".spec.limits.requestPercentage", priority=1),
        Column("Mutations", ".spec.limits.controllerMutationRate", priority=1),
        Column("Connections", ".spec.limits.connectionCreationRate", priority=1),
        Column("Mode", ".spec.mode", priority=1),
        Column("Scope", ".spec.scope", priority=1),
        MESSAGE_COLUMN,
        AGE_COLUMN,
    )

    api_version: Literal["kavka.dev/v1alpha1"] = API_VERSION  # type: ignore[assignment]
    kind: Literal["ClientQuota"] = "ClientQuota"
    metadata: Metadata
    spec: ClientQuotaSpec
    status: ClientQuotaStatus = Field(default_factory=ClientQuotaStatus)
