"""A classic group as data: its state, its members, and questions about them.

States and the ways between them (Kafka's names):

    Empty ---------------> PreparingRebalance    a first member joins
    PreparingRebalance --> CompletingRebalance   everybody has joined, or the time is over
    PreparingRebalance --> Empty                 no member is left
    CompletingRebalance -> Stable                the leader's assignment is in the log
    CompletingRebalance -> PreparingRebalance    a member comes, goes or fails
    Stable --------------> PreparingRebalance    likewise
    any -----------------> Dead                  deleted, expired, or this broker is not the coordinator any more

Nothing here decides; `join`, `sync`, `membership` and `rebalance` do, and they alone change a group.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kavka_broker.core.group.effects import Respond, Token

__all__ = ["TRANSITIONS", "ClassicGroup", "GroupState", "Member", "Protocols", "Write"]

Protocols = tuple[tuple[str, bytes], ...]
"""What a member can speak, the preferred first: name and metadata (for consumers: the subscription)."""

MEMBER_BYTES: Final = 1_000
"""About what a member takes beside what it says of itself: its ids, addresses and timers."""
TEXT_BYTES: Final = 128
"""About what a name and a text take beside their characters."""


class GroupState(Enum):
    """The state of a group; the value is the name that tools show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset(),
}
assert TRANSITIONS.keys() == set(GroupState), "a state has no ways on"
assert all(GroupState.DEAD in ways for state, ways in TRANSITIONS.items() if state is not GroupState.DEAD), TRANSITIONS


def said_bytes(instance_id: str | None, protocols: Protocols) -> int:
    """About what a member takes that says this of itself. A character may take four bytes."""
    names = len(instance_id or "") + sum(len(name) for name, _ in protocols)
    return MEMBER_BYTES + 4 * names + sum(TEXT_BYTES + len(metadata) for _, metadata in protocols)


@dataclass(slots=True)
class Member:
    """One consumer. At most one join and one sync of it wait at a time."""

    member_id: str
    instance_id: str | None  # of a static member (KIP-345)
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False  # the member has not been part of any generation
    join: Token | None = None
    sync: Token | None = None

    @property
    def is_joining(self) -> bool:
        return self.join is not None

    @property
    def size_bytes(self) -> int:
        """About what the member takes."""
        return said_bytes(self.instance_id, self.protocols) + len(self.assignment)

    def metadata(self, protocol: str) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """The candidate protocol that this member prefers."""
        return next(name for name, _ in self.protocols if name in candidates)


@dataclass(frozen=True, slots=True)
class Write:
    """A record of the group that is on its way to the log.

    Only the write of an assignment has a `generation`: it decides whether that generation becomes stable, with these
    `assignments`. The write of a static member's new id has the `answer` that its join waits for.
    """

    generation: int | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)  # by member id
    answer: Respond | None = None
    replaced: tuple[str, str] | None = None  # new id and old id of a static member

    def __post_init__(self) -> None:
        assert (self.answer is None) is (self.replaced is None), "the write of a new id is answered, and no other"
        assert self.generation is None or self.answer is None, f"generation {self.generation} is no new id"

    @property
    def size_bytes(self) -> int:
        """What the assignments take."""
        return sum(map(len, self.assignments.values()))


