"""What all models of resources share: strict fields in camelCase, rules that hold in both worlds, conditions.

A rule between fields is written once, as a `Rule`: a CEL expression for the API server and the same rule as a Python
function for resource files. Both give the same message. The tests run a table of good and bad objects against the
Python half; the API server's tests run the same table against the CEL half.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
NAME_LENGTH_MAX = 63
CONDITIONS_MAX = 16
MESSAGE_LENGTH_MAX = 32_768
CONFIG_ENTRIES_MAX = 256
CONFIG_VALUE_LENGTH_MAX = 4096


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a valid object keeps: `cel` for the API server, `holds` for us. `path` is where to complain.

    `told` says it of the object at hand, where that is shorter than what can be said of all.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool]
    path: str = ""
    told: Callable[[Any], str] | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """A rule between an object and what it was before."""

    cel: str
    message: str
    holds: Callable[[Any, Any], bool]
    path: str = ""


def rule_schema(rule: Rule | Transition) -> dict[str, str]:
    """A rule as it stands in a CRD."""
    place = {"fieldPath": f".{rule.path.split('.')[0]}"} if rule.path else {}
    return {"rule": rule.cel, "message": rule.message, "reason": "FieldValueInvalid", **place}


class BrokenRuleError(ValueError):
    """A `Rule` does not hold; `path` is the field that the complaint is about."""

    def __init__(self, rule: Rule, broken: object) -> None:
        super().__init__(rule.message if rule.told is None else rule.told(broken))
        self.path = rule.path


class Model(BaseModel):
    """A part of a resource: no unknown fields, no silent conversions, never changed in place."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        strict=True,
    )
    rules: ClassVar[tuple[Rule, ...]] = ()
    transitions: ClassVar[tuple[Transition, ...]] = ()

    @model_validator(mode="after")
    def _keep_rules(self) -> Self:
        for rule in self.rules:
            if not rule.holds(self):
                raise BrokenRuleError(rule, self)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema, with the rules beside it for the generator of CRDs."""
        schema = handler.resolve_ref_schema(handler(core))
        if validations := [*map(rule_schema, cls.rules), *map(rule_schema, cls.transitions)]:
            schema["x-kubernetes-validations"] = validations
        return schema

    def forbidden_changes(self, old: Self) -> Iterator[Transition]:
        """The rules that a change from `old` to this resource would break."""
        return (transition for transition in self.transitions if not transition.holds(self, old))

    def to_dict(self) -> dict[str, Any]:
        """The map for a resource: keys in camelCase, without fields that are unset."""
        return self.model_dump(by_alias=True, exclude_none=True, mode="json")


def _config_value(value: object) -> str:
    """A setting as text. Raises ValueError."""
    match value:
        case bool():
            raise ValueError(f'{str(value).lower()} is not text; write "{str(value).lower()}" in quotes')
        case float():
            raise ValueError(f'{value} is not text; write "{value}" in quotes')
        case int() | str():
            return str(value)
        case _:
            raise ValueError("is not a value; write text or a whole number")


ConfigValue = Annotated[
    str,
    BeforeValidator(_config_value),
    Field(max_length=CONFIG_VALUE_LENGTH_MAX),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "maxLength": CONFIG_VALUE_LENGTH_MAX}),
]
KafkaConfig = Annotated[dict[str, ConfigValue], Field(max_length=CONFIG_ENTRIES_MAX)]
"""Settings by Kafka's own names. Numbers may stand without quotes; true and false need them."""

ResourceName = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX, pattern=NAME_PATTERN)]


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
            return value.astimezone(UTC)
        case _:
            raise ValueError("is not a time; write it as 2026-11-21T13:00:00Z")


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
    tuple[Condition, ...],
    Field(
        max_length=CONDITIONS_MAX,
        strict=False,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]


class Status(Model):
    """What every status begins with."""

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
    message: str = Field(max_length=MESSAGE_LENGTH_MAX, description="What it was.")


class Metadata(Model):
    """The part of metadata that a file may carry or an API server sends."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    name: ResourceName
    namespace: ResourceName = "default"
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    uid: str = ""
    generation: int = 1
    creation_timestamp: Moment | None = None
    deletion_timestamp: Moment | None = None
    finalizers: list[str] = Field(default_factory=list)
    resource_version: str | None = None
    generate_name: str | None = None
    self_link: str | None = None
    deletion_grace_period_seconds: int | None = None
    managed_fields: list[dict[str, Any]] = Field(default_factory=list)
    owner_references: list[dict[str, Any]] = Field(default_factory=list)


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
