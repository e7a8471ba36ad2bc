"""`Topic`: a topic of a Kafka cluster, its shape and its settings.

The resource owns what it declares and nothing more: a setting it does not name keeps whatever value it has. What
cannot be undone is refused or asked for by name: partitions that exist never become fewer, a topic outlives its
resource unless `deletionPolicy` says otherwise, and the guards stop changes that would delete or misplace records.
"""

from typing import ClassVar, Literal

from pydantic import Field

from kavka_operator.api import API_VERSION
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
    KafkaConfig,
    Metadata,
    Moment,
    Resource,
    Status,
)

PARTITIONS_MAX = 100_000
REPLICATION_FACTOR_MAX = 100
TOPIC_NAME_PATTERN = r"^[a-zA-Z0-9._-]+$"
TOPIC_NAME_LENGTH_MAX = 249
UNMANAGED_MAX = 100
INTERNAL_TOPICS = (
    "__consumer_offsets",
    "__transaction_state",
    "__cluster_metadata",
    "__share_group_state",
    "__audit_events",
)

DeletionPolicy = Literal["Retain", "Delete", "DeleteIfEmpty"]
Permission = Literal["Refuse", "Allow"]
THROTTLE_BYTES_PER_SECOND = 20 * 2**20
THROTTLED_BROKERS_MAX = 10_000


class Guards(Model):
    """Changes that lose or misplace records are refused until somebody allows them here."""

    compacted_growth: Permission = Field(
        default="Refuse",
        description="Adding partitions to a compacted topic. Keys move to other partitions, so that the newest value"
        " of a key may stand in two of them.",
    )
    retention_cut: Permission = Field(
        default="Refuse",
        description="Lowering retention.ms or retention.bytes of a topic that holds records, which may delete some.",
    )


class Placement(Model):
    """The places of replicas, beyond their number, and how fast they get there."""

    racks: Literal["Keep", "Spread"] = Field(
        default="Keep",
        description="Spread: replicas of a partition are moved until they are on as many racks as there can be, also"
        " after brokers have changed their racks. Keep: they stay where they are.",
    )
    brokers: Literal["Keep", "Balance"] = Field(
        default="Keep",
        description="Balance: each broker gets an equal part of the topic's replicas and preferred leaders, also one"
        " that is added later. Keep: they stay where they are.",
    )
    throttle: Quantity | None = Field(
        default=None,
        description="Bytes a second that each broker may send, and may receive, to copy replicas that this resource"
        " moves. Where several topics are moved, the least holds; where somebody has set the rate of a broker by hand,"
        f" that one. Left out: {THROTTLE_BYTES_PER_SECOND >> 20}Mi.",
    )


class Move(Model):
    """Replicas on their way. It is written before anything is throttled or moved, and gone when nothing is left."""

    since: Moment = Field(description="When it was decided on.")
    partitions: int = Field(ge=0, description="Partitions that it concerns.")
    partitions_done: int = Field(default=0, ge=0, description="Partitions whose replicas are where they are to be.")
    replicas_left: int = Field(default=0, ge=0, description="Replicas that are still being copied.")
    throttle: int = Field(
        ge=1, json_schema_extra={"format": "int64"}, description="Bytes a second for each throttled broker."
    )
    throttled_brokers: ListOf[int] = Field(
        default=(),
        max_length=THROTTLED_BROKERS_MAX,
        description="Brokers whose rate of replication is set for it; the rate is taken away at the end.",
    )


def _partitions_keep(new: "Topic", old: "Topic") -> bool:
    there, before, wanted = old.status.partitions or 0, old.spec.partitions or 0, new.spec.partitions or 0
    return wanted >= min(there, before)


