"""A group's record in `__consumer_offsets`, in Kafka's schema: the part of a group that survives.

What is written is a whole generation: protocol, leader, and each member with its subscription and assignment. Who is
joining or syncing is soft; after a restart a group stands where its last record left it, Stable or Empty, and its
members go on with their heartbeats. `restore(record_of(group))` equals the group as far as the record goes, and a
property test says so.
"""

from collections.abc import Mapping

from kavka_broker.core.group.state import ClassicGroup, GroupState, Member
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue, MemberMetadata

__all__ = ["record_of", "restore", "size_bytes_min"]


def record_of(group: ClassicGroup, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
    """The record of the group's generation with these assignments."""
    protocol = group.protocol_name
    assert group.leader_id is None or group.leader_id in group.members, f"{group.leader_id} leads and is no member"
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=protocol,
        leader=group.leader_id,
        current_state_timestamp=group.state_since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(protocol or ""),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )


def size_bytes_min(value: GroupMetadataValue) -> int:
    """The bytes of a record that its members handed in, nearly all of it where the record is large."""
    return sum(len(member.subscription) + len(member.assignment) for member in value.members)


def restore(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Restore the group from its last record."""
    group = ClassicGroup(
        group_id,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        state_since_ms=value.current_state_timestamp,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
    )
    for member in value.members:
        group.add(restore_member(member, value.protocol or ""))
    group.leader_id = value.leader if value.leader in group.members else next(iter(group.members), None)
    assert (group.leader_id is None) is (not group.members), (
        f"{group_id}: {group.leader_id} leads {list(group.members)}"
    )
    return group


def restore_member(value: MemberMetadata, protocol: str) -> Member:
    # Records before version 1 have no rebalance timeout: the session timeout stood for it.
    rebalance_timeout_ms = value.session_timeout if value.rebalance_timeout == -1 else value.rebalance_timeout
    return Member(
        member_id=value.member_id,
        instance_id=value.group_instance_id,
        client_id=value.client_id,
        client_host=value.client_host,
        session_timeout_ms=value.session_timeout,
        rebalance_timeout_ms=rebalance_timeout_ms,
        protocols=((protocol, bytes(value.subscription)),),
        assignment=bytes(value.assignment),
    )