@dataclass(slots=True)
class ClassicGroup:
    """The whole of a group except its offsets.

    Invariants: `leader_id` is a member or None; `instances` maps exactly the static members; `unsynced` and the
    members that wait in `sync` are members; a ticket in `writes_pending` is answered by `persisted`; `members_bytes`
    is the sum of what members take.
    """

    group_id: str
    state: GroupState = GroupState.EMPTY
    state_since_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    pending: dict[str, None] = field(default_factory=dict)  # ids given out that have not joined (KIP-394)
    unsynced: dict[str, None] = field(default_factory=dict)  # have the generation, not yet their assignment
    is_initial_rebalance: bool = False
    has_new_member: bool = False  # a member joined during the initial delay, so the delay is extended
    initial_delay_left_ms: int = 0
    supported: Counter[str] = field(default_factory=Counter)  # how many members speak each protocol
    writes_pending: dict[int, Write] = field(default_factory=dict)
    tickets: int = 0
    members_bytes: int = 0
    writing_bytes: int = 0  # of the assignments in `writes_pending`

    @property
    def size_bytes(self) -> int:
        """About what the group's members take, the ids given out, and assignments that are written."""
        return self.members_bytes + self.writing_bytes + MEMBER_BYTES * len(self.pending)

    def move_to(self, state: GroupState, now_ms: int) -> None:
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state} -> {state}"
        self.state = state
        self.state_since_ms = now_ms

    def add(self, member: Member) -> None:
        assert member.member_id not in self.members, f"{member.member_id} is a member already"
        if not self.members:
            self.leader_id = None
        if self.leader_id is None:
            self.leader_id = member.member_id
        if member.instance_id is not None:
            assert member.instance_id not in self.instances, f"{member.instance_id} is a member already"
            self.instances[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self.members_bytes += member.size_bytes
        self._count(member.protocols)
        self.pending.pop(member.member_id, None)
        assert self.leader_id in self.members, f"{self.leader_id} leads and is no member"

    def remove(self, member_id: str) -> Member:
        assert member_id in self.members, f"{member_id} is no member of {self.group_id}"
        member = self.members.pop(member_id)
        self.members_bytes -= member.size_bytes
        assert self.members_bytes >= 0, f"{self.group_id}: {self.members_bytes} bytes"
        if member.instance_id is not None:
            assert self.instances[member.instance_id] == member_id, f"{member.instance_id} is not {member_id}"
            del self.instances[member.instance_id]
        self._discount(member.protocols)
        self.unsynced.pop(member_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        assert self.leader_id is None or self.leader_id in self.members, f"{self.leader_id} leads and is no member"
        return member

    def change_protocols(self, member: Member, protocols: Protocols) -> None:
        self._discount(member.protocols)
        self._count(protocols)
        self.members_bytes -= member.size_bytes
        member.protocols = protocols
        self.members_bytes += member.size_bytes
        assert max(self.supported.values(), default=0) <= len(self.members), self.supported

    def begin_write(self, write: Write) -> int:
        """Note a record that is on its way; returns its ticket."""
        self.tickets += 1
        assert self.tickets not in self.writes_pending, f"{self.group_id}: ticket {self.tickets} is given twice"
        self.writes_pending[self.tickets] = write
        self.writing_bytes += write.size_bytes
        return self.tickets

    def end_write(self, ticket: int) -> Write | None:
        """Take a record out; None where the group was buried meanwhile."""
        write = self.writes_pending.pop(ticket, None)
        if write is not None:
            self.writing_bytes -= write.size_bytes
            assert self.writing_bytes >= 0, self.writing_bytes
        return write

    def assign(self, member: Member, assignment: bytes) -> None:
        self.members_bytes += len(assignment) - len(member.assignment)
        member.assignment = assignment

    def _count(self, protocols: Protocols) -> None:
        for name in dict.fromkeys(name for name, _ in protocols):
            self.supported[name] += 1

    def _discount(self, protocols: Protocols) -> None:
        """Forget protocols that no member supports any more: members may make names up, and come and go."""
        for name in dict.fromkeys(name for name, _ in protocols):
            self.supported[name] -= 1
            assert self.supported[name] >= 0, f"{self.group_id}: more members gave {name} up than spoke it"
            if not self.supported[name]:
                del self.supported[name]

    def replace_static(self, member: Member, member_id: str) -> None:
        """Let a restarted static member go on under a new id; its place in the order of members stays."""
        assert member.instance_id is not None
        assert self.instances[member.instance_id] == member.member_id, f"{member} is not {member.instance_id}"
        assert member_id not in self.members, f"{member_id} is a member already"
        old_id, member.member_id = member.member_id, member_id
        count = len(self.members)
        self.members = {m.member_id: m for m in self.members.values()}
        assert len(self.members) == count, f"{member_id} takes the place of {old_id} and of another"
        self.instances[member.instance_id] = member_id
        if self.leader_id == old_id:
            self.leader_id = member_id
        if old_id in self.unsynced:
            del self.unsynced[old_id]
            self.unsynced[member_id] = None

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def joining_count(self) -> int:
        return sum(member.is_joining for member in self.members.values())

    @property
    def has_all_joined(self) -> bool:
        return not self.pending and all(member.is_joining for member in self.members.values())

    def candidates(self) -> set[str]:
        """Protocols that every member supports: they are among those of any one member."""
        assert self.members, f"{self.group_id}: nobody is there to speak"
        first = next(iter(self.members.values()))
        return {name for name, _ in first.protocols if self._is_common(name)}

    def _is_common(self, name: str) -> bool:
        return self.supported[name] == len(self.members)

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols could be part of this group."""
        if not protocol_type or not protocols:
            return False
        if not self.members:
            return True
        return protocol_type == self.protocol_type and any(self._is_common(name) for name, _ in protocols)

    def select_protocol(self) -> str:
        """The protocol that most members prefer, of those that all support; the earlier vote breaks a tie."""
        candidates = self.candidates()
        assert candidates, f"{self.group_id}: members without a common protocol"
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]
