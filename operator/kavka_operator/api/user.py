"""`KafkaUser`: who may log in to a Kafka cluster, what they may do there, and how much.

One resource holds what belongs together of a user: how it logs in, its access rules (ACLs) and its quota. It owns what
it declares and nothing more: an access rule that somebody else has made for the same user stays, and the status names
it. No password stands in a resource or in its status: it is in a Secret.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kavka_broker.core.quota.entity import Entity
from kavka_operator.api import API_VERSION
from kavka_operator.api.external import KEY_PATTERN, SecretName
from kavka_operator.api.model import ListOf, Model, Rule, Transition, Unique
from kavka_operator.api.quantity import Quantity
from kavka_operator.api.quota import (
    ENTITY_NAME_LENGTH_MAX,
    INTERNAL_USERS,
    KEYS_MAX,
    ClientQuota,
    ClientQuotaSpec,
    Limits,
    Positive,
)
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

ACLS_MAX = 128
OPERATIONS_MAX = 16
BINDINGS_MAX = ACLS_MAX * OPERATIONS_MAX
RESOURCE_NAME_LENGTH_MAX = 1024
BINDING_LENGTH_MAX = 2 * RESOURCE_NAME_LENGTH_MAX
FOREIGN_MAX = 100
ROTATE_LENGTH_MAX = 64
DAYS_MAX = 3650
CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type Cluster."""
EVERY_HOST = "*"

ResourceType = Literal["Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User"]
PatternType = Literal["Literal", "Prefixed"]
Permission = Literal["Allow", "Deny"]
Operation = Literal[
    "All",
    "Read",
    "Write",
    "Create",
    "Delete",
    "Alter",
    "Describe",
    "ClusterAction",
    "DescribeConfigs",
    "AlterConfigs",
    "IdempotentWrite",
    "CreateTokens",
    "DescribeTokens",
    "TwoPhaseCommit",
]
OPERATIONS: dict[str, tuple[str, ...]] = {
    "Topic": ("Read", "Write", "Create", "Delete", "Alter", "Describe", "DescribeConfigs", "AlterConfigs"),
    "Group": ("Read", "Delete", "Describe", "DescribeConfigs", "AlterConfigs"),
    "Cluster": ("Create", "Alter", "Describe", "ClusterAction", "DescribeConfigs", "AlterConfigs", "IdempotentWrite"),
    "TransactionalId": ("Write", "Describe", "TwoPhaseCommit"),
    "DelegationToken": ("Describe",),
    "User": ("CreateTokens", "DescribeTokens"),
}
"""The operations that Kafka ever asks about on a resource, beside All."""

AuthenticationType = Literal["scram-sha-512", "scram-sha-256", "tls", "external"]
MECHANISMS = {"scram-sha-512": "SCRAM-SHA-512", "scram-sha-256": "SCRAM-SHA-256"}
"""Kafka's name of the mechanism by which a user logs in with a password of ours."""


class PasswordRef(Model):
    """A password that somebody else keeps in a Secret."""

    name: SecretName = Field(description="The name of the Secret, in the namespace of the KafkaUser.")
    key: str = Field(
        default="password", min_length=1, max_length=253, pattern=KEY_PATTERN, description="The key with the password."
    )


def _has_password(part: "Authentication") -> bool:
    return part.type in MECHANISMS


def _makes_password(part: "Authentication") -> bool:
    return _has_password(part) and part.password_from is None


def _says_nothing_of_passwords(part: "Authentication") -> bool:
    about = (part.secret_name, part.password_from, part.rotate, part.rotate_after_days)
    return about == (None, None, None, None)


