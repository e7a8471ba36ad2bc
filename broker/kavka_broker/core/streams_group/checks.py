"""What a heartbeat may say: the checks before any state is looked at, and those of a member's epoch.

The words are close to Apache Kafka's, because people search for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kavka_broker.core.consumer_group.state import LEFT_FOR_A_WHILE_EPOCH
from kavka_broker.core.streams_group.configured_topology import ConfiguredTopology
from kavka_broker.core.streams_group.settings import TAGS_MAX
from kavka_broker.core.streams_group.state import LEFT_EPOCH, Endpoint, MemberState, StreamsGroup, StreamsMember
from kavka_broker.core.streams_group.tasks import TaskTarget
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages import streams_group_heartbeat_request as sent

__all__ = ["StreamsHeartbeat", "check_epoch", "check_heartbeat", "check_tasks", "member_of", "with_owned"]

MEMBER_ID_LENGTH_MAX = 255


@dataclass(frozen=True, slots=True)
class StreamsHeartbeat:
    """A heartbeat as its member sent it. None stands for what it does not say: that stays as it is.

    `topology` and `reported` are still parts of the message: large ones are read in a thread, `reported` as `owned`.
    """

    group_id: str
    member_id: str
    epoch: int
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1  # -1: not said
    topology: sent.Topology | None = None
    owned: TaskTarget | None = None
    reported: tuple[Sequence[sent.TaskIds], ...] | None = None  # the tasks that it owns, of each role
    process_id: str | None = None
    endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] | None = None
    endpoint_epoch: int = -1  # the latest that the member has seen
    shuts_down: bool = False  # the member asks for the end of the whole application

    @property
    def joins(self) -> bool:
        return self.epoch == 0

    @property
    def leaves(self) -> bool:
        return self.epoch == LEFT_EPOCH


def check_heartbeat(request: sent.StreamsGroupHeartbeatRequest) -> None:
    """Check what needs no group, except for the topology. Raises BrokerError."""
    _check_supported(request)
    _require_text(request.member_id, "MemberId")
    _require_text(request.group_id, "GroupId")
    _require_text(request.rack_id, "RackId")
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if request.member_epoch == 0:
        _check_join(request)
    elif request.member_epoch == LEFT_FOR_A_WHILE_EPOCH:
        raise _invalid("InstanceId can't be null.")
    elif request.member_epoch < LEFT_FOR_A_WHILE_EPOCH:
        raise _invalid(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    if any(role is not None for role in tasks) and any(role is None for role in tasks):
        raise _invalid("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != 0 and request.topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")
    if len(request.member_id) > MEMBER_ID_LENGTH_MAX:
        raise _invalid(f"MemberId has {len(request.member_id)} characters; at most {MEMBER_ID_LENGTH_MAX} are allowed.")
    if request.client_tags is not None and len(request.client_tags) > TAGS_MAX:
        raise _invalid(f"ClientTags has {len(request.client_tags)} tags; at most {TAGS_MAX} are allowed.")


def _check_supported(request: sent.StreamsGroupHeartbeatRequest) -> None:
    """Check that nothing is asked for that Apache Kafka 4.3 refuses, though the protocol has it. Raises BrokerError."""
    if request.instance_id is not None:
        raise _invalid("Static membership is not yet supported.")
    if request.task_offsets is not None:
        raise _invalid("TaskOffsets are not supported yet.")
    if request.task_end_offsets is not None:
        raise _invalid("TaskEndOffsets are not supported yet.")
    if request.warmup_tasks:
        raise _invalid("WarmupTasks are not supported yet.")


def _check_join(request: sent.StreamsGroupHeartbeatRequest) -> None:
    """Raises BrokerError."""
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    roles = (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    )
    for name, tasks in roles:
        if tasks is None or tasks:
            raise _invalid(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")


def _require_text(text: str | None, name: str) -> None:
    """Raises BrokerError."""
    if text is not None and not text.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(problem: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, problem)


def check_tasks(owned: TaskTarget | None, configured: ConfiguredTopology) -> None:
    """Check that a member owns only tasks of the topology. Raises BrokerError."""
    if owned is None:
        return
    for tasks in (owned.active, owned.standby, owned.warmup):
        for part, partitions in tasks.items():
            known = configured.subtopologies.get(part)
            if known is None:
                raise _invalid(f"Subtopology {part} does not exist in the topology.")
            wrong = next((partition for partition in sorted(partitions) if not 0 <= partition < known.tasks), None)
            if wrong is not None:
                problem = f"Task {wrong} for subtopology {part} is invalid. Number of tasks for this subtopology: "
                raise _invalid(f"{problem}{known.tasks}")


def check_epoch(member: StreamsMember, epoch: int, owned: TaskTarget | None) -> None:
    """Check the epoch that a member says it is in. Raises BrokerError.

    One behind is right where the answer with the new epoch was lost: the member then owns no more than it is assigned.
    """
    if epoch > member.epoch:
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, _fenced("greater", epoch, member.epoch))
    if epoch < member.epoch and (epoch != member.previous_epoch or not _has_all(member, owned)):
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, _fenced("smaller", epoch, member.epoch))
    if member.state is MemberState.UNKNOWN and owned != TaskTarget():
        problem = "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, problem)


def _fenced(comparison: str, epoch: int, known: int) -> str:
    return (
        f"The streams group member has a {comparison} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({known}). The member must abandon all its partitions and rejoin."
    )


def _has_all(member: StreamsMember, owned: TaskTarget | None) -> bool:
    if owned is None:
        return False
    has = member.assigned.tasks
    roles = ((owned.active, has.active), (owned.standby, has.standby), (owned.warmup, has.warmup))
    return all(
        partitions <= tasks.get(part, frozenset()) for reported, tasks in roles for part, partitions in reported.items()
    )


def member_of(group: StreamsGroup, member_id: str) -> StreamsMember:
    """Raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(member_id)
    if member is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def with_owned(beat: StreamsHeartbeat) -> StreamsHeartbeat:
    """The heartbeat with the tasks that its member reports."""
    if beat.reported is None:
        return beat
    return replace(beat, owned=TaskTarget(*map(_owned_tasks, beat.reported)), reported=None)


def _owned_tasks(tasks: Sequence[sent.TaskIds]) -> dict[str, frozenset[int]]:
    owned = dict[str, set[int]]()
    for part in tasks:
        if part.partitions:
            owned.setdefault(part.subtopology_id, set()).update(part.partitions)
    return {part: frozenset(partitions) for part, partitions in owned.items()}
