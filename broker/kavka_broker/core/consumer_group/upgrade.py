"""Turns a classic group into a consumer group when a member of the new protocol comes to it (KIP-848).

All members go on, in the epoch that was the group's generation, and have as their target what they have. The member
that comes moves the epoch, so that the classic members are asked to join again: the group has no hash of its topics, as
its targets are of those that the leader of the generation knew.

Invariant: a partition that a member may still consume is owned by it afterwards. Beside its assignment a cooperative
member has what its subscription says that it owns, until it joins again: it gives up at its own pace what an assignment
takes away, and goes on where another rebalance has begun before an assignment was handed out.
"""

from collections.abc import Iterable, Mapping

from kavka_broker.core.consumer_group.checks import Heartbeat
from kavka_broker.core.consumer_group.classic_snapshot import ClassicSnapshot, MemberSnapshot
from kavka_broker.core.consumer_group.heartbeat import NO_ROOM, Change, Surroundings, heartbeat
from kavka_broker.core.consumer_group.records import (
    assigned_record,
    group_record,
    member_record,
    replay,
    target_epoch_record,
    target_record,
)
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ClassicSide, ConsumerGroup, ConsumerMember, Owned
from kavka_broker.core.consumer_group.subscribed_topics import Topics
from kavka_broker.core.group.embedded_protocol import CONSUMER_PROTOCOL_TYPE, read_assignment, read_subscription
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from kavka_broker.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kavka_broker.protocol.messages.consumer_protocol_subscription import TopicPartition as Subscribed

__all__ = ["check_upgrade", "upgrade", "upgraded"]

NO_METADATA_HASH = 0


def check_upgrade(group: ClassicGroup, settings: ConsumerGroupSettings) -> None:
    """Check that a member of the new protocol may turn this group. Raises GROUP_ID_NOT_FOUND."""
    if not settings.migration.may_upgrade:
        raise _refused(group.group_id, "online upgrade is disabled")
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise _refused(group.group_id, "the group does not use the consumer embedded protocol")
    if len(group.members) > settings.members_max:
        raise _refused(group.group_id, "the group size exceeds the consumer group maximum size")


def _refused(group_id: str, reason: str) -> BrokerError:
    problem = f"Cannot upgrade classic group {group_id} to consumer group because {reason}."
    return BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, problem)


def upgrade(
    group: ConsumerGroup,
    classic: ClassicSnapshot,
    beat: Heartbeat,
    settings: ConsumerGroupSettings,
    around: Surroundings,
) -> Change:
    """Decide on the heartbeat that turns a classic group into this one, which has nothing yet. Raises BrokerError."""
    records = upgraded(classic, around.topics)
    groups = {group.group_id: group.copy()}
    for record in records:
        replay(groups, record.key, record.value)
    if groups[group.group_id].size_bytes > around.room_bytes:
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, NO_ROOM)
    change = heartbeat(groups[group.group_id], beat, settings, around)
    change.records = [*records, *change.records]
    change.upgraded = classic
    return change


def upgraded(classic: ClassicSnapshot, topics: Topics) -> list[KeyedRecord]:
    """The records of the consumer group. Raises GROUP_ID_NOT_FOUND where a member's part cannot be read."""
    try:
        subscriptions = {
            member.member_id: read_subscription(member.metadata(classic.protocol_name)) for member in classic.members
        }
        owned = _owned(classic, subscriptions, topics)
    except ProtocolViolation:
        raise _refused(classic.group_id, "the embedded consumer protocol is malformed") from None
    members = [
        _member(member, subscriptions[member.member_id], owned[member.member_id], classic.generation)
        for member in classic.members
    ]
    group_id = classic.group_id
    return [
        *(member_record(group_id, member) for member in members),
        group_record(group_id, classic.generation, NO_METADATA_HASH),
        *(target_record(group_id, member.member_id, _target(member.assigned)) for member in members),
        target_epoch_record(group_id, classic.generation, 0),
        *(assigned_record(group_id, member) for member in members),
    ]


def _owned(
    classic: ClassicSnapshot, subscriptions: Mapping[str, ConsumerProtocolSubscription], topics: Topics
) -> dict[str, dict[bytes, dict[int, int]]]:
    """What each member has, by topic id, with the generation; no partition is with two. Raises ProtocolViolation."""
    claims: list[tuple[str, Iterable[Assigned | Subscribed]]] = []
    for member in classic.members:
        if member.assignment:
            assignment = read_assignment(member.assignment)
            if assignment.user_data:
                reason = "an unsupported custom assignor is in use"
                raise _refused(classic.group_id, f"{reason}, whose user data would be lost")
            claims.append((member.member_id, assignment.assigned_partitions))
    claims.extend((member.member_id, subscriptions[member.member_id].owned_partitions) for member in classic.members)
    taken = set[tuple[bytes, int]]()
    owned: dict[str, dict[bytes, dict[int, int]]] = {member.member_id: {} for member in classic.members}
    for member_id, places in claims:
        for place in places:
            topic = topics.get(place.topic)
            for index in place.partitions if topic is not None else ():
                assert topic is not None
                if (topic.topic_id, index) not in taken:
                    taken.add((topic.topic_id, index))
                    owned[member_id].setdefault(topic.topic_id, {})[index] = classic.generation
    return owned


def _member(
    member: MemberSnapshot, subscription: ConsumerProtocolSubscription, owned: Owned, generation: int
) -> ConsumerMember:
    return ConsumerMember(
        member.member_id,
        epoch=generation,
        previous_epoch=generation,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicSide(member.session_timeout_ms, member.protocols),
        assigned=owned,
    )


def _target(owned: Owned) -> dict[bytes, frozenset[int]]:
    return {topic_id: frozenset(indexes) for topic_id, indexes in owned.items()}
