"""Clients with one right each, or with a pair that is easily judged wrong: each has an address of its own."""

from typing import Final

from kavka_broker.core.authorization.acl_types import Operation as Op
from kavka_broker.protocol.messages.create_acls_request import AclCreation
from tests.conformance.authorization.requests import GROUP, TOPIC

DENY, ALLOW = 2, 3
LITERAL, PREFIXED = 3, 4
EVERYBODY: Final = "User:*"
ON_TOPIC = (Op.READ, Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS)
ON_GROUP = (Op.READ, Op.DELETE, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS)
ON_CLUSTER = (
    Op.ALL,
    Op.CREATE,
    Op.DELETE,
    Op.ALTER,
    Op.DESCRIBE,
    Op.CLUSTER_ACTION,
    Op.DESCRIBE_CONFIGS,
    Op.ALTER_CONFIGS,
    Op.IDEMPOTENT_WRITE,
)
Right = tuple[int, str, Op, int, int, str]


def topic(
    operation: Op, name: str = TOPIC, permission: int = ALLOW, pattern: int = LITERAL, who: str = EVERYBODY
) -> Right:
    return (2, name, operation, permission, pattern, who)


def group(operation: Op) -> Right:
    return (3, GROUP, operation, ALLOW, LITERAL, EVERYBODY)


def cluster(operation: Op, permission: int = ALLOW, name: str = "kafka-cluster", pattern: int = LITERAL) -> Right:
    return (4, name, operation, permission, pattern, EVERYBODY)


PROFILES: Final[dict[str, list[Right]]] = {
    **{f"{operation.name} of a topic": [topic(operation)] for operation in ON_TOPIC},
    **{f"{operation.name} of a group": [group(operation)] for operation in ON_GROUP},
    **{f"{operation.name} of the cluster": [cluster(operation)] for operation in ON_CLUSTER},
    "ALL of the cluster, but not ALTER": [cluster(Op.ALL), cluster(Op.ALTER, DENY)],
    "ALL of the cluster, but no topic": [cluster(Op.ALL), topic(Op.ALL, "*", DENY)],
    "ALL of topics, but not DESCRIBE of one": [topic(Op.ALL, "*"), topic(Op.DESCRIBE, TOPIC, DENY)],
    "ALL of topics, but not DELETE of one": [topic(Op.ALL, "*"), topic(Op.DELETE, TOPIC, DENY)],
    "ALL of topics, but not READ of a prefix": [topic(Op.ALL, "*"), topic(Op.READ, TOPIC[:3], DENY, PREFIXED)],
    "ALL of a prefix of one letter": [topic(Op.ALL, TOPIC[0], pattern=PREFIXED)],
    "ALL of topics that begin with a star": [topic(Op.ALL, "*", pattern=PREFIXED)],
    "WRITE of a prefix, but not of one topic": [
        topic(Op.WRITE, TOPIC[:3], pattern=PREFIXED),
        topic(Op.WRITE, TOPIC, DENY),
    ],
    "WRITE of a prefix, but not of a shorter one": [
        topic(Op.WRITE, TOPIC[:3], pattern=PREFIXED),
        topic(Op.WRITE, TOPIC[0], DENY, PREFIXED),
    ],
    "ALL of topics, for another kind of principal": [topic(Op.ALL, "*", who="Group:ANONYMOUS")],
    "ALL of topics, for a principal in small letters": [topic(Op.ALL, "*", who="user:ANONYMOUS")],
}


def address_of(profile: str) -> str:
    """The address from which the client with these rights comes."""
    return f"127.0.1.{list(PROFILES).index(profile) + 1}"


def rules_of_profiles() -> list[AclCreation]:
    return [
        AclCreation(kind, name, pattern, who, address_of(profile), operation, permission)
        for profile, rights in PROFILES.items()
        for kind, name, operation, permission, pattern, who in rights
    ]
