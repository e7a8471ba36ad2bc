"""The records of streams groups in `__consumer_offsets`, in Kafka's schemas, and how a group follows from them.

`replay` takes the last record of each key in any order that compaction leaves, as that of share groups does
(`core.share_group.records`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.group.replay import GroupReplay
from kavka_broker.core.streams_group.state import (
    FIRST_EPOCH,
    NOT_VALIDATED,
    Endpoint,
    MemberState,
    StreamsGroup,
    StreamsMember,
)
from kavka_broker.core.streams_group.tasks import NO_TASKS, OwnedTasks, SinceEpochs, Tasks, TaskTarget
from kavka_broker.core.streams_group.topology import Topology, topology_from, topology_value
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group import streams_group_current_member_assignment_value as current
from kavka_broker.protocol.messages.group import streams_group_member_metadata_value as metadata
from kavka_broker.protocol.messages.group import streams_group_target_assignment_member_value as targets
from kavka_broker.protocol.messages.group.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from kavka_broker.protocol.messages.group.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from kavka_broker.protocol.messages.group.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kavka_broker.protocol.messages.group.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue
from kavka_broker.protocol.messages.group.streams_group_metadata_key import StreamsGroupMetadataKey
from kavka_broker.protocol.messages.group.streams_group_metadata_value import (
    LastAssignmentConfig,
    StreamsGroupMetadataValue,
)
from kavka_broker.protocol.messages.group.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey,
)
from kavka_broker.protocol.messages.group.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
)
from kavka_broker.protocol.messages.group.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from kavka_broker.protocol.messages.group.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from kavka_broker.protocol.messages.group.streams_group_topology_key import StreamsGroupTopologyKey
from kavka_broker.protocol.messages.group.streams_group_topology_value import StreamsGroupTopologyValue

__all__ = [
    "KEYS",
    "assigned_record",
    "group_record",
    "group_tombstones",
    "member_record",
    "member_tombstones",
    "replay",
    "target_epoch_record",
    "target_record",
    "topology_record",
]

KEYS: Final = (
    StreamsGroupMetadataKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupTopologyKey,
)
MEMBER_STATES: Final = frozenset(state.value for state in MemberState)


# --- as they are written --------------------------------------------------------------------------------------------


def group_record(group: StreamsGroup) -> KeyedRecord:
    """The record of a group's epoch, and of what it rests on."""
    value = StreamsGroupMetadataValue(
        group.epoch,
        group.metadata_hash,
        group.validated_epoch,
        [LastAssignmentConfig(key, value) for key, value in group.assignment_configs],
    )
    return KeyedRecord(StreamsGroupMetadataKey(group.group_id), value)


def topology_record(group_id: str, topology: Topology) -> KeyedRecord:
    return KeyedRecord(StreamsGroupTopologyKey(group_id), topology_value(topology))


def member_record(group_id: str, member: StreamsMember) -> KeyedRecord:
    """The record of what a member says of itself."""
    endpoint = member.endpoint
    value = StreamsGroupMemberMetadataValue(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.topology_epoch,
        member.process_id,
        None if endpoint is None else metadata.Endpoint(endpoint.host, endpoint.port),
        [metadata.KeyValue(key, tag) for key, tag in member.client_tags],
    )
    return KeyedRecord(StreamsGroupMemberMetadataKey(group_id, member.member_id), value)


def target_record(group_id: str, member_id: str, target: TaskTarget) -> KeyedRecord:
    value = StreamsGroupTargetAssignmentMemberValue(
        _target_ids(target.active), _target_ids(target.standby), _target_ids(target.warmup)
    )
    return KeyedRecord(StreamsGroupTargetAssignmentMemberKey(group_id, member_id), value)


def _target_ids(tasks: Tasks) -> list[targets.TaskIds]:
    return [targets.TaskIds(part, sorted(partitions)) for part, partitions in sorted(tasks.items())]


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> KeyedRecord:
    value = StreamsGroupTargetAssignmentMetadataValue(epoch, now_ms)
    return KeyedRecord(StreamsGroupTargetAssignmentMetadataKey(group_id), value)


