"""What all resources share: names, settings, moments, conditions, metadata, and how a kind says what it is."""

from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from kavka_operator.api.error_messages import DOTTED_NAME_PATTERN, HOST_NAME_PATTERN, NAME_PATTERN
from kavka_operator.api.model import ListOf, Model, Transition, Unique

NAME_LENGTH_MAX = 63
RESOURCE_NAME_LENGTH_MAX = 170  # with a kind and a namespace it is the name of a file
CONDITIONS_MAX = 16
MESSAGE_LENGTH_MAX = 32_768
CONFIG_ENTRIES_MAX = 256
CONFIG_VALUE_LENGTH_MAX = 4096


def _config_value(value: object) -> str:
    """A setting as text. Raises ValueError."""
    match value:
        case bool():
            raise ValueError(f'{str(value).lower()} is not text; write "{str(value).lower()}" in quotes')
        case float() if isfinite(value):
            return str(int(value)) if value.is_integer() else str(value)
        case float():
            raise ValueError(f"{value} is not a value; write a number")
        case int() | str():
            return str(value)
        case _:
            raise ValueError("is not a value; write text or a number")


ConfigValue = Annotated[
    str,
    Field(max_length=CONFIG_VALUE_LENGTH_MAX),
    BeforeValidator(_config_value),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "maxLength": CONFIG_VALUE_LENGTH_MAX}),
]
KafkaConfig = Annotated[dict[str, ConfigValue], Field(max_length=CONFIG_ENTRIES_MAX)]
"""Settings by Kafka's own names. Numbers need no quotes, also as Helm writes them; true and false do."""

Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX, pattern=NAME_PATTERN)]
HostName = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX, pattern=HOST_NAME_PATTERN)]
"""A name that stands in host names."""
ResourceName = Annotated[str, Field(min_length=1, max_length=RESOURCE_NAME_LENGTH_MAX, pattern=DOTTED_NAME_PATTERN)]


def _moment(value: object) -> datetime:
    """A moment with a time zone, in UTC, from text (RFC 3339) or a datetime of YAML's. Raises ValueError."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            value = None
    match value:
        case datetime(tzinfo=None):
            raise ValueError(f'has no time zone; write "{value.isoformat()}Z" for UTC')
        case datetime():
            return _in_utc(value)
        case _:
            raise ValueError("is not a time; write it as 2026-11-21T13:00:00Z")


def _in_utc(moment: datetime) -> datetime:
    """The moment in UTC. Raises ValueError where UTC's year is none from 1 to 9999."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is out of range; write a time from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z") from None


Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]


class Condition(Model):
    """One observation about the resource (metav1.Condition)."""

    type: str = Field(max_length=316, description="What is observed, such as Ready.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it is so.")
    reason: str = Field(
        min_length=1,
        max_length=1024,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        description="Why, in one CamelCase word.",
    )
    message: str = Field(
        max_length=MESSAGE_LENGTH_MAX, description="Why, for a person: what, where, since when, what to do."
    )
    observed_generation: int | None = Field(
        default=None,
        ge=0,
        json_schema_extra={"format": "int64"},
        description="The generation of the resource that this was said of.",
    )
    last_transition_time: Moment = Field(description="When the status last changed.")


Conditions = Annotated[
    ListOf[Condition],
    Field(max_length=CONDITIONS_MAX),
    Unique("type"),
]


class Status(Model):
    """Fields with which every status begins."""

    observed_generation: int | None = Field(
        default=None,
        ge=0,
        json_schema_extra={"format": "int64"},
        description="The generation of the resource that this status was computed from.",
    )
    conditions: Conditions = Field(
        default=(),
        description="Ready always; Reconciling and Stalled while they are true; others as they apply.",
    )

    def condition(self, kind: str) -> Condition | None:
        """The condition of this type, if it has been observed."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


class Correction(Model):
    """A change by somebody else that was put back."""

    time: Moment = Field(description="When it was put back.")
    message: str = Field(max_length=MESSAGE_LENGTH_MAX, description="Each setting: what it was, and what it is again.")


class ClusterRef(Model):
    """The KafkaCluster that a resource belongs to."""

    name: HostName = Field(description="The name of the KafkaCluster.")
    namespace: Name | None = Field(
        default=None,
        description="Its namespace, where that is not the resource's own; spec.grants of the KafkaCluster has to"
        " allow it.",
    )


SAME_CLUSTER = Transition(
    cel="self.clusterRef == oldSelf.clusterRef",
    message="clusterRef is immutable; delete the resource and create one for the other cluster",
    holds=lambda new, old: new.cluster_ref == old.cluster_ref,
    path="clusterRef",
)


class Metadata(Model):
    """The part of metadata that a file may carry or an API server sends."""

    name: ResourceName = Field(description="The name of the resource.")
    namespace: Name = "default"
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    uid: str = ""
    generation: int = 1
    creation_timestamp: Moment | None = None
    deletion_timestamp: Moment | None = None
    finalizers: ListOf[str] = ()
    resource_version: str | None = None
    generate_name: str | None = None
    self_link: str | None = None
    deletion_grace_period_seconds: int | None = None
    managed_fields: ListOf[dict[str, Any]] = ()
    owner_references: ListOf[dict[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get` and `kavka get`. `priority` 1 shows with `-o wide` only."""

    name: str
    path: str
    kind: Literal["string", "integer", "number", "boolean", "date"] = "string"
    priority: int = 0


READY_COLUMN = Column("Ready", '.status.conditions[?(@.type=="Ready")].status')
REASON_COLUMN = Column("Reason", '.status.conditions[?(@.type=="Ready")].reason')
MESSAGE_COLUMN = Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1)
AGE_COLUMN = Column("Age", ".metadata.creationTimestamp", "date")


class Resource(Model):
    """A custom resource: metadata, what is wanted, what is seen."""

    kind_name: ClassVar[str]
    plural: ClassVar[str]
    short_name: ClassVar[str]
    purpose: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    selectable: ClassVar[tuple[str, ...]] = ()  # paths for field selectors
    scale: ClassVar[tuple[str, str] | None] = None  # paths of what `kubectl scale` sets, and of what there is

    api_version: str
    kind: str
    metadata: Metadata

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def identity(self) -> str:
        """The resource as messages name it: `Topic "flights"`."""
        return f'{self.kind_name} "{self.metadata.name}"'

    @property
    def seniority(self) -> tuple[datetime, str, str]:
        """Orders resources that claim the same thing: the smaller is older and wins."""
        created = self.metadata.creation_timestamp or datetime.max.replace(tzinfo=UTC)
        return created, self.metadata.namespace, self.metadata.name
