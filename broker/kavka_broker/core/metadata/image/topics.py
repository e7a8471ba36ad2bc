"""Topics and their partitions, by name and by id.

`PartitionState` is a value: a change makes another one, so whoever holds one may keep it. Every change raises the
partition epoch; naming a leader, even the same one again, raises the leader epoch, which is how a leader that came
back from a crash is told apart from what it was before (KIP-101).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from kavka_broker.core.metadata.image.brokers import UNTOLD_DIRECTORY
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.clear_elr_record import ClearElrRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord

T = TypeVar("T")

NO_LEADER: Final = -1
LEADER_UNCHANGED: Final = -2
RECOVERY_UNCHANGED: Final = -1
RECOVERED: Final = 0
RECOVERING: Final = 1  # after an unclean election, until its leader has said that it is done


class PartitionState(NamedTuple):
    """A partition as the controller decided it."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    directories: tuple[bytes, ...] = ()
    recovery_state: int = RECOVERED

    def directory_of(self, broker_id: int) -> bytes:
        """Where this broker keeps its replica."""
        if broker_id not in self.replicas or not self.directories:
            return UNTOLD_DIRECTORY
        return self.directories[self.replicas.index(broker_id)]

    def record(self, topic_id: bytes, partition: int) -> PartitionRecord:
        """The record that makes this partition as it is now."""
        return PartitionRecord(
            partition_id=partition,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing),
            adding_replicas=list(self.adding),
            leader=self.leader,
            leader_recovery_state=self.recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.elr) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )


class Topic:
    """One topic. `changes` counts the records that have changed it here, so that a reader knows what is old."""

    __slots__ = ("changes", "name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: dict[int, PartitionState] = {}
        self.changes = 0

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Topic)
            and (self.name, self.topic_id) == (other.name, other.topic_id)
            and self.partitions == other.partitions
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {len(self.partitions)} partitions)"

    def copy(self) -> "Topic":
        copy = Topic(self.name, self.topic_id)
        copy.partitions = in_order(self.partitions)
        return copy

    @property
    def replication_factor(self) -> int:
        """Of its first partition, as Kafka's tools count it."""
        return len(self.partitions[0].replicas) if self.partitions else 0


def in_order(partitions: dict[int, PartitionState]) -> dict[int, PartitionState]:
    """A copy by ascending index. Nearly always they are so, and a plain copy takes a hundredth of the time."""
    indexes = list(partitions)
    ascending = sorted(indexes)
    return dict(partitions) if indexes == ascending else {index: partitions[index] for index in ascending}


