"""A consumer group of the new protocol as data: its members, its target assignment, and who owns which partition.

Three epochs say how far the group has come. The group epoch grows when a subscription, a member or a subscribed topic
changes; the assignment epoch is the group epoch for which the target was computed; a member's epoch is the assignment
epoch that it has reached. A member goes from one target to the next by itself (`reconciliation`).

Invariant (K4): `owners` names at most one member for a partition, the one that has it assigned or has yet to revoke it.

Nothing here decides; only `replay` changes a group. One that is served is not changed: a changed copy takes its place.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Final, Self

from kavka_broker.core.consumer_group.gathering import Gathering

__all__ = [
    "LEFT_EPOCH",
    "LEFT_FOR_A_WHILE_EPOCH",
    "ClassicSide",
    "ConsumerGroup",
    "ConsumerMember",
    "GroupState",
    "MemberState",
    "Owned",
    "Target",
    "has_reached",
]

LEFT_EPOCH: Final = -1
LEFT_FOR_A_WHILE_EPOCH: Final = -2
"""Epochs by which a member leaves; a static member that is to come back has the second one until it does."""

Target = Mapping[bytes, frozenset[int]]
"""Partitions by topic id."""
Owned = Mapping[bytes, Mapping[int, int]]
"""Partitions by topic id, each with the assignment epoch in which the member got it (KIP-1251)."""

Protocols = tuple[tuple[str, bytes], ...]

NO_TARGET: Final[Target] = MappingProxyType({})

NO_TOPICS: Final = frozenset[str]()

MEMBER_BYTES: Final = 1_024
TEXT_BYTES: Final = 128
"""What a member, and each of its texts, takes beside the characters."""


class MemberState(IntEnum):
    """The state of a member, by the numbers of its record."""

    STABLE = 0  # has all of its target that it may have
    UNREVOKED_PARTITIONS = 1  # has yet to give partitions up
    UNRELEASED_PARTITIONS = 2  # waits for partitions that others have yet to give up
    UNKNOWN = 127  # written by a later release


class GroupState(Enum):
    """The state of a group; the value is the name that tools show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class ClassicSide:
    """What a member of the classic protocol has said in JoinGroup, and a member of the new protocol has not."""

    session_timeout_ms: int
    protocols: Protocols  # the preferred first: name and embedded subscription

    @property
    def names(self) -> list[str]:
        """The embedded protocols, each once."""
        return list(dict.fromkeys(name for name, _ in self.protocols))

    @property
    def size_bytes(self) -> int:
        return sum(TEXT_BYTES + len(name) + len(metadata) for name, metadata in self.protocols)


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One consumer. Two members are equal where a record of each would be."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicSide | None = None  # of a member that speaks the classic protocol
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)  # has to give these up, and may still consume them

    @property
    def is_away(self) -> bool:
        """Whether this static member has left for a while."""
        return self.epoch == LEFT_FOR_A_WHILE_EPOCH

    @property
    def size_bytes(self) -> int:
        """About how much memory what the member has said of itself takes."""
        said = (self.member_id, self.instance_id, self.rack_id, self.client_id, self.client_host, self.server_assignor)
        characters = sum(len(text) for text in (*said, self.regex) if text) + sum(map(len, self.topics))
        classic = 0 if self.classic is None else self.classic.size_bytes
        return MEMBER_BYTES + TEXT_BYTES * len(self.topics) + characters + classic


def has_reached(member: ConsumerMember, assignment_epoch: int) -> bool:
    """Whether the member has everything of the target of this epoch."""
    return member.state is MemberState.STABLE and member.epoch == assignment_epoch


