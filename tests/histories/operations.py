"""A history: what clients asked for and what they were told.

Every value is sent once and unlike any other. An operation is one send, one poll, one transaction of several of each,
or a choice of partitions. Readers are those with `isolation.level=read_committed`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

Key = tuple[str, int]  # topic, partition
Record = tuple[int, str]  # offset, value


class Outcome(Enum):
    """What the client knows of its operation at the end."""

    OK = "ok"  # it was done: of a transaction, its commit was acknowledged
    FAIL = "fail"  # it was not done and never will be: an abort, or no commit was ever asked for
    INFO = "info"  # nobody knows


class Kind(Enum):
    """What an operation does as a whole."""

    SEND = "send"
    POLL = "poll"
    TRANSACTION = "txn"
    ASSIGN = "assign"
    SUBSCRIBE = "subscribe"


@dataclass(frozen=True, slots=True)
class Send:
    """One value for one partition. `offset` is where it was acknowledged, and None where no answer said so."""

    key: Key
    value: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    """Records that a consumer was given, of each partition in its order."""

    records: Mapping[Key, Sequence[Record]]


@dataclass(frozen=True, slots=True)
class CommitOffset:
    """An offset of a group that a transaction commits."""

    group: str
    key: Key
    offset: int


@dataclass(frozen=True, slots=True)
class FetchOffset:
    """An offset of a group that the group's coordinator told; -1 for none."""

    group: str
    key: Key
    offset: int


Step = Send | Poll | CommitOffset | FetchOffset


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of one process, and what became of it."""

    process: str
    kind: Kind
    steps: tuple[Step, ...] = ()
    outcome: Outcome = Outcome.OK
    invoked: float = 0.0
    completed: float | None = None  # None: no answer has come
    commit_asked: float | None = None  # when the client of a transaction first asked for its commit
    keys: tuple[Key, ...] = ()  # of a choice of partitions
    transactional_id: str = ""  # a later producer of the same id fences the former one

    def sends(self) -> Iterator[Send]:
        """Its values in the order in which they were sent."""
        return (step for step in self.steps if isinstance(step, Send))

    def readings(self) -> Iterator[tuple[Key, int, str]]:
        """Partition, offset and value of all that it has polled, in its order."""
        for step in self.steps:
            if isinstance(step, Poll):
                for key, records in step.records.items():
                    for offset, value in records:
                        yield key, offset, value

    def __str__(self) -> str:
        named = self.transactional_id and f" ({self.transactional_id})"
        what = "; ".join(step_text(step) for step in self.steps) or ", ".join(map(key_text, self.keys))
        return f"{self.kind.value} of {self.process}{named} at {self.invoked:g} [{what}] {self.outcome.value}"


@dataclass(frozen=True, slots=True)
class History:
    """Operations in the order in which they were invoked, and what is there at the end.

    `finals` is all that readers get of each partition, and `offsets` what groups have committed, once nobody writes and
    every transaction has ended. Without them nothing is said about what may still come.
    """

    operations: Sequence[Operation]
    finals: Mapping[Key, Mapping[int, str]] = field(default_factory=dict)
    offsets: Mapping[tuple[str, Key], int] = field(default_factory=dict)


def key_text(key: Key) -> str:
    return f"{key[0]}-{key[1]}"


def step_text(step: Step) -> str:
    """One step in words."""
    match step:
        case Send(key, value, offset):
            return f"send {value} to {key_text(key)}" + ("" if offset is None else f"@{offset}")
        case Poll(records):
            given = [f"{value} at {key_text(key)}@{at}" for key, found in records.items() for at, value in found]
            return f"poll {', '.join(given) or 'nothing'}"
        case CommitOffset(group, key, offset):
            return f"commit {key_text(key)}@{offset} of {group}"
        case FetchOffset(group, key, offset):
            return f"{group} has {key_text(key)}@{offset}"
