"""Whom a quota is set on, and what it limits.

A quota belongs to a user, to a client id, to a pair of both, or to the default of each; connection rates belong to an
IP address or to the default address, and rates of a topic to that topic. A principal may well be called "default" or
"<default>", and a client id may be empty, so neither the default nor the absence of a part is ever spelled as a string:
`DEFAULT` is a type of its own and an absent part is `None`. An entity is always keyed whole: a limit of (alice, etl)
says nothing about alice alone.

Nothing but the standard library is imported here, since the operator reads quotas with these types too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Final


class Default(Enum):
    """The type of `DEFAULT`, which stands for users or clients that have no quota by name."""

    DEFAULT = auto()

    def __repr__(self) -> str:
        return "DEFAULT"


class Prefix(str):
    """The beginning that many client ids have in common, with a star behind it (`core.quota.entity_limits`).

    It stands where a name stands, and equals none: a client may well be called "etl-*".
    """

    __slots__ = ()

    @classmethod
    def of(cls, text: str) -> "Prefix":
        return cls(f"{text}*")

    @property
    def text(self) -> str:
        """The beginning itself."""
        return self[:-1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prefix) and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((Prefix, str.__hash__(self)))


DEFAULT: Final = Default.DEFAULT
Part = str | Default | None  # a name, the default, or not part of the entity


class QuotaKey(StrEnum):
    """Keys of quotas, by Kafka's own names. All limits hold per broker; mutations on the active controller."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    REQUEST_PERCENTAGE = "request_percentage"
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
    CONNECTION_CREATION_RATE = "connection_creation_rate"


#: Keys whose limits are whole numbers, with the greatest that Kafka can hold.
WHOLE_KEYS: Final[Mapping[str, int]] = {
    QuotaKey.PRODUCER_BYTE_RATE: 2**63 - 1,
    QuotaKey.CONSUMER_BYTE_RATE: 2**63 - 1,
    QuotaKey.CONNECTION_CREATION_RATE: 2**31 - 1,
}
CLIENT_KEYS: Final = frozenset(QuotaKey) - {QuotaKey.CONNECTION_CREATION_RATE}
IP_KEYS: Final = frozenset({QuotaKey.CONNECTION_CREATION_RATE})


@dataclass(frozen=True, slots=True)
class Entity:
    """A user, a client id, or both; each by name or as the default."""

    user: Part = None
    client_id: Part = None

    def __str__(self) -> str:
        parts = (described("user", self.user), described("client id", self.client_id))
        return " with ".join(part for part in parts if part) or "nobody"


@dataclass(frozen=True, slots=True)
class IpEntity:
    """An address as the broker sees it, or the default address."""

    ip: str | Default = DEFAULT

    def __str__(self) -> str:
        return described("address", self.ip)


@dataclass(frozen=True, slots=True)
class TopicEntity:
    """What of a topic one broker serves: all of its partitions together, or each for itself."""

    topic: str
    each_partition: bool = False

    def __str__(self) -> str:
        return f"{'each partition of ' if self.each_partition else ''}{described('topic', self.topic)}"


def described(noun: str, part: Part) -> str:
    """Describe the part in words; a name is quoted: a user called "default" cannot pass for the default."""
    match part:
        case None:
            return ""
        case Default():
            return f"default {noun}"
        case Prefix():
            return f'{noun} that begins with "{part.text}"'
        case name:
            return f'{noun} "{name}"'
