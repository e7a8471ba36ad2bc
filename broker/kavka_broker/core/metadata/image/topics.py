"""Topics and their partitions, by name and by id.

`PartitionState` is a value: a change makes another one, so code that holds one may keep it. Every change raises the
partition epoch; naming a leader, even the same one again, raises the leader epoch, which is how a leader that came
back from a crash is told apart from what it was before (KIP-101).
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from operator import lt
from typing import Final, NamedTuple

from kavka_broker.core.metadata.image.brokers import UNTOLD_DIRECTORY
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.clear_elr_record import ClearElrRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord

NO_LEADER: Final = -1
LEADER_UNCHANGED: Final = -2
RECOVERY_UNCHANGED: Final = -1
RECOVERED: Final = 0
RECOVERING: Final = 1  # after an unclean election, until the leader reports that it is done


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
        """The directory in which this broker keeps its replica."""
        if broker_id not in self.replicas or not self.directories:
            return UNTOLD_DIRECTORY
        assert len(self.directories) == len(self.replicas), f"{self.directories} of {self.replicas}"
        return self.directories[self.replicas.index(broker_id)]

    def record(self, topic_id: bytes, partition: int) -> PartitionRecord:
        """The record that makes this partition as it is now."""
        assert partition >= 0, partition
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
    """A topic. `changes` counts the records that have changed it here, so that readers know which answers are stale."""

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
        copy.partitions, copy.changes = dict(self.partitions), self.changes
        return copy

    @property
    def last_index(self) -> int:
        """The index of the partition that was made last; -1 before the first."""
        return next(reversed(self.partitions), -1)

    def put_in_order(self) -> None:
        """Order the partitions by index. Code that iterates over them sees the former dict to its end."""
        self.partitions = dict(sorted(self.partitions.items()))

    @property
    def replication_factor(self) -> int:
        """The replicas of the first partition, as Kafka's tools count them."""
        return len(self.partitions[0].replicas) if self.partitions else 0