class Topics:
    """All topics. What may change is in `decide.topics`; here is what is true and how records change it."""

    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._merged_names: dict[str, set[str]] = {}
        self.partition_count = 0

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def named(self, name: str) -> list[Topic]:
        """The topic of this name, or all of them for an empty one."""
        if not name:
            return list(self)
        topic = self.get(name)
        return [] if topic is None else [topic]

    def by_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    def names(self) -> Sequence[str]:
        """Every name, sorted."""
        return sorted(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topics) and self._by_name == other._by_name

    __hash__ = None  # type: ignore[assignment]

    def colliding(self, name: str) -> str | None:
        """A topic that differs only in dots and underscores: metrics cannot tell the two apart."""
        return min(self._merged_names.get(name.replace(".", "_"), ()), default=None)

    def copy(self) -> "Topics":
        copy = Topics()
        copy._by_name = {name: self._by_name[name].copy() for name in self.names()}
        copy._by_id = {topic.topic_id: topic for topic in copy._by_name.values()}
        copy._merged_names = {merged: set(names) for merged, names in self._merged_names.items()}
        copy.partition_count = self.partition_count
        return copy

    def replay(self, record: Message) -> None:
        match record:
            case TopicRecord(name, topic_id):
                self._add(Topic(name, topic_id))
            case PartitionRecord():
                topic = self._topic(record.topic_id)
                self.partition_count += record.partition_id not in topic.partitions
                topic.partitions[record.partition_id] = state_of(record)
                topic.changes += 1
            case PartitionChangeRecord():
                topic = self._topic(record.topic_id)
                topic.partitions[record.partition_id] = changed(topic.partitions[record.partition_id], record)
                topic.changes += 1
            case RemoveTopicRecord(topic_id):
                self._remove(self._topic(topic_id))
            case ClearElrRecord(topic_name):
                self._clear_elr(topic_name)
            case _:
                raise AssertionError(f"{record} is not about topics")

    def replay_partitions(self, topic_id: bytes, states: Mapping[int, PartitionState]) -> None:
        """As `replay`, of records in a row that make these partitions of one topic."""
        topic = self._topic(topic_id)
        before = len(topic.partitions)
        topic.partitions.update(states)
        self.partition_count += len(topic.partitions) - before
        topic.changes += len(states)

    def _topic(self, topic_id: bytes) -> Topic:
        topic = self._by_id.get(topic_id)
        assert topic is not None, f"a record names the topic id {topic_id.hex()}, which does not exist"
        return topic

    def _add(self, topic: Topic) -> None:
        assert topic.name not in self._by_name, f"topic {topic.name} is created twice"
        assert topic.topic_id not in self._by_id, f"topic id {topic.topic_id.hex()} is used twice"
        self._by_name[topic.name] = self._by_id[topic.topic_id] = topic
        self._merged_names.setdefault(topic.name.replace(".", "_"), set()).add(topic.name)

    def _remove(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.topic_id]
        self.partition_count -= len(topic.partitions)
        merged = topic.name.replace(".", "_")
        self._merged_names[merged].discard(topic.name)
        if not self._merged_names[merged]:
            del self._merged_names[merged]

    def _clear_elr(self, name: str) -> None:
        """Of one topic, or of all for an empty name."""
        for topic in self.named(name):
            for partition, state in topic.partitions.items():
                if state.elr or state.last_known_elr:
                    epoch = state.partition_epoch + 1
                    topic.partitions[partition] = state._replace(elr=(), last_known_elr=(), partition_epoch=epoch)
            topic.changes += 1

    def records(self) -> Iterator[Message]:
        for name in self.names():
            topic = self._by_name[name]
            yield TopicRecord(name, topic.topic_id)
            for partition in sorted(topic.partitions):
                yield topic.partitions[partition].record(topic.topic_id, partition)


def state_of(record: PartitionRecord) -> PartitionState:
    """The partition that the record makes."""
    return PartitionState(
        replicas=tuple(record.replicas),
        isr=tuple(record.isr),
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        elr=tuple(record.eligible_leader_replicas or ()),
        last_known_elr=tuple(record.last_known_elr or ()),
        removing=tuple(record.removing_replicas),
        adding=tuple(record.adding_replicas),
        directories=tuple(record.directories),
        recovery_state=record.leader_recovery_state,
    )


def changed(state: PartitionState, record: PartitionChangeRecord) -> PartitionState:
    """The partition after a change: what the record leaves out stays as it is."""
    is_same_leader = record.leader == LEADER_UNCHANGED
    is_same_recovery = record.leader_recovery_state == RECOVERY_UNCHANGED
    return PartitionState(
        replicas=_or(record.replicas, state.replicas),
        isr=_or(record.isr, state.isr),
        leader=state.leader if is_same_leader else record.leader,
        leader_epoch=state.leader_epoch if is_same_leader else state.leader_epoch + 1,
        partition_epoch=state.partition_epoch + 1,
        elr=_or(record.eligible_leader_replicas, state.elr),
        last_known_elr=_or(record.last_known_elr, state.last_known_elr),
        removing=_or(record.removing_replicas, state.removing),
        adding=_or(record.adding_replicas, state.adding),
        directories=_or(record.directories, state.directories),
        recovery_state=state.recovery_state if is_same_recovery else record.leader_recovery_state,
    )


def _or(told: list[T] | None, kept: tuple[T, ...]) -> tuple[T, ...]:
    return kept if told is None else tuple(told)
