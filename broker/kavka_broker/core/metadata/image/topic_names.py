"""Which names a topic may have: Kafka's rules, since a topic's name is a directory and a metric."""

from typing import Final

from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.protocol.errors import BrokerError, ErrorCode

LENGTH_MAX: Final = 249  # with "-" and a partition number it is still a file name
LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")

METADATA_TOPIC: Final = "__cluster_metadata"
AUDIT_TOPIC: Final = "__audit_events"
OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"
#: Topics that the broker keeps for itself; clients see them marked as internal.
INTERNAL: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC, AUDIT_TOPIC})
#: Topics in which a key's partition follows from their number: with another number no key is found where it was.
HASHED: Final = INTERNAL - {AUDIT_TOPIC}
assert all(map(LEGAL.issuperset, INTERNAL)), "a topic of the broker's own has no name that a topic may have"


def problem_with(name: str) -> str | None:
    """The fault of a name, or None."""
    if not name:
        return "a topic needs a name"
    if name in (".", ".."):
        return f'"{name}" is a directory; choose another name'
    if len(name) > LENGTH_MAX:
        return f"the name has {len(name)} characters; {LENGTH_MAX} are allowed"
    if not LEGAL.issuperset(name):
        return f'"{name}" has other characters than letters of ASCII, digits, ".", "_" and "-"'
    return None


def check_new_name(name: str, topics: Topics) -> None:
    """Check that a topic of this name can be created. Raises BrokerError."""
    if name == METADATA_TOPIC:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{name} is the log of the controllers; choose another name")
    if (problem := problem_with(name)) is not None:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if topics.get(name) is not None:
        raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if (other := topics.colliding(name)) is not None:
        problem = f"'{name}' differs from topic '{other}' only in dots and underscores, which metrics cannot show"
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