class TopicSpec(Model):
    """The wanted state of a topic."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"!has(self.topicName) || !(self.topicName in {list(INTERNAL_TOPICS)})",
            message="is a topic of Kafka's own; choose another name",
            holds=lambda spec: spec.topic_name not in INTERNAL_TOPICS,
            path="topicName",
        ),
        Rule(
            cel="!has(self.topicName) || !(self.topicName in ['.', '..'])",
            message="cannot name a directory; choose another name",
            holds=lambda spec: spec.topic_name not in (".", ".."),
            path="topicName",
        ),
    )
    transitions: ClassVar[tuple[Transition, ...]] = (
        SAME_CLUSTER,
        Transition(
            cel="has(self.topicName) == has(oldSelf.topicName)"
            " && (!has(self.topicName) || self.topicName == oldSelf.topicName)",
            message="topicName is immutable; a Kafka topic cannot be renamed, so create another resource",
            holds=lambda new, old: new.topic_name == old.topic_name,
            path="topicName",
        ),
    )

    cluster_ref: ClusterRef = Field(description="The KafkaCluster that it belongs to. Cannot be changed.")
    topic_name: str | None = Field(
        default=None,
        min_length=1,
        max_length=TOPIC_NAME_LENGTH_MAX,
        pattern=TOPIC_NAME_PATTERN,
        description="The name in Kafka, where it differs from the resource's name. Cannot be changed.",
    )
    partitions: int | None = Field(
        default=None,
        ge=1,
        le=PARTITIONS_MAX,
        description="The number of partitions; never fewer than there are. Left out: num.partitions of the cluster.",
    )
    replication_factor: int | None = Field(
        default=None,
        ge=1,
        le=REPLICATION_FACTOR_MAX,
        description="The number of replicas of each partition. Left out: default.replication.factor of the cluster.",
    )
    config: KafkaConfig = Field(
        default_factory=dict,
        description="Settings of the topic, by Kafka's names. What is not named here is left as it is.",
    )
    deletion_policy: DeletionPolicy = Field(
        default="Retain",
        description="What happens to the topic when the resource is deleted: Retain keeps it, Delete deletes it with"
        " its records, DeleteIfEmpty deletes it only when it holds none.",
    )
    guards: Guards = Field(default_factory=Guards, description="What must be allowed by name before it is done.")
    placement: Placement = Field(
        default_factory=Placement, description="On which racks and brokers replicas are, and how fast they move."
    )


class TopicStatus(Status):
    """The seen state of a topic."""

    topic_name: str | None = Field(default=None, max_length=TOPIC_NAME_LENGTH_MAX, description="The name in Kafka.")
    topic_id: str | None = Field(
        default=None,
        max_length=22,
        description="Kafka's id of the topic that this resource created or adopted.",
    )
    partitions: int | None = Field(default=None, ge=0, description="Partitions that exist.")
    replication_factor: int | None = Field(default=None, ge=0, description="Replicas of each partition that exist.")
    under_replicated: int | None = Field(
        default=None, ge=0, description="Partitions with fewer replicas in sync than they have."
    )
    offline: int | None = Field(default=None, ge=0, description="Partitions without a leader.")
    managed_config: ListOf[str] = Field(
        default=(),
        max_length=256,
        description="Settings that this resource has set, so that one taken out of it goes back to its default.",
    )
    unmanaged_config: ListOf[str] = Field(
        default=(),
        max_length=UNMANAGED_MAX,
        description="Settings of the topic in Kafka that this resource has not set, with their values.",
    )
    move: Move | None = Field(default=None, description="Replicas that this resource has on their way.")
    last_correction: Correction | None = Field(
        default=None, description="What somebody else had changed of it last, and was put back."
    )


class Topic(Resource):
    """A topic of a Kafka cluster."""

    transitions: ClassVar[tuple[Transition, ...]] = (
        Transition(
            cel="!has(oldSelf.spec.partitions) || !has(oldSelf.status) || !has(oldSelf.status.partitions)"
            " || (has(self.spec.partitions) && (self.spec.partitions >= oldSelf.spec.partitions"
            " || self.spec.partitions >= oldSelf.status.partitions))",
            message="partitions may only grow; to have fewer, create another topic and move the records",
            holds=_partitions_keep,
            path="spec.partitions",
        ),
    )

    kind_name: ClassVar[str] = "Topic"
    plural: ClassVar[str] = "topics"
    short_name: ClassVar[str] = "kvt"
    purpose: ClassVar[str] = "A topic of a Kafka cluster: its partitions, replicas and settings."
    selectable: ClassVar[tuple[str, ...]] = (".spec.clusterRef.name",)
    scale: ClassVar[tuple[str, str] | None] = (".spec.partitions", ".status.partitions")
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Cluster", ".spec.clusterRef.name"),
        Column("Partitions", ".status.partitions", "integer"),
        Column("Replicas", ".status.replicationFactor", "integer"),
        READY_COLUMN,
        REASON_COLUMN,
        Column("Under-replicated", ".status.underReplicated", "integer", priority=1),
        Column("Topic-ID", ".status.topicId", priority=1),
        MESSAGE_COLUMN,
        AGE_COLUMN,
    )

    api_version: Literal["kavka.dev/v1alpha1"] = API_VERSION  # type: ignore[assignment]
    kind: Literal["Topic"] = "Topic"
    metadata: Metadata
    spec: TopicSpec
    status: TopicStatus = Field(default_factory=TopicStatus)

    @property
    def topic_name(self) -> str:
        """The name in Kafka."""
        return self.spec.topic_name or self.metadata.name
