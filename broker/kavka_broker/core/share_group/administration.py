"""What operators ask of a share group, and what the share coordinator answers.

Offsets are altered and deleted while a group has no members. The shell carries out what a command comes to in three
steps: it writes the change down, asks the share coordinator, and writes down what has been answered.
"""

from collections.abc import Iterable
from dataclasses import replace

from kavka_broker.core.consumer_group.heartbeat import NO_ROOM
from kavka_broker.core.consumer_group.settings import has_room_for
from kavka_broker.core.consumer_group.subscribed_topics import Described, Topics
from kavka_broker.core.share_group import state_partitions
from kavka_broker.core.share_group.heartbeat import ShareChange
from kavka_broker.core.share_group.records import states_record
from kavka_broker.core.share_group.state import Named, ShareGroup, StatePartitions, size_of
from kavka_broker.core.share_group.state_partitions import Partitions
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = [
    "alter",
    "delete_all",
    "delete_topics",
    "deleted",
    "forget_deleted_topics",
    "has_deleted_topics",
    "require_empty",
    "settle",
]


def require_empty(group: ShareGroup) -> None:
    """Raises NON_EMPTY_GROUP."""
    if group.members:
        raise BrokerError(ErrorCode.NON_EMPTY_GROUP)


def alter(group: ShareGroup, wanted: Named, room_bytes: int) -> ShareChange:
    """Decide to initialize partitions at other offsets. The group may grow by `room_bytes`. Raises BrokerError."""
    require_empty(group)
    if not wanted:
        return ShareChange()
    states = state_partitions.begin(group.states, wanted)
    if not has_room_for(size_of(states) - size_of(group.states), room_bytes):
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, NO_ROOM)
    change = _changed(group, states)
    return replace(change, initialize=wanted, state_epoch=group.epoch)


def settle(group: ShareGroup, done: Partitions, failed: Partitions) -> ShareChange:
    """Decide on what the share coordinator has initialized, and what it has not."""
    if group.states is None:
        return ShareChange()
    return _changed(group, state_partitions.settle(group.states, done, failed))


def delete_all(group: ShareGroup, topics: Topics) -> ShareChange:
    """Decide that the state of all partitions of a group goes, before the group does. Raises BrokerError."""
    require_empty(group)
    if group.states is None:
        return ShareChange()
    states, asked = state_partitions.delete_all(group.states, topics)
    return replace(_changed(group, states), delete=asked)


def delete_topics(group: ShareGroup, wanted: Iterable[Described]) -> ShareChange:
    """Decide that the state of these topics goes. Raises BrokerError."""
    require_empty(group)
    if group.states is None:
        return ShareChange()
    states, asked = state_partitions.delete(group.states, wanted)
    return replace(_changed(group, states), delete=asked)


def deleted(group: ShareGroup, topic_ids: Iterable[bytes]) -> ShareChange:
    """Decide on topics whose state is gone."""
    return (
        ShareChange()
        if group.states is None
        else _changed(group, state_partitions.deleted(group.states, frozenset(topic_ids)))
    )


def has_deleted_topics(group: ShareGroup, topics: Topics) -> bool:
    """Whether a group keeps something of topics that do not exist any more."""
    return state_partitions.without_deleted(group.states, topics) is not group.states


def forget_deleted_topics(group: ShareGroup, topics: Topics) -> ShareChange:
    """Decide to forget topics that do not exist any more."""
    states = state_partitions.without_deleted(group.states, topics)
    return ShareChange() if states is None else _changed(group, states)


def _changed(group: ShareGroup, states: StatePartitions) -> ShareChange:
    """The change to these state partitions: none where they are as they were."""
    return ShareChange([] if states == group.states else [states_record(group.group_id, states)])
