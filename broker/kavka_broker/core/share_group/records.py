"""The records of share groups in `__consumer_offsets`, in Kafka's schemas, and how a group follows from them.

`replay` takes the last record of each key in any order that compaction leaves: an assignment may come before the member
it is of, and a tombstone of what was never there says nothing. A group is there as long as any record says something of
it. A running coordinator calls it too, in the order of the log, with each record that it has appended: so what it
serves and what the next coordinator reads cannot differ.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kavka_broker.core.consumer_group.records import MEMBER_STATES
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.group.replay import GroupReplay
from kavka_broker.core.share_group.state import (
    FIRST_EPOCH,
    MemberState,
    Named,
    NamedPartitions,
    ShareGroup,
    ShareMember,
    StatePartitions,
    Target,
)
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey,
)
from kavka_broker.protocol.messages.group.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kavka_broker.protocol.messages.group.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kavka_broker.protocol.messages.group.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from kavka_broker.protocol.messages.group.share_group_metadata_key import ShareGroupMetadataKey
from kavka_broker.protocol.messages.group.share_group_metadata_value import ShareGroupMetadataValue
from kavka_broker.protocol.messages.group.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from kavka_broker.protocol.messages.group.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from kavka_broker.protocol.messages.group.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey,
)
from kavka_broker.protocol.messages.group.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kavka_broker.protocol.messages.group.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from kavka_broker.protocol.messages.group.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)

__all__ = [
    "KEYS",
    "assigned_record",
    "group_record",
    "group_tombstones",
    "member_record",
    "member_tombstones",
    "replay",
    "states_record",
    "target_epoch_record",
    "target_record",
]

KEYS: Final = (
    ShareGroupMetadataKey,
    ShareGroupMemberMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupStatePartitionMetadataKey,
)


# --- as they are written --------------------------------------------------------------------------------------------


def group_record(group_id: str, epoch: int, metadata_hash: int) -> KeyedRecord:
    return KeyedRecord(ShareGroupMetadataKey(group_id), ShareGroupMetadataValue(epoch, metadata_hash))


def member_record(group_id: str, member: ShareMember) -> KeyedRecord:
    """The record of a member's subscription."""
    value = ShareGroupMemberMetadataValue(member.rack_id, member.client_id, member.client_host, sorted(member.topics))
    return KeyedRecord(ShareGroupMemberMetadataKey(group_id, member.member_id), value)


def target_record(group_id: str, member_id: str, target: Target) -> KeyedRecord:
    value = ShareGroupTargetAssignmentMemberValue(
        [TopicPartition(topic_id, sorted(indexes)) for topic_id, indexes in sorted(target.items())]
    )
    return KeyedRecord(ShareGroupTargetAssignmentMemberKey(group_id, member_id), value)


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> KeyedRecord:
    value = ShareGroupTargetAssignmentMetadataValue(epoch, now_ms)
    return KeyedRecord(ShareGroupTargetAssignmentMetadataKey(group_id), value)


