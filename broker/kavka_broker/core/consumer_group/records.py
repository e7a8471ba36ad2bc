"""The records of consumer groups in `__consumer_offsets`, in Kafka's schemas, and how a group follows from them.

`replay` takes the last record of each key in any order that compaction leaves: an assignment may come before the member
it is of, and a tombstone of what was never there says nothing. A running coordinator calls it too, in the order of the
log, with each record that it has appended: so what it serves and what the next coordinator reads cannot differ.

The hash of subscribed topics is ours. A coordinator of Apache Kafka that takes over finds another and computes the
assignment once more, which moves nothing.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from kavka_broker.core.consumer_group.state import (
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    Owned,
    Target,
)
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.group.replay import GroupReplay
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kavka_broker.protocol.messages.group.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kavka_broker.protocol.messages.group.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kavka_broker.protocol.messages.group.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kavka_broker.protocol.messages.group.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kavka_broker.protocol.messages.group.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kavka_broker.protocol.messages.group.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kavka_broker.protocol.messages.group.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kavka_broker.protocol.messages.group.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from kavka_broker.protocol.messages.group.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from kavka_broker.protocol.messages.group.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kavka_broker.protocol.messages.group.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kavka_broker.protocol.messages.group.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)

__all__ = [
    "assigned_record",
    "expression_record",
    "expression_tombstone",
    "group_record",
    "group_tombstones",
    "member_record",
    "member_tombstones",
    "replay",
    "target_epoch_record",
    "target_record",
]

KEYS: Final = (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)
MEMBER_STATES: Final = frozenset(state.value for state in MemberState)


# --- as they are written --------------------------------------------------------------------------------------------


def group_record(group_id: str, epoch: int, metadata_hash: int) -> KeyedRecord:
    return KeyedRecord(ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(epoch, metadata_hash))


def member_record(group_id: str, member: ConsumerMember) -> KeyedRecord:
    """The record of a member's subscription."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None if member.classic is None else _classic_metadata(member.classic),
    )
    return KeyedRecord(ConsumerGroupMemberMetadataKey(group_id, member.member_id), value)


def _classic_metadata(side: ClassicSide) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        side.session_timeout_ms, [ClassicProtocol(name, metadata) for name, metadata in side.protocols]
    )


def target_record(group_id: str, member_id: str, target: Target) -> KeyedRecord:
    value = ConsumerGroupTargetAssignmentMemberValue(
        [TopicPartition(topic_id, sorted(indexes)) for topic_id, indexes in sorted(target.items())]
    )
    return KeyedRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), value)


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> KeyedRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(epoch, now_ms)
    return KeyedRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), value)


def assigned_record(group_id: str, member: ConsumerMember) -> KeyedRecord:
    """The record of what a member has, and of its epoch."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state.value,
        assigned_partitions=_partitions(member.assigned),
        partitions_pending_revocation=_partitions(member.revoking),
    )
    return KeyedRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def expression_record(group_id: str, regex: str, topics: Collection[str], now_ms: int) -> KeyedRecord:
    """The record of the topics that an expression matches. It names no version of the metadata: a coordinator that
    takes over matches again.
    """
    value = ConsumerGroupRegularExpressionValue(sorted(topics), timestamp=now_ms)
    return KeyedRecord(ConsumerGroupRegularExpressionKey(group_id, regex), value)


def expression_tombstone(group_id: str, regex: str) -> KeyedRecord:
    return KeyedRecord(ConsumerGroupRegularExpressionKey(group_id, regex))


def member_tombstones(group_id: str, member_id: str) -> list[KeyedRecord]:
    """The records that end a member; the last one removes it."""
    return [
        KeyedRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)),
        KeyedRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)),
        KeyedRecord(ConsumerGroupMemberMetadataKey(group_id, member_id)),
    ]


def group_tombstones(group: ConsumerGroup) -> list[KeyedRecord]:
    """The records that end a group, and its members with it where it has any."""
    members = [tombstone for member_id in group.members for tombstone in member_tombstones(group.group_id, member_id)]
    return [
        *members,
        *(expression_tombstone(group.group_id, regex) for regex in group.matched),
        KeyedRecord(ConsumerGroupTargetAssignmentMetadataKey(group.group_id)),
        KeyedRecord(ConsumerGroupPartitionMetadataKey(group.group_id)),
        KeyedRecord(ConsumerGroupMetadataKey(group.group_id)),
    ]


def _partitions(owned: Owned) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id, sorted(indexes), [indexes[index] for index in sorted(indexes)])
        for topic_id, indexes in sorted(owned.items())
    ]


# --- as they are read -----------------------------------------------------------------------------------------------


def _take(group: ConsumerGroup, key: Message, value: Message) -> None:
    match key, value:
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
            member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
            group.put(_subscribed(member, value))
        case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
            group.assignment_epoch, group.assigned_at_ms = value.assignment_epoch, value.assignment_timestamp
        case ConsumerGroupTargetAssignmentMemberKey(), ConsumerGroupTargetAssignmentMemberValue():
            group.targets[key.member_id] = {
                topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
            }
        case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue():
            member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
            group.put(_assigned(member, value))
        case ConsumerGroupRegularExpressionKey(), ConsumerGroupRegularExpressionValue():
            group.put_matched(key.regular_expression, frozenset(value.topics))


def _bury(group: ConsumerGroup, key: Message) -> None:
    match key:
        case ConsumerGroupMemberMetadataKey():
            group.remove(key.member_id)
        case ConsumerGroupTargetAssignmentMetadataKey():
            group.assignment_epoch = group.assigned_at_ms = 0
        case ConsumerGroupTargetAssignmentMemberKey():
            group.targets.pop(key.member_id, None)
        case ConsumerGroupRegularExpressionKey():
            group.forget_matched(key.regular_expression)
        case ConsumerGroupCurrentMemberAssignmentKey() if key.member_id in group.members:
            blank = ConsumerMember(key.member_id)
            group.put(
                replace(
                    group.members[key.member_id],
                    epoch=blank.epoch,
                    previous_epoch=blank.previous_epoch,
                    state=blank.state,
                    assigned={},
                    revoking={},
                )
            )


def _subscribed(member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None if value.classic_member_metadata is None else _classic_side(value.classic_member_metadata),
    )


def _classic_side(metadata: ClassicMemberMetadata) -> ClassicSide:
    protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in metadata.supported_protocols)
    return ClassicSide(metadata.session_timeout_ms, protocols)


def _assigned(member: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if value.state in MEMBER_STATES else MemberState.UNKNOWN,
        assigned=_owned(value.assigned_partitions, value.member_epoch),
        revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def _owned(topics: list[TopicPartitions], member_epoch: int) -> dict[bytes, Mapping[int, int]]:
    """Partitions with their epochs. Releases before KIP-1251 wrote none: the member's own epoch is the safe one."""
    owned = dict[bytes, Mapping[int, int]]()
    for topic in topics:
        epochs = topic.assignment_epochs or [member_epoch] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


replay: Final = GroupReplay(
    KEYS, ConsumerGroup, _take, _bury, ends=lambda _, key: isinstance(key, ConsumerGroupMetadataKey)
)
"""Changes consumer groups as a record says."""
