"""What members of the classic protocol are told in a consumer group (KIP-848).

A JoinGroup is a heartbeat that joins: it says what the member subscribes to and owns, and takes it one step towards its
target. It is answered at once; no member leads, and SyncGroup hands out what the coordinator has assigned. The member's
generation is its epoch. A member that has to take a step is told so by REBALANCE_IN_PROGRESS, and joins again.

A static member of the classic protocol may take the place of the last member of the new one: the group is a classic one
from then on, unless its record would be too large.
"""

from collections.abc import Collection

from kavka_broker.core.consumer_group.checks import Heartbeat, member_of, require_instance
from kavka_broker.core.consumer_group.downgrade import downgrade_records, downgraded, fits
from kavka_broker.core.consumer_group.heartbeat import Change, Surroundings, gathering_of, heartbeat, may_assign
from kavka_broker.core.consumer_group.records import replay
from kavka_broker.core.consumer_group.settings import SUBSCRIBED_TOPICS_MAX, ConsumerGroupSettings, MigrationPolicy
from kavka_broker.core.consumer_group.state import ClassicSide, ConsumerGroup, ConsumerMember, MemberState, has_reached
from kavka_broker.core.consumer_group.subscribed_topics import Topics
from kavka_broker.core.group.embedded_protocol import CONSUMER_PROTOCOL_TYPE, read_subscription
from kavka_broker.core.group.join import Join
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages.consumer_protocol_subscription import TopicPartition

__all__ = ["check_join", "check_sync", "classic_member_of", "has_to_rejoin", "join", "leaving"]


def check_join(group: ConsumerGroup, command: Join, settings: ConsumerGroupSettings) -> None:
    """Check that a member may join this group by the classic protocol. Raises BrokerError."""
    if settings.migration is MigrationPolicy.DISABLED:
        problem = (
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration is "
            "disabled."
        )
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, problem)
    is_known = command.member_id in group.members or (command.instance_id or "") in group.instances
    if not is_known and len(group.members) >= settings.members_max:
        problem = f"The consumer group has reached its maximum capacity of {settings.members_max} members."
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, problem)
    if command.protocol_type != CONSUMER_PROTOCOL_TYPE or not group.supports(name for name, _ in command.protocols):
        problem = f"Member {command.member_id}'s protocols are not supported."
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, problem)


def join(group: ConsumerGroup, command: Join, settings: ConsumerGroupSettings, around: Surroundings) -> Change:
    """Decide on a JoinGroup, which names a member or is given an id. Raises BrokerError."""
    check_join(group, command, settings)
    if command.member_id and command.instance_id is not None:
        require_instance(group, command.instance_id, command.member_id)
    beat = _beat_of(group.group_id, command, around.topics)
    if not _is_last_swap(group, command, settings):
        return heartbeat(group, beat, settings, around)
    change = heartbeat(group, beat, settings, around, assigns=False)
    groups = {group.group_id: group.copy()}
    for record in change.records:
        replay(groups, record.key, record.value)
    after = groups[group.group_id]
    is_stale = after.epoch > after.assignment_epoch
    change.has_to_rebalance = is_stale or not all(
        has_reached(member, after.assignment_epoch) for member in after.members.values()
    )
    classic = downgraded(after, (), around.topics, around.now_ms, generation=group.epoch)
    records = downgrade_records(group, classic)
    if not fits(records, around.batch_bytes_max):
        return heartbeat(group, beat, settings, around)
    change.classic, change.records = classic, records
    return change


def _is_last_swap(group: ConsumerGroup, command: Join, settings: ConsumerGroupSettings) -> bool:
    """Whether the join takes the place of the last member of the new protocol: the group becomes a classic one."""
    holder = None if command.instance_id is None else group.static_member(command.instance_id)
    return (
        holder is not None
        and holder.classic is None
        and group.classic_count == len(group.members) - 1
        and settings.migration.may_downgrade
        and len(group.members) <= settings.classic_members_max
    )


def _beat_of(group_id: str, command: Join, topics: Topics) -> Heartbeat:
    """The heartbeat that a JoinGroup is. Raises BrokerError."""
    try:
        subscription = read_subscription(command.protocols[0][1])
    except ProtocolViolation as violation:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(violation)) from None
    if len(subscription.topics) > SUBSCRIBED_TOPICS_MAX:
        problem = f"{len(subscription.topics)} topics are subscribed to; at most {SUBSCRIBED_TOPICS_MAX} are allowed."
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)
    return Heartbeat(
        group_id,
        command.member_id or command.new_member_id,
        0,
        client_id=command.client_id,
        client_host=command.client_host,
        instance_id=command.instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        topics=subscription.topics,
        regex="",
        classic=ClassicSide(command.session_timeout_ms, command.protocols),
        owned=_owned(subscription.owned_partitions, topics),
    )


def _owned(places: Collection[TopicPartition], topics: Topics) -> dict[bytes, list[int]]:
    owned = dict[bytes, list[int]]()
    for place in places:
        if (topic := topics.get(place.topic)) is not None:
            owned.setdefault(topic.topic_id, []).extend(place.partitions)
    return owned


def classic_member_of(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    """The sender of a SyncGroup or a Heartbeat, in the epoch that it names as its generation. Raises BrokerError."""
    member = member_of(group, member_id) if instance_id is None else require_instance(group, instance_id, member_id)
    if member.classic is None:
        problem = f"Member {member_id} does not use the classic protocol."
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, problem)
    if generation != member.epoch:
        problem = (
            f"The request generation id {generation} is not equal to the member epoch {member.epoch} of member "
            f"{member_id}."
        )
        raise BrokerError(ErrorCode.ILLEGAL_GENERATION, problem)
    return member


def check_sync(group: ConsumerGroup, member: ConsumerMember, protocol_type: str | None, protocol: str | None) -> None:
    """Check that the member may be told what it has. Raises BrokerError."""
    assert member.classic is not None, f"{member.member_id} speaks the new protocol"
    if protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or protocol not in (None, member.classic.protocols[0][0]):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # A member that gives partitions up has joined in this rebalance: it does so first, and joins again by itself.
    if member.epoch < group.assignment_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)


def has_to_rejoin(group: ConsumerGroup, member: ConsumerMember, settings: ConsumerGroupSettings, now_ms: int) -> bool:
    """Whether the member is to join again: there is a step that it can take towards its target, or a target may be
    computed. Members of the new protocol may compute it too, but one that hangs or is away does not.
    """
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    is_behind = group.epoch > group.assignment_epoch
    if is_behind and may_assign(group, gathering_of(group, settings, now_ms), settings, now_ms):
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member)


def _waits(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether anything of the member's target is still with another member."""
    return any(
        index not in member.assigned.get(topic_id, ()) and group.owner(topic_id, index) is not None
        for topic_id, indexes in group.target_of(member.member_id).items()
        for index in indexes
    )


def leaving(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """The member that a LeaveGroup names: by its id, or a static one by its instance alone. Raises BrokerError."""
    if instance_id is None:
        return member_of(group, member_id)
    member = group.static_member(instance_id)
    if member is None or member_id:
        return require_instance(group, instance_id, member_id)
    return member