def assigned_record(group_id: str, member: ShareMember) -> KeyedRecord:
    """The record of what a member has, and of its epoch."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member.epoch,
        member.previous_epoch,
        member.state.value,
        [TopicPartitions(topic_id, sorted(indexes)) for topic_id, indexes in sorted(member.assigned.items())],
    )
    return KeyedRecord(ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def states_record(group_id: str, states: StatePartitions) -> KeyedRecord:
    value = ShareGroupStatePartitionMetadataValue(
        _infos(states.initializing),
        _infos(states.initialized),
        [TopicInfo(topic_id, name) for topic_id, name in sorted(states.deleting.items())],
    )
    return KeyedRecord(ShareGroupStatePartitionMetadataKey(group_id), value)


def _infos(topics: Named) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id, topic.name, sorted(topic.partitions))
        for topic_id, topic in sorted(topics.items())
    ]


def member_tombstones(group_id: str, member_id: str) -> list[KeyedRecord]:
    """The records that end a member; the last one removes it."""
    return [
        KeyedRecord(ShareGroupCurrentMemberAssignmentKey(group_id, member_id)),
        KeyedRecord(ShareGroupTargetAssignmentMemberKey(group_id, member_id)),
        KeyedRecord(ShareGroupMemberMetadataKey(group_id, member_id)),
    ]


def group_tombstones(group: ShareGroup) -> list[KeyedRecord]:
    """The records that end an empty group."""
    assert not group.members, f"{group.group_id} ends with {list(group.members)}"
    return [
        KeyedRecord(ShareGroupTargetAssignmentMetadataKey(group.group_id)),
        KeyedRecord(ShareGroupStatePartitionMetadataKey(group.group_id)),
        KeyedRecord(ShareGroupMetadataKey(group.group_id)),
    ]


# --- as they are read -----------------------------------------------------------------------------------------------


def _take(group: ShareGroup, key: Message, value: Message) -> None:
    match key, value:
        case ShareGroupMetadataKey(), ShareGroupMetadataValue():
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        case ShareGroupMemberMetadataKey(), ShareGroupMemberMetadataValue():
            group.put(_subscribed(group.members.get(key.member_id) or ShareMember(key.member_id), value))
        case ShareGroupTargetAssignmentMetadataKey(), ShareGroupTargetAssignmentMetadataValue():
            group.assignment_epoch, group.assigned_at_ms = value.assignment_epoch, value.assignment_timestamp
        case ShareGroupTargetAssignmentMemberKey(), ShareGroupTargetAssignmentMemberValue():
            group.targets[key.member_id] = _target(value.topic_partitions)
        case ShareGroupCurrentMemberAssignmentKey(), ShareGroupCurrentMemberAssignmentValue():
            group.put(_assigned(group.members.get(key.member_id) or ShareMember(key.member_id), value))
        case ShareGroupStatePartitionMetadataKey(), ShareGroupStatePartitionMetadataValue():
            group.put_states(_states(value))


def _bury(group: ShareGroup, key: Message) -> None:
    match key:
        case ShareGroupMetadataKey():
            group.epoch, group.metadata_hash = FIRST_EPOCH, 0
        case ShareGroupMemberMetadataKey():
            group.remove(key.member_id)
        case ShareGroupTargetAssignmentMetadataKey():
            group.assignment_epoch, group.assigned_at_ms = FIRST_EPOCH, 0
        case ShareGroupTargetAssignmentMemberKey():
            group.targets.pop(key.member_id, None)
        case ShareGroupStatePartitionMetadataKey():
            group.put_states(None)
        case ShareGroupCurrentMemberAssignmentKey() if key.member_id in group.members:
            blank = ShareMember(key.member_id)
            group.put(
                replace(
                    group.members[key.member_id],
                    epoch=blank.epoch,
                    previous_epoch=blank.previous_epoch,
                    state=blank.state,
                    assigned={},
                )
            )


def _subscribed(member: ShareMember, value: ShareGroupMemberMetadataValue) -> ShareMember:
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
    )


def _assigned(member: ShareMember, value: ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if value.state in MEMBER_STATES else MemberState.UNKNOWN,
        assigned=_target(value.assigned_partitions),
    )


def _target(topics: list[TopicPartition] | list[TopicPartitions]) -> Mapping[bytes, frozenset[int]]:
    return {topic.topic_id: frozenset(topic.partitions) for topic in topics}


def _states(value: ShareGroupStatePartitionMetadataValue) -> StatePartitions:
    return StatePartitions(
        _named(value.initializing_topics),
        _named(value.initialized_topics),
        {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
    )


def _named(topics: list[TopicPartitionsInfo]) -> Named:
    return {topic.topic_id: NamedPartitions(topic.topic_name, frozenset(topic.partitions)) for topic in topics}


replay: Final = GroupReplay(KEYS, ShareGroup, _take, _bury, ends=lambda group, _: group.is_blank)
"""Changes share groups as a record says."""