class Topics:
    """All topics: what is true of them, and how records change it. Their decisions are in `decide.topics`.

    An image and its copy share their topics. An image that changes a shared topic copies it first, for itself: so a
    holder of a topic of another image, as the thread that writes a snapshot, sees it as it was.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._names: list[str] = []  # sorted
        self.merged_names: dict[str, tuple[str, ...]] = {}
        self._own: set[bytes] = set()  # ids of the topics that no other image has
        self._unordered: dict[bytes, None] = {}  # ids of the topics whose partitions are not in ascending order
        self.partition_count = 0

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def named(self, name: str) -> list[Topic]:
        """The topic of this name, or all topics for an empty name."""
        if not name:
            return list(self)
        topic = self.get(name)
        return [] if topic is None else [topic]

    def by_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    def names(self) -> Sequence[str]:
        """Topic names, sorted."""
        return [*self._names]

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topics) and self._by_name == other._by_name

    __hash__ = None  # type: ignore[assignment]

    def colliding(self, name: str) -> str | None:
        """A topic whose name differs only in dots and underscores: metrics cannot tell the two apart."""
        return min(self.merged_names.get(name.replace(".", "_"), ()), default=None)

    def copy(self) -> "Topics":
        """Copy the topics in order, by name and partition index; the copy changes by itself."""
        for topic_id in self._unordered:
            self._by_id[topic_id].put_in_order()
        self._unordered.clear()
        self._own.clear()
        copy = Topics()
        copy._by_name = {name: self._by_name[name] for name in self._names}
        copy._by_id, copy._names = dict(self._by_id), [*self._names]
        assert len(copy._by_name) == len(copy._by_id), "every topic has one name and one id"
        copy.merged_names = dict(self.merged_names)
        copy.partition_count = self.partition_count
        return copy

    def replay(self, record: Message) -> None:
        match record:
            case TopicRecord(name, topic_id):
                self._add(Topic(name, topic_id))
            case PartitionRecord():
                self._put(self._to_change(record.topic_id), record.partition_id, state_of(record))
            case PartitionChangeRecord():
                topic = self._to_change(record.topic_id)
                assert record.partition_id in topic.partitions, (
                    f"{topic}: {record.partition_id} changes and is not there"
                )
                state = topic.partitions[record.partition_id] = changed(topic.partitions[record.partition_id], record)
                assert has_replicas(state), f"{topic}: {record.partition_id} becomes {state}"
                topic.changes += 1
            case RemoveTopicRecord(topic_id):
                self._remove(self._topic(topic_id))
            case ClearElrRecord(topic_name):
                self._clear_elr(topic_name)
            case _:
                raise AssertionError(f"{record} is not about topics")

    def replay_partitions(self, topic_id: bytes, states: Mapping[int, PartitionState]) -> None:
        """Replay records that make these partitions of one topic, as `replay` does one by one."""
        topic = self._to_change(topic_id)
        added = [index for index in states if index not in topic.partitions]
        if not all(map(lt, [topic.last_index, *added], added)):
            self._unordered[topic_id] = None
        assert min(added, default=0) >= 0, f"{topic} has no partition {min(added)}"
        topic.partitions.update(states)
        topic.changes += len(states)
        self.partition_count += len(added)
        assert self.partition_count >= len(topic.partitions), (
            f"{self.partition_count} partitions, in {topic} alone more"
        )

    def _put(self, topic: Topic, index: int, state: PartitionState) -> None:
        assert index >= 0, f"{topic} has no partition {index}"
        if index not in topic.partitions:
            self.partition_count += 1
            if index < topic.last_index:
                self._unordered[topic.topic_id] = None
        topic.partitions[index] = state
        topic.changes += 1

    def _to_change(self, topic_id: bytes) -> Topic:
        """The topic as no other image has it, to be changed."""
        topic = self._topic(topic_id)
        assert self._by_name[topic.name] is topic, f"{topic} is another by its name"
        if topic_id not in self._own:
            topic = self._by_name[topic.name] = self._by_id[topic_id] = topic.copy()
            self._own.add(topic_id)
        return topic

    def _topic(self, topic_id: bytes) -> Topic:
        topic = self._by_id.get(topic_id)
        assert topic is not None, f"a record names the topic id {topic_id.hex()}, which does not exist"
        return topic

    def _add(self, topic: Topic) -> None:
        assert topic.name not in self._by_name, f"topic {topic.name} is created twice"
        assert topic.topic_id not in self._by_id, f"topic id {topic.topic_id.hex()} is used twice"
        self._by_name[topic.name] = self._by_id[topic.topic_id] = topic
        self._own.add(topic.topic_id)
        insort(self._names, topic.name)
        merged = topic.name.replace(".", "_")
        self.merged_names[merged] = (*self.merged_names.get(merged, ()), topic.name)
        assert len(self._names) == len(self._by_name) == len(self._by_id), f"{topic} is known by one of name and id"

    def _remove(self, topic: Topic) -> None:
        at = bisect_left(self._names, topic.name)
        assert self._names[at] == topic.name, f"{topic} is not among the sorted names"
        assert self._by_name[topic.name] is self._by_id[topic.topic_id], f"{topic} is another by its id"
        del self._by_name[topic.name], self._by_id[topic.topic_id]
        del self._names[at]
        self._own.discard(topic.topic_id)
        self._unordered.pop(topic.topic_id, None)
        self.partition_count -= len(topic.partitions)
        assert self.partition_count >= 0, self.partition_count
        merged = topic.name.replace(".", "_")
        self.merged_names[merged] = tuple(name for name in self.merged_names[merged] if name != topic.name)
        if not self.merged_names[merged]:
            del self.merged_names[merged]

    def _clear_elr(self, name: str) -> None:
        """Clear the eligible replicas of one topic, or of all for an empty name."""
        for named in self.named(name):
            if any(state.elr or state.last_known_elr for state in named.partitions.values()):
                topic = self._to_change(named.topic_id)
                topic.partitions = {index: without_elr(state) for index, state in topic.partitions.items()}
                topic.changes += 1

    def records(self) -> Iterator[Message]:
        for name in self._names:
            topic = self._by_name[name]
            yield TopicRecord(name, topic.topic_id)
            for partition in sorted(topic.partitions):
                yield topic.partitions[partition].record(topic.topic_id, partition)


def has_replicas(state: PartitionState) -> bool:
    """Whether the leader and all that are in sync are replicas."""
    replicas = state.replicas
    return (state.leader == NO_LEADER or state.leader in replicas) and all(map(replicas.__contains__, state.isr))


def state_of(record: PartitionRecord) -> PartitionState:
    """The partition that the record makes."""
    state = PartitionState(
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
    assert has_replicas(state), f"partition {record.partition_id} begins as {state}"
    return state


def without_elr(state: PartitionState) -> PartitionState:
    """The partition without eligible leader replicas."""
    if not state.elr and not state.last_known_elr:
        return state
    return state._replace(elr=(), last_known_elr=(), partition_epoch=state.partition_epoch + 1)


def changed(state: PartitionState, record: PartitionChangeRecord) -> PartitionState:
    """The partition after a change: fields that the record leaves out stay as they are.

    Each field is written out, in order: a start may replay a million of these records.
    """
    is_same_leader = record.leader == LEADER_UNCHANGED
    recovery_state = record.leader_recovery_state
    return PartitionState(
        state.replicas if record.replicas is None else tuple(record.replicas),
        state.isr if record.isr is None else tuple(record.isr),
        state.leader if is_same_leader else record.leader,
        state.leader_epoch if is_same_leader else state.leader_epoch + 1,
        state.partition_epoch + 1,
        state.elr if record.eligible_leader_replicas is None else tuple(record.eligible_leader_replicas),
        state.last_known_elr if record.last_known_elr is None else tuple(record.last_known_elr),
        state.removing if record.removing_replicas is None else tuple(record.removing_replicas),
        state.adding if record.adding_replicas is None else tuple(record.adding_replicas),
        state.directories if record.directories is None else tuple(record.directories),
        state.recovery_state if recovery_state == RECOVERY_UNCHANGED else recovery_state,
    )
