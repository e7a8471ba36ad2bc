"""Turns a consumer group into a classic one when only members of the classic protocol are left (KIP-848).

The classic group is Stable, in the generation that was the group's epoch, and each member has in it what it has: also
what it had still to give up, so that no other member is given that. Apache Kafka writes the targets instead, which
members between two epochs do not have yet.
"""

from collections.abc import Collection, Sequence

from kavka_broker.core.consumer_group.records import group_tombstones
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ConsumerGroup, ConsumerMember, Owned
from kavka_broker.core.consumer_group.subscribed_topics import Topics
from kavka_broker.core.group.embedded_protocol import CONSUMER_PROTOCOL_TYPE, frame_assignment, version_of
from kavka_broker.core.group.persistence import record_of, size_bytes_min
from kavka_broker.core.group.records import KeyedRecord, batch_of, group_record
from kavka_broker.core.group.state import ClassicGroup, GroupState, Member
from kavka_broker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue

__all__ = ["downgrade_records", "downgraded", "fits", "framed_assignment", "may_downgrade"]


def may_downgrade(group: ConsumerGroup, gone: Sequence[ConsumerMember], settings: ConsumerGroupSettings) -> bool:
    """Whether the group becomes a classic one without these members."""
    left = len(group.members) - len(gone)
    classic_left = group.classic_count - sum(member.classic is not None for member in gone)
    return 0 < left == classic_left and left <= settings.classic_members_max and settings.migration.may_downgrade


def downgraded(
    group: ConsumerGroup, gone: Collection[str], topics: Topics, now_ms: int, generation: int | None = None
) -> ClassicGroup:
    """The classic group of the members that are not `gone`, in the generation that is the group's epoch."""
    classic = ClassicGroup(
        group.group_id,
        state=GroupState.STABLE,
        state_since_ms=now_ms,
        generation=group.epoch if generation is None else generation,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
    )
    stay = [member for member in group.members.values() if member.member_id not in gone]
    for member in stay:
        classic.add(_classic_member(member))
    classic.protocol_name = classic.select_protocol()
    for member in stay:
        restored = classic.members[member.member_id]
        owned = (member.assigned, member.revoking)
        classic.assign(restored, framed_assignment(owned, topics, restored.metadata(classic.protocol_name)))
    return classic


def downgrade_records(group: ConsumerGroup, classic: ClassicGroup) -> list[KeyedRecord]:
    """The records that end the group, and make it this classic one."""
    assignments = {member.member_id: member.assignment for member in classic.members.values()}
    return [*group_tombstones(group), group_record(group.group_id, record_of(classic, assignments))]


def fits(records: Sequence[KeyedRecord], bytes_max: int) -> bool:
    """Whether the records of a downgrade fit into a batch: members of a consumer group have a record each, and those of
    a classic group one together.
    """
    value = records[-1].value
    assert isinstance(value, GroupMetadataValue), f"the last record is {records[-1].key}"
    return size_bytes_min(value) <= bytes_max and len(batch_of(records, 0)) <= bytes_max


def _classic_member(member: ConsumerMember) -> Member:
    side = member.classic
    assert side is not None, f"{member.member_id} speaks the new protocol, and its group the classic one"
    return Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        side.session_timeout_ms,
        member.rebalance_timeout_ms,
        side.protocols,
    )


def framed_assignment(parts: Sequence[Owned], topics: Topics, metadata: bytes) -> bytes:
    """The bytes that tell a member of the classic protocol what it has, in the version of its subscription. Topics that
    have been deleted are left out.
    """
    by_name = dict[str, list[int]]()
    for topic_id, indexes in (item for part in parts for item in part.items()):
        if (topic := topics.by_id(topic_id)) is not None:
            by_name.setdefault(topic.name, []).extend(indexes)
    assignment = ConsumerProtocolAssignment([TopicPartition(name, sorted(by_name[name])) for name in sorted(by_name)])
    return frame_assignment(assignment, version_of(metadata))