def assigned_record(group_id: str, member: StreamsMember) -> KeyedRecord:
    """The record of what a member has, and of its epoch."""
    assigned, revoking = member.assigned, member.revoking
    value = StreamsGroupCurrentMemberAssignmentValue(
        member.epoch,
        member.previous_epoch,
        member.state.value,
        _epoch_ids(assigned.active),
        _current_ids(assigned.standby),
        _current_ids(assigned.warmup),
        _epoch_ids(revoking.active),
        _current_ids(revoking.standby),
        _current_ids(revoking.warmup),
    )
    return KeyedRecord(StreamsGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def _current_ids(tasks: Tasks) -> list[current.TaskIds]:
    return [current.TaskIds(part, sorted(partitions)) for part, partitions in sorted(tasks.items())]


def _epoch_ids(tasks: SinceEpochs) -> list[current.TaskIds]:
    return [
        current.TaskIds(part, sorted(since), [since[partition] for partition in sorted(since)])
        for part, since in sorted(tasks.items())
    ]


def member_tombstones(group_id: str, member_id: str) -> list[KeyedRecord]:
    """The records that end a member; the last one removes it."""
    return [
        KeyedRecord(StreamsGroupCurrentMemberAssignmentKey(group_id, member_id)),
        KeyedRecord(StreamsGroupTargetAssignmentMemberKey(group_id, member_id)),
        KeyedRecord(StreamsGroupMemberMetadataKey(group_id, member_id)),
    ]


def group_tombstones(group: StreamsGroup) -> list[KeyedRecord]:
    """The records that end an empty group."""
    assert not group.members, f"{group.group_id} ends with {list(group.members)}"
    return [
        KeyedRecord(StreamsGroupTargetAssignmentMetadataKey(group.group_id)),
        KeyedRecord(StreamsGroupMetadataKey(group.group_id)),
        KeyedRecord(StreamsGroupTopologyKey(group.group_id)),
    ]


# --- as they are read -----------------------------------------------------------------------------------------------


def _take(group: StreamsGroup, key: Message, value: Message) -> None:
    match key, value:
        case StreamsGroupMetadataKey(), StreamsGroupMetadataValue():
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
            group.validated_epoch = value.validated_topology_epoch
            configs = ((config.key, config.value) for config in value.last_assignment_configs or ())
            group.assignment_configs = tuple(sorted(configs))
        case StreamsGroupTopologyKey(), StreamsGroupTopologyValue():
            group.put_topology(topology_from(value))
        case StreamsGroupMemberMetadataKey(), StreamsGroupMemberMetadataValue():
            group.put(_said(group.members.get(key.member_id) or StreamsMember(key.member_id), value))
        case StreamsGroupTargetAssignmentMetadataKey(), StreamsGroupTargetAssignmentMetadataValue():
            group.assignment_epoch, group.assigned_at_ms = value.assignment_epoch, value.assignment_timestamp
        case StreamsGroupTargetAssignmentMemberKey(), StreamsGroupTargetAssignmentMemberValue():
            roles = (value.active_tasks, value.standby_tasks, value.warmup_tasks)
            group.put_target(key.member_id, TaskTarget(*map(_tasks, roles)))
        case StreamsGroupCurrentMemberAssignmentKey(), StreamsGroupCurrentMemberAssignmentValue():
            group.put(_assigned(group.members.get(key.member_id) or StreamsMember(key.member_id), value))


def _bury(group: StreamsGroup, key: Message) -> None:
    match key:
        case StreamsGroupMetadataKey():
            group.epoch, group.metadata_hash = FIRST_EPOCH, 0
            group.validated_epoch, group.assignment_configs = NOT_VALIDATED, ()
        case StreamsGroupTopologyKey():
            group.put_topology(None)
        case StreamsGroupMemberMetadataKey():
            group.remove(key.member_id)
        case StreamsGroupTargetAssignmentMetadataKey():
            group.assignment_epoch, group.assigned_at_ms = FIRST_EPOCH, 0
        case StreamsGroupTargetAssignmentMemberKey():
            group.put_target(key.member_id, None)
        case StreamsGroupCurrentMemberAssignmentKey() if key.member_id in group.members:
            blank = StreamsMember(key.member_id)
            group.put(
                replace(
                    group.members[key.member_id],
                    epoch=blank.epoch,
                    previous_epoch=blank.previous_epoch,
                    state=blank.state,
                    assigned=NO_TASKS,
                    revoking=NO_TASKS,
                )
            )


def _said(member: StreamsMember, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
    endpoint = value.user_endpoint
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=tuple(sorted((tag.key, tag.value) for tag in value.client_tags)),
    )


def _assigned(member: StreamsMember, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if value.state in MEMBER_STATES else MemberState.UNKNOWN,
        assigned=OwnedTasks(
            _since(value.active_tasks, value.member_epoch), _tasks(value.standby_tasks), _tasks(value.warmup_tasks)
        ),
        revoking=OwnedTasks(
            _since(value.active_tasks_pending_revocation, value.member_epoch),
            _tasks(value.standby_tasks_pending_revocation),
            _tasks(value.warmup_tasks_pending_revocation),
        ),
    )


def _tasks(ids: Sequence[current.TaskIds] | Sequence[targets.TaskIds]) -> Tasks:
    return {part.subtopology_id: frozenset(part.partitions) for part in ids if part.partitions}


def _since(ids: Sequence[current.TaskIds], member_epoch: int) -> dict[str, Mapping[int, int]]:
    """Active tasks with the epochs of their assignment; a record of before 4.3 has none, and means the member's."""
    since = dict[str, Mapping[int, int]]()
    for part in ids:
        epochs = part.assignment_epochs or ()
        if len(epochs) != len(part.partitions):
            epochs = [member_epoch] * len(part.partitions)
        if part.partitions:
            since[part.subtopology_id] = dict(zip(part.partitions, epochs, strict=True))
    return since


replay: Final = GroupReplay(KEYS, StreamsGroup, _take, _bury, ends=lambda group, _: group.is_blank)
"""Changes streams groups as a record says."""
