"""A streams group as data: its members, its topology, its target assignment, and who has which task.

The epochs are those of `core.consumer_group`; the unit of assignment is a task. The topology comes from the first
member. It is configured when the numbers of its tasks are known, which the topics of the cluster decide: that is soft
state, which a heartbeat computes again after a load.

Invariant (T4): `owners.active` names at most one member for a task, the one that has it or has yet to give it up.

Nothing here decides; only `replay` changes a group. One that is served is not changed: a changed copy takes its place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import Final, NamedTuple, Self

from kavka_broker.core.consumer_group.state import LEFT_EPOCH, MEMBER_BYTES, TEXT_BYTES
from kavka_broker.core.share_group.state import FIRST_EPOCH
from kavka_broker.core.streams_group.configured_topology import ConfiguredTopology
from kavka_broker.core.streams_group.tasks import NO_TASKS, OwnedTasks, Tasks, TaskTarget
from kavka_broker.core.streams_group.topology import Topology

__all__ = [
    "FIRST_EPOCH",
    "LEFT_EPOCH",
    "Endpoint",
    "MemberState",
    "StreamsGroup",
    "StreamsMember",
    "StreamsState",
    "TaskOwners",
    "has_reached",
]

NOT_VALIDATED: Final = -1
"""The validated topology epoch of a group whose topics are not all there, or do not fit."""

TASK_BYTES: Final = 128
"""What a task takes in a target, and again at the member that has it."""

NO_TARGET: Final = TaskTarget()
NOBODY: Final[Mapping[str, None]] = {}


class MemberState(IntEnum):
    """The state of a member, by the numbers of its record."""

    STABLE = 1  # has all of its target that it may have
    UNREVOKED_TASKS = 2  # has yet to give tasks up
    UNRELEASED_TASKS = 3  # waits for tasks that others have yet to give up
    UNKNOWN = 127  # written by a later release


class StreamsState(Enum):
    """The state of a group; the value is the name that tools show."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class Endpoint(NamedTuple):
    """Where a member answers interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """One stream thread; those of one process share `process_id`. Two are equal where a record of each would be."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    assigned: OwnedTasks = NO_TASKS
    revoking: OwnedTasks = NO_TASKS  # has to give these up, and may still run them

    @property
    def size_bytes(self) -> int:
        """About how much memory the member takes: what it has said of itself, and its tasks."""
        said = (self.member_id, self.instance_id, self.rack_id, self.client_id, self.client_host, self.process_id)
        characters = sum(len(text) for text in said if text)
        characters += sum(len(key) + len(value) for key, value in self.client_tags)
        characters += len(self.endpoint.host) if self.endpoint is not None else 0
        tasks = TASK_BYTES * (self.assigned.count + self.revoking.count)
        return MEMBER_BYTES + 2 * TEXT_BYTES * len(self.client_tags) + characters + tasks


def has_reached(member: StreamsMember, assignment_epoch: int) -> bool:
    """Whether the member has everything of the target of this epoch."""
    return member.state is MemberState.STABLE and member.epoch == assignment_epoch


Owners = dict[str, dict[int, dict[str, None]]]
"""The members of each task, by subtopology and partition."""


@dataclass(slots=True)
class TaskOwners:
    """The members that have each task, or have yet to give it up.

    Copies of a standby or warm-up task are at several members.
    """

    active: dict[str, dict[int, str]] = field(default_factory=dict)
    standby: Owners = field(default_factory=dict)
    warmup: Owners = field(default_factory=dict)

    def copy(self) -> Self:
        return replace(
            self,
            active={part: tasks.copy() for part, tasks in self.active.items()},
            standby=_copied(self.standby),
            warmup=_copied(self.warmup),
        )

    def put(self, member_id: str, tasks: OwnedTasks) -> None:
        for part, partitions in tasks.active.items():
            self.active.setdefault(part, {}).update(dict.fromkeys(partitions, member_id))
        _put(self.standby, member_id, tasks.standby)
        _put(self.warmup, member_id, tasks.warmup)

    def release(self, member_id: str, tasks: OwnedTasks) -> None:
        """Free tasks. Records come in any order that compaction leaves: one of another member may be ahead."""
        for part, partitions in tasks.active.items():
            owners = self.active.get(part, {})
            for partition in partitions:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self.active.pop(part, None)
        _release(self.standby, member_id, tasks.standby)
        _release(self.warmup, member_id, tasks.warmup)

    def active_owner(self, part: str, partition: int) -> str | None:
        tasks = self.active.get(part)
        return None if tasks is None else tasks.get(partition)

    def copies(self, part: str, partition: int) -> Iterable[str]:
        """The members that have the task as standby or warm-up."""
        for owners in (self.standby, self.warmup):
            yield from owners.get(part, {}).get(partition, NOBODY)


