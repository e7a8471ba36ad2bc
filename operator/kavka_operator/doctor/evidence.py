"""What was read of a Kafka, as plain values, and what the rules say of it.

What a cluster did not tell is None or absent, and its question stands in `untold`: a rule is silent about it, so that a
cluster that hides something is not called healthy there, and not called ill either.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain.name_lists import some
from kavka_operator.domain.transactions import OpenTransaction

PartitionKey = tuple[str, int]


class Severity(IntEnum):
    """The weight of a finding: what is broken now, what breaks next, what is worth a look."""

    NOTE = 0
    WARNING = 1
    CRITICAL = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: what, how it is known, and what to do."""

    severity: Severity
    code: str
    what: str
    evidence: str
    fix: str


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log directory of a broker. `fullness` is 1.0 with no byte left."""

    path: str
    error: str | None = None
    fullness: float | None = None


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that answers. `settings` are all that it tells, `log_dirs` None where it does not tell them."""

    id: int
    rack: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    log_dirs: Sequence[LogDir] | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition. `start` and `end` are its first and next offset, None where they are not told."""

    topic: str
    index: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start: int | None = None
    end: int | None = None

    @property
    def key(self) -> PartitionKey:
        return self.topic, self.index

    @property
    def name(self) -> str:
        """The partition as messages name it: orders-7."""
        return f"{self.topic}-{self.index}"


@dataclass(frozen=True, slots=True)
class Group:
    """A group that commits offsets. `members` is None where it does not tell them. Of a share group `committed` are its
    start offsets, and `lags` its records there that are yet to be read, None where that is not known; of other groups
    `lags` is None.
    """

    name: str
    state: str
    members: int | None
    committed: Mapping[PartitionKey, int] = field(default_factory=dict)
    lags: Mapping[PartitionKey, int | None] | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """A cluster at one moment. `settings` are those of topics, with defaults; `internal` are Kafka's own topics."""

    brokers: Sequence[Broker] = ()
    partitions: Sequence[Partition] = ()
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    internal: frozenset[str] = frozenset()
    quotas: Mapping[AnyEntity, Mapping[str, float]] = field(default_factory=dict)
    groups: Sequence[Group] | None = None
    transactions: Sequence[OpenTransaction] | None = None
    untold: tuple[str, ...] = ()

    def by_topic(self) -> dict[str, list[Partition]]:
        """The partitions of each topic."""
        found: dict[str, list[Partition]] = {}
        for partition in self.partitions:
            found.setdefault(partition.topic, []).append(partition)
        return found

    def number(self, topic: str, key: str) -> int | None:
        """A setting of a topic that is a whole number; None where it is not told, or is none."""
        text = self.settings.get(topic, {}).get(key, "")
        return int(text) if text.removeprefix("-").isdecimal() else None


def listed(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    return some(list(names))