class Authentication(Model):
    """The way in which a user logs in."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.type.startsWith('scram-') || !(has(self.secretName) || has(self.passwordFrom)"
            " || has(self.rotate) || has(self.rotateAfterDays))",
            message="has no password of ours, so that secretName, passwordFrom, rotate and rotateAfterDays say nothing;"
            " take them out, or write scram-sha-512",
            holds=lambda part: _has_password(part) or _says_nothing_of_passwords(part),
            path="type",
        ),
        Rule(
            cel="!has(self.passwordFrom) || !(has(self.secretName) || has(self.rotate) || has(self.rotateAfterDays))",
            message="names the Secret of somebody else, where the password is changed; take out secretName, rotate and"
            " rotateAfterDays",
            holds=lambda part: (
                part.password_from is None or (part.secret_name, part.rotate, part.rotate_after_days) == (None,) * 3
            ),
            path="passwordFrom",
        ),
    )

    type: AuthenticationType = Field(
        default="scram-sha-512",
        description="scram-sha-512, scram-sha-256: by a password, which is made and kept in a Secret. tls: by a"
        " certificate that somebody else issues, whose subject is userName. external: by something that the operator"
        " has no part in, such as an OAUTHBEARER token.",
    )
    secret_name: SecretName | None = Field(
        default=None,
        description="The name of the Secret that is made, in the namespace of the KafkaUser, where it differs from the"
        " resource's name.",
    )
    password_from: PasswordRef | None = Field(
        default=None, description="A Secret with the password. Left out: one is made, with 32 random characters."
    )
    rotate: str | None = Field(
        default=None,
        max_length=ROTATE_LENGTH_MAX,
        description="Any text, such as a date. Another text than before makes a new password.",
    )
    rotate_after_days: int | None = Field(
        default=None, ge=1, le=DAYS_MAX, description="The age at which a password is replaced by a new one."
    )


class AclResource(Model):
    """The resources of Kafka that an access rule is about."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.type == 'Cluster' ? (!has(self.name) || self.name == 'kafka-cluster') : has(self.name)",
            message="needs a name; of type Cluster there is only kafka-cluster, which may be left out",
            holds=lambda part: part.name in {None, CLUSTER_NAME} if part.type == "Cluster" else part.name is not None,
            path="name",
        ),
        Rule(
            cel="self.type != 'Cluster' || self.patternType == 'Literal'",
            message="of type Cluster there is only one, so that no prefix names more; write Literal",
            holds=lambda part: part.type != "Cluster" or part.pattern_type == "Literal",
            path="patternType",
        ),
    )

    type: ResourceType = Field(description="Its type, in Kafka's words.")
    name: str | None = Field(
        default=None,
        min_length=1,
        max_length=RESOURCE_NAME_LENGTH_MAX,
        description='Its name, or how names begin; "*" as a Literal is any.',
    )
    pattern_type: PatternType = Field(
        default="Literal", description="Literal: the resource of this name. Prefixed: those whose names begin so."
    )


def _operations_fit(acl: "Acl") -> bool:
    return {*acl.operations} <= {"All", *OPERATIONS[acl.resource.type]}


class Acl(Model):
    """An access rule."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            # A list out of a map has no size that an API server knows, and it refuses what may cost too much.
            cel="self.operations.all(one, one == 'All' || "
            + " || ".join(f"self.resource.type == '{kind}' && one in {list(of)}" for kind, of in OPERATIONS.items())
            + ")",
            message="names an operation that Kafka never asks about on such a resource; it would allow nothing",
            holds=_operations_fit,
            path="operations",
            told=lambda acl: (
                f"{', '.join(sorted({*acl.operations} - {'All', *OPERATIONS[acl.resource.type]}))} is never asked about"
                f" on a {acl.resource.type}; write some of All, {', '.join(OPERATIONS[acl.resource.type])}"
            ),
        ),
    )

    resource: AclResource = Field(description="What it is about.")
    operations: Annotated[ListOf[Operation], Field(min_length=1, max_length=OPERATIONS_MAX), Unique()] = Field(
        description="What is allowed or denied, in Kafka's words.",
    )
    host: str = Field(
        default=EVERY_HOST,
        min_length=1,
        max_length=253,
        pattern=r"^[0-9a-zA-Z.:*/_-]+$",
        description='The address that the user has to come from; "*" is any. Kavka takes networks too: 10.0.0.0/8.',
    )
    permission: Permission = Field(default="Allow", description="Deny wins over any Allow.")


class UserQuotas(Model):
    """Upper limits of the user on each broker. What is left out is not limited by this resource."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.producerByteRate) || has(self.consumerByteRate) || has(self.requestPercentage)"
            " || has(self.controllerMutationRate)",
            message="limits nothing; set at least one of producerByteRate, consumerByteRate, requestPercentage,"
            " controllerMutationRate",
            holds=lambda limits: any(value is not None for value in limits.__dict__.values()),
        ),
    )

    producer_byte_rate: Quantity | None = Field(default=None, description="Bytes a second that it may produce.")
    consumer_byte_rate: Quantity | None = Field(default=None, description="Bytes a second that it may fetch.")
    request_percentage: Positive | None = Field(
        default=None,
        description="Share of the broker's request time, in per cent of one loop. May be above 100.",
    )
    controller_mutation_rate: Positive | None = Field(
        default=None, description="Partitions a second that it may create or delete."
    )