def _copied(owners: Owners) -> Owners:
    return {part: {partition: members.copy() for partition, members in tasks.items()} for part, tasks in owners.items()}


def _put(owners: Owners, member_id: str, tasks: Tasks) -> None:
    for part, partitions in tasks.items():
        members_of = owners.setdefault(part, {})
        for partition in partitions:
            members_of.setdefault(partition, {})[member_id] = None


def _release(owners: Owners, member_id: str, tasks: Tasks) -> None:
    for part, partitions in tasks.items():
        members_of = owners.get(part, {})
        for partition in partitions:
            members = members_of.get(partition, {})
            members.pop(member_id, None)
            if not members:
                members_of.pop(partition, None)
        if not members_of:
            owners.pop(part, None)


@dataclass(slots=True)
class StreamsGroup:
    """The whole of a group except its offsets.

    Invariants: `size_bytes` is what members, targets and the topology take; `endpoints` counts the members that
    have one. Soft, and lost with the coordinator: `configured`, of the topics as of `topics_seen`; `endpoint_epoch`,
    which moves where the tasks of a member with an endpoint do; `shutdown_by`, the member that asked for the end of the
    application, until the last member has left.
    """

    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0  # of the topics of the topology, as they were at `epoch`
    validated_epoch: int = NOT_VALIDATED  # of the topology whose topics were all there
    assignment_configs: tuple[tuple[str, str], ...] = ()  # as they were at `epoch`
    assignment_epoch: int = FIRST_EPOCH
    assigned_at_ms: int = 0
    topology: Topology | None = None
    members: dict[str, StreamsMember] = field(default_factory=dict)
    targets: dict[str, TaskTarget] = field(default_factory=dict)
    owners: TaskOwners = field(default_factory=TaskOwners)
    endpoints: int = 0
    size_bytes: int = 0
    configured: ConfiguredTopology | None = field(default=None, compare=False)
    topics_seen: int = field(default=-1, compare=False)  # the number of topic changes at which the hash was compared
    endpoint_epoch: int = field(default=0, compare=False)
    shutdown_by: str | None = field(default=None, compare=False)

    @property
    def state(self) -> StreamsState:
        if not self.members:
            return StreamsState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return StreamsState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsState.ASSIGNING
        if all(has_reached(member, self.assignment_epoch) for member in self.members.values()):
            return StreamsState.STABLE
        return StreamsState.RECONCILING

    @property
    def is_blank(self) -> bool:
        """Whether nothing in the log says anything of the group."""
        return (
            not self.members
            and not self.targets
            and self.topology is None
            and self.epoch == self.assignment_epoch == FIRST_EPOCH
        )

    @property
    def source_topics(self) -> frozenset[str]:
        """The topics that the application reads while it has members: they keep their offsets."""
        if self.topology is None or not self.members:
            return frozenset()
        return frozenset(self.topology.subtopology_of)

    def target_of(self, member_id: str) -> TaskTarget:
        return self.targets.get(member_id, NO_TARGET)

    def process_of(self, member_id: str) -> str | None:
        member = self.members.get(member_id)
        return None if member is None else member.process_id

    def copy(self) -> Self:
        """A group that may be changed without this one."""
        return replace(self, members=self.members.copy(), targets=self.targets.copy(), owners=self.owners.copy())

    def put(self, member: StreamsMember) -> None:
        """Add a member, or put it in the place of what it was."""
        self._forget(self.members.get(member.member_id))
        self.members[member.member_id] = member
        self.size_bytes += member.size_bytes
        self.endpoints += member.endpoint is not None
        self.owners.put(member.member_id, member.assigned)
        self.owners.put(member.member_id, member.revoking)

    def remove(self, member_id: str) -> None:
        self._forget(self.members.pop(member_id, None))
        if not self.members:
            self.shutdown_by = None

    def put_target(self, member_id: str, target: TaskTarget | None) -> None:
        """Put a member's target in the place of what it was."""
        former = self.targets.pop(member_id, NO_TARGET)
        self.size_bytes += TASK_BYTES * ((0 if target is None else target.count) - former.count)
        if target is not None:
            self.targets[member_id] = target

    def put_topology(self, topology: Topology | None) -> None:
        self.size_bytes += size_of(topology) - size_of(self.topology)
        self.topology = topology
        self.configured = None

    def _forget(self, member: StreamsMember | None) -> None:
        if member is None:
            return
        self.size_bytes -= member.size_bytes
        self.endpoints -= member.endpoint is not None
        self.owners.release(member.member_id, member.assigned)
        self.owners.release(member.member_id, member.revoking)


def size_of(topology: Topology | None) -> int:
    """About how much memory a topology takes, once as it is sent and once as it is configured."""
    return 0 if topology is None else 2 * topology.size_bytes
