"""Deleting groups and offsets, by request or because their time is over: all of it only decides."""

from collections.abc import Collection, Iterable

from kavka_broker.core.consumer_group.records import group_tombstones
from kavka_broker.core.consumer_group.state import ConsumerGroup
from kavka_broker.core.group.offsets import CommittingGroup, Offsets
from kavka_broker.core.group.records import KeyedRecord, group_tombstone, offset_tombstone
from kavka_broker.core.group.state import ClassicGroup, GroupState
from kavka_broker.core.group.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from kavka_broker.core.streams_group.records import group_tombstones as streams_tombstones
from kavka_broker.core.streams_group.state import StreamsGroup
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["check_offset_deletion", "delete_group", "ends_of", "is_over"]


def delete_group(group: CommittingGroup, offsets: Offsets, staged: Iterable[tuple[str, int]] = ()) -> list[KeyedRecord]:
    """The records that end a group and its offsets, and what open transactions have `staged`: their end must not bring
    the group back. Raises BrokerError where it has members.
    """
    if group.state is GroupState.DEAD:
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
    if group.members if not isinstance(group, ClassicGroup) else group.state is not GroupState.EMPTY:
        raise BrokerError(ErrorCode.NON_EMPTY_GROUP)
    assert not group.members, f"{group.group_id} is empty, with {list(group.members)}"
    only_staged = [place for place in staged if place[1] not in offsets.get(place[0], ())]
    return [
        *tombstones(group.group_id, offsets),
        *(offset_tombstone(group.group_id, *place) for place in only_staged),
        *ends_of(group),
    ]


def ends_of(group: CommittingGroup) -> list[KeyedRecord]:
    """The tombstones of a group itself, which has no members."""
    match group:
        case ConsumerGroup():
            return group_tombstones(group)
        case StreamsGroup():
            return streams_tombstones(group)
    return [group_tombstone(group.group_id)]


def tombstones(group_id: str, offsets: Offsets) -> list[KeyedRecord]:
    return [offset_tombstone(group_id, topic, partition) for topic, parts in offsets.items() for partition in parts]


def check_offset_deletion(group: ClassicGroup, topics: Collection[str]) -> set[str]:
    """Topics of these that keep their offsets because a consumer subscribes to them. Raises BrokerError."""
    match group.state:
        case GroupState.DEAD:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
        case GroupState.EMPTY:
            assert not group.members, f"{group.group_id} is empty, with {list(group.members)}"
            return set()
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise BrokerError(ErrorCode.NON_EMPTY_GROUP)
    subscribed = subscribed_topics(group)
    return set(topics) if subscribed is None else set(topics) & subscribed


def is_over(group: CommittingGroup) -> bool:
    """Whether the group ends with its last offset: it has no members, and none are about to join."""
    if not isinstance(group, ClassicGroup):
        return not group.members
    return group.state is GroupState.EMPTY and not group.pending and not group.writes_pending