def _name_stays(new: "KafkaUserSpec", old: "KafkaUserSpec") -> bool:
    """Whether the name that follows from the resource's own is the same: by a certificate it is a subject."""
    if new.user_name != old.user_name:
        return False
    return new.user_name is not None or (new.authentication.type == "tls") == (old.authentication.type == "tls")


class KafkaUserSpec(Model):
    """The wanted state of a user."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.userName) || self.userName != '*'",
            message="is everybody, and no user; write the name of one",
            holds=lambda spec: spec.user_name != "*",
            path="userName",
        ),
        Rule(
            cel=f"!has(self.userName) || !(self.userName in {list(INTERNAL_USERS)})",
            message="is a user of the cluster itself, nodes or the operator; name another",
            holds=lambda spec: spec.user_name not in INTERNAL_USERS,
            path="userName",
        ),
    )
    transitions: ClassVar[tuple[Transition, ...]] = (
        SAME_CLUSTER,
        Transition(
            cel="has(self.userName) == has(oldSelf.userName)"
            " && (has(self.userName) ? self.userName == oldSelf.userName"
            " : (self.authentication.type == 'tls') == (oldSelf.authentication.type == 'tls'))",
            message="the name of the user is immutable, and by tls it is CN= with the resource's name where userName is"
            " left out; create another resource",
            holds=_name_stays,
            path="userName",
        ),
    )

    cluster_ref: ClusterRef = Field(description="The KafkaCluster that it belongs to. Cannot be changed.")
    user_name: str | None = Field(
        default=None,
        min_length=1,
        max_length=ENTITY_NAME_LENGTH_MAX,
        description="The name of the user in Kafka, without the User: prefix. Left out: the resource's name, and by tls"
        " CN= with it. Cannot be changed.",
    )
    authentication: Authentication = Field(default_factory=Authentication, description="How it logs in.")
    acls: ListOf[Acl] = Field(
        default=(),
        max_length=ACLS_MAX,
        description="What it may do, and what not. Only these are made, and taken away again.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    quotas: UserQuotas | None = Field(
        default=None, description="How much it may do on each broker, as a ClientQuota for the user says it."
    )
    deletion_policy: Literal["Delete", "Retain"] = Field(
        default="Delete",
        description="What becomes of the user when the resource is deleted. Delete: its password, access rules and"
        " limits go, as far as they are of this resource. Retain: they stay.",
    )


class CredentialStatus(Model):
    """The password that is in force; nothing can be read from it about the password."""

    mechanism: str = Field(max_length=32, description="Kafka's name of the mechanism.")
    iterations: int = Field(
        ge=1, description="How often it was hashed: drawn with each password, so that one of somebody else's is told."
    )
    secret_version: str = Field(
        max_length=128,
        description="Which state of the Secret is in force: a keyed sum, whose key is in the Secret alone.",
    )
    rotate: str | None = Field(
        default=None, max_length=ROTATE_LENGTH_MAX, description="The text of rotate that it was made for."
    )
    made: Moment | None = Field(default=None, description="When it was made, where the operator has made it.")
    time: Moment = Field(description="When it was set in Kafka.")


class KafkaUserStatus(Status):
    """The seen state of a user."""

    user_name: str | None = Field(default=None, max_length=ENTITY_NAME_LENGTH_MAX, description="The name in Kafka.")
    secret: str | None = Field(
        default=None, max_length=4096, description="Where its password is: a Secret, or on one machine a directory."
    )
    credential: CredentialStatus | None = Field(default=None, description="The password that this resource has set.")
    acls: ListOf[str] = Field(
        default=(),
        max_length=BINDINGS_MAX,
        description="Access rules that this resource has made or taken over: permission, operation, type, pattern, host"
        " and name.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    acl_count: int | None = Field(default=None, ge=0, description="The number of these rules.")
    unmanaged_acls: ListOf[str] = Field(
        default=(),
        max_length=FOREIGN_MAX,
        description="Access rules of the user in Kafka that this resource does not declare; they hold too.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    quotas: dict[str, float] = Field(
        default_factory=dict, max_length=KEYS_MAX, description="The limits in Kafka that this resource has set."
    )
    unmanaged_quotas: dict[str, float] = Field(
        default_factory=dict,
        max_length=KEYS_MAX,
        description="Limits of the user in Kafka that this resource has not set; they hold too.",
    )
    last_correction: Correction | None = Field(
        default=None, description="What somebody else had changed of it last, and was put back."
    )


class KafkaUser(Resource):
    """A user of a Kafka cluster."""

    kind_name: ClassVar[str] = "KafkaUser"
    plural: ClassVar[str] = "kafkausers"
    short_name: ClassVar[str] = "kvu"
    purpose: ClassVar[str] = "Who may log in to a Kafka cluster, what they may do there, and how much."
    selectable: ClassVar[tuple[str, ...]] = (".spec.clusterRef.name",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Cluster", ".spec.clusterRef.name"),
        Column("User", ".status.userName"),
        Column("Login", ".spec.authentication.type"),
        Column("ACLs", ".status.aclCount", "integer"),
        READY_COLUMN,
        REASON_COLUMN,
        Column("Secret", ".status.secret", priority=1),
        Column("Password-Set", ".status.credential.time", "date", priority=1),
        MESSAGE_COLUMN,
        AGE_COLUMN,
    )

    api_version: Literal["kavka.dev/v1alpha1"] = API_VERSION  # type: ignore[assignment]
    kind: Literal["KafkaUser"] = "KafkaUser"
    metadata: Metadata
    spec: KafkaUserSpec
    status: KafkaUserStatus = Field(default_factory=KafkaUserStatus)

    @property
    def user_name(self) -> str:
        """The name in Kafka."""
        prefix = "CN=" if self.spec.authentication.type == "tls" else ""
        return self.spec.user_name or f"{prefix}{self.metadata.name}"

    @property
    def principal(self) -> str:
        """The user as access rules name it."""
        return f"User:{self.user_name}"

    @property
    def mechanism(self) -> str | None:
        """Kafka's name of the mechanism that a password of ours is for; None where it has none."""
        return MECHANISMS.get(self.spec.authentication.type)

    @property
    def makes_password(self) -> bool:
        """Whether its password is made here, and kept in a Secret of our own."""
        return _makes_password(self.spec.authentication)

    @property
    def secret_name(self) -> str:
        """The name of the Secret with its password."""
        said = self.spec.authentication
        return said.password_from.name if said.password_from is not None else said.secret_name or self.metadata.name


class QuotaOfUser(ClientQuota):
    """The limits of a KafkaUser, as the ClientQuota that would say the same. It is never stored."""

    kind_name: ClassVar[str] = "KafkaUser"


def quota_of(user: KafkaUser) -> QuotaOfUser | None:
    """The limits of a user as a quota; None where it has none and had none."""
    limits, applied = user.spec.quotas, user.status.quotas
    if limits is None:
        return None
    spec = ClientQuotaSpec(
        cluster_ref=user.spec.cluster_ref,
        entity={"user": {"name": user.user_name}},  # type: ignore[arg-type]
        limits=Limits(**limits.__dict__),
    )
    return QuotaOfUser(
        metadata=user.metadata,
        spec=spec,
        status={"applied": dict(applied)},  # type: ignore[arg-type]
    )


def entity_of_user(user: KafkaUser) -> Entity:
    """The entity that the limits of a user are set for."""
    return Entity(user=user.user_name)