@dataclass(slots=True)
class ConsumerGroup:
    """The whole of a group except its offsets.

    Invariants: `instances` maps exactly the static members; `subscribed` counts the members that name each topic, and
    `expressed` those that have each regular expression, `spoken` those of the classic protocol, of which there are
    `classic_count`, that speak each embedded protocol; `size_bytes` is what members say of themselves and what their
    expressions match. `matched` has the topics of each expression, once they are known, until its last member goes.
    """

    group_id: str
    epoch: int = 0
    metadata_hash: int = 0  # of the subscribed topics, as they were at `epoch`
    assignment_epoch: int = 0
    assigned_at_ms: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    owners: dict[bytes, dict[int, str]] = field(default_factory=dict)
    subscribed: Counter[str] = field(default_factory=Counter)
    expressed: Counter[str] = field(default_factory=Counter)
    spoken: Counter[str] = field(default_factory=Counter)
    classic_count: int = 0
    matched: dict[str, frozenset[str]] = field(default_factory=dict)
    size_bytes: int = 0
    topics_seen: int = field(default=-1, compare=False)  # the number of topic changes at which the hash was compared
    matched_seen: int = field(default=-1, compare=False)  # and at which all expressions were matched with the topics
    matched_at_ms: int = field(default=0, compare=False)
    gathering: Gathering | None = field(default=None, compare=False)  # whom the first target waits for

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(has_reached(member, self.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def owner(self, topic_id: bytes, partition: int) -> str | None:
        """The member that has a partition, None where it is free."""
        partitions = self.owners.get(topic_id)
        return None if partitions is None else partitions.get(partition)

    def target_of(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)

    def supports(self, names: Iterable[str]) -> bool:
        """Whether all members of the classic protocol speak one of these embedded protocols."""
        return any(self.spoken[name] == self.classic_count for name in names)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The names of the topics that a member subscribes to, as far as its expression has been matched."""
        return member.topics | self.matched.get(member.regex, NO_TOPICS) if member.regex else member.topics

    def all_topics(self) -> frozenset[str]:
        """The names of all topics that members subscribe to."""
        return frozenset(self.subscribed).union(*self.matched.values())

    def put_matched(self, regex: str, topics: frozenset[str]) -> None:
        """Note what an expression matches."""
        self.forget_matched(regex)
        self.matched[regex] = topics
        self.size_bytes += TEXT_BYTES * len(topics)

    def forget_unexpressed(self) -> None:
        """Forget what expressions match that no member has: their tombstones are not in the log."""
        for regex in self.matched.keys() - self.expressed.keys():
            self.forget_matched(regex)

    def forget_matched(self, regex: str) -> None:
        self.size_bytes -= TEXT_BYTES * len(self.matched.pop(regex, ()))

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.instances.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def copy(self) -> Self:
        """A group that may be changed without this one."""
        return replace(
            self,
            members=self.members.copy(),
            instances=self.instances.copy(),
            targets=self.targets.copy(),
            owners={topic_id: partitions.copy() for topic_id, partitions in self.owners.items()},
            subscribed=self.subscribed.copy(),
            expressed=self.expressed.copy(),
            spoken=self.spoken.copy(),
            matched=self.matched.copy(),
        )

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or put it in the place of what it was."""
        self._forget(self.members.get(member.member_id))
        self.members[member.member_id] = member
        self.size_bytes += member.size_bytes
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        self.subscribed.update(member.topics)
        if member.regex:
            self.expressed[member.regex] += 1
        if member.classic is not None:
            self.classic_count += 1
            self.spoken.update(member.classic.names)
        for partitions in (member.assigned, member.revoking):
            for topic_id, indexes in partitions.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(indexes, member.member_id))

    def remove(self, member_id: str) -> None:
        self._forget(self.members.pop(member_id, None))

    def _forget(self, member: ConsumerMember | None) -> None:
        if member is None:
            return
        self.size_bytes -= member.size_bytes
        if member.instance_id is not None and self.instances.get(member.instance_id) == member.member_id:
            del self.instances[member.instance_id]
        discount(self.subscribed, member.topics)
        discount(self.expressed, [member.regex] if member.regex else [])
        if member.classic is not None:
            self.classic_count -= 1
            discount(self.spoken, member.classic.names)
        for partitions in (member.assigned, member.revoking):
            for topic_id, indexes in partitions.items():
                self._release(topic_id, indexes, member.member_id)

    def _release(self, topic_id: bytes, indexes: Mapping[int, int], member_id: str) -> None:
        """Free partitions. Records come in any order that compaction leaves: one of another member may be ahead."""
        owners = self.owners.get(topic_id, {})
        for index in indexes:
            if owners.get(index) == member_id:
                del owners[index]
        if not owners:
            self.owners.pop(topic_id, None)


def discount(counts: Counter[str], names: Iterable[str]) -> None:
    """Count each of these once less; what is not counted any more takes no memory."""
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]
