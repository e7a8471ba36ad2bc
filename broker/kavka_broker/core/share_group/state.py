"""A share group as data: its members, its target assignment, and the partitions whose state it has initialized.

A partition may be with several members at once. So a member goes to a new target in one step, and nothing has to be
given up before another member may have it. Group epoch, assignment epoch and member epochs are those of
`core.consumer_group`.

A partition is assigned only after the share coordinator has its state (`StatePartitions`). The three sets of partitions
are one record in the log, which says what the group coordinator has asked for and has been answered.

Nothing here decides; only `replay` changes a group. One that is served is not changed: a changed copy takes its place.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self

from kavka_broker.core.consumer_group.state import (
    LEFT_EPOCH,
    MEMBER_BYTES,
    NO_TARGET,
    TEXT_BYTES,
    GroupState,
    MemberState,
    Target,
)

__all__ = [
    "FIRST_EPOCH",
    "LEFT_EPOCH",
    "GroupState",
    "MemberState",
    "NamedPartitions",
    "ShareGroup",
    "ShareMember",
    "StatePartitions",
    "Target",
]

FIRST_EPOCH: Final = 1
"""Of a group before its first member, and of its assignment: 0 would mean to the member that it is to join."""

PARTITION_BYTES: Final = 64
"""What a partition takes whose state is being initialized, or is initialized."""


class NamedPartitions(NamedTuple):
    """Partitions of a topic, with its name."""

    name: str
    partitions: frozenset[int]


Named = Mapping[bytes, NamedPartitions]
"""Partitions by topic id."""


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """The partitions of which the share coordinator has state for a group, or is asked to make or delete it.

    A partition may be in both `initializing` and `initialized`: its offset is being altered. `deleting` has the names
    of topics by their ids.
    """

    initializing: Named = field(default_factory=dict)
    initialized: Named = field(default_factory=dict)
    deleting: Mapping[bytes, str] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        topics = [*self.initializing.values(), *self.initialized.values()]
        partitions = sum(len(topic.partitions) for topic in topics)
        return TEXT_BYTES * (len(topics) + len(self.deleting)) + PARTITION_BYTES * partitions


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One share consumer. Two members are equal where a record of each would be."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    assigned: Target = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """About how much memory what the member has said of itself takes."""
        said = (self.member_id, self.rack_id, self.client_id, self.client_host)
        characters = sum(len(text) for text in said if text) + sum(map(len, self.topics))
        return MEMBER_BYTES + TEXT_BYTES * len(self.topics) + characters


@dataclass(slots=True)
class ShareGroup:
    """The whole of a group; its offsets are with the share coordinator.

    Invariants: `subscribed` counts the members that name each topic; `size_bytes` is what members say of themselves,
    and the state partitions. `is_settled`: at the topics of `topics_seen`, every partition of the subscribed topics is
    initialized and assigned, so that a heartbeat that says nothing new finds nothing to do.
    """

    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0  # of the subscribed topics, as they were at `epoch`
    assignment_epoch: int = FIRST_EPOCH
    assigned_at_ms: int = 0
    members: dict[str, ShareMember] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    subscribed: Counter[str] = field(default_factory=Counter)
    states: StatePartitions | None = None  # None: the log has no record of them
    size_bytes: int = 0
    topics_seen: int = field(default=-1, compare=False)  # the number of topic changes at which the hash was compared
    is_settled: bool = field(default=False, compare=False)
    tried_at_ms: dict[bytes, int] = field(default_factory=dict, compare=False)  # initializations, by topic id

    @property
    def state(self) -> GroupState:
        return GroupState.STABLE if self.members else GroupState.EMPTY

    @property
    def is_blank(self) -> bool:
        """Whether nothing in the log says anything of the group."""
        return (
            not self.members
            and not self.targets
            and self.states is None
            and self.epoch == self.assignment_epoch == FIRST_EPOCH
        )

    def target_of(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)

    def copy(self) -> Self:
        """A group that may be changed without this one."""
        return replace(
            self,
            members=self.members.copy(),
            targets=self.targets.copy(),
            subscribed=self.subscribed.copy(),
            is_settled=False,
            tried_at_ms=self.tried_at_ms.copy(),
        )

    def put(self, member: ShareMember) -> None:
        """Add a member, or put it in the place of what it was."""
        self._forget(self.members.get(member.member_id))
        self.members[member.member_id] = member
        self.size_bytes += member.size_bytes
        self.subscribed.update(member.topics)

    def remove(self, member_id: str) -> None:
        self._forget(self.members.pop(member_id, None))

    def put_states(self, states: StatePartitions | None) -> None:
        """Put state partitions in the place of what they were."""
        self.size_bytes += size_of(states) - size_of(self.states)
        self.states = states

    def _forget(self, member: ShareMember | None) -> None:
        if member is None:
            return
        self.size_bytes -= member.size_bytes
        for name in member.topics:
            self.subscribed[name] -= 1
            if not self.subscribed[name]:
                del self.subscribed[name]


def size_of(states: StatePartitions | None) -> int:
    return 0 if states is None else states.size_bytes
