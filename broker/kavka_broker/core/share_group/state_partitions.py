"""Which partitions the share coordinator is asked to make the state of, or to delete it, and what its answers come to.

    unknown ---> initializing ---> initialized ---> deleting ---> unknown

A group asks for the state of every partition of its topics before it assigns one. What could not be initialized is
unknown again. What the coordinator never answered stays initializing, and is asked for again after a while. A topic
that is deleted is forgotten: the share coordinator deletes its state by itself.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from kavka_broker.core.consumer_group.subscribed_topics import Described, Topics
from kavka_broker.core.share_group.state import Named, NamedPartitions, ShareGroup, StatePartitions

__all__ = [
    "Partitions",
    "begin",
    "delete",
    "delete_all",
    "deleted",
    "existing",
    "has_all",
    "lacking",
    "settle",
    "without_deleted",
]

Partitions = Mapping[bytes, frozenset[int]]
"""Partitions by topic id."""

NOTHING = StatePartitions()


def existing(topics: Topics, names: Iterable[str]) -> list[Described]:
    """The topics of these names that exist, in the order of their names."""
    return [topic for topic in map(topics.get, sorted(names)) if topic is not None]


def lacking(group: ShareGroup, topics: Iterable[Described], now_ms: int, retry_interval_ms: int) -> Named:
    """The partitions of these topics to initialize now: neither initialized, nor asked for less than
    `retry_interval_ms` ago. An attempt in the future is one from before the clock was set back.
    """
    states, found = group.states or NOTHING, dict[bytes, NamedPartitions]()
    for topic in topics:
        missing = frozenset(topic.partitions) - _partitions(states.initialized, topic.topic_id)
        tried_ms = group.tried_at_ms.get(topic.topic_id)
        if tried_ms is not None and tried_ms <= now_ms < tried_ms + retry_interval_ms:
            missing -= _partitions(states.initializing, topic.topic_id)
        if missing:
            found[topic.topic_id] = NamedPartitions(topic.name, missing)
    return found


def has_all(states: StatePartitions | None, topics: Iterable[Described]) -> bool:
    """Whether every partition of these topics is initialized."""
    initialized = (states or NOTHING).initialized
    return all(_partitions(initialized, topic.topic_id).issuperset(topic.partitions) for topic in topics)


def begin(states: StatePartitions | None, wanted: Named) -> StatePartitions:
    """Note what the coordinator is asked to initialize. State that was being deleted is wanted again."""
    states = states or NOTHING
    return StatePartitions(
        _union(states.initializing, wanted),
        states.initialized,
        {topic_id: name for topic_id, name in states.deleting.items() if topic_id not in wanted},
    )


def settle(states: StatePartitions, done: Partitions, failed: Partitions) -> StatePartitions:
    """Note what the coordinator has answered. What has not been asked for, or was given up meanwhile, says nothing."""
    initializing, initialized = dict(states.initializing), dict(states.initialized)
    for topic_id, topic in states.initializing.items():
        answered = done.get(topic_id, frozenset()) & topic.partitions
        left = topic.partitions - answered - failed.get(topic_id, frozenset())
        if answered:
            initialized = {**_union(initialized, {topic_id: topic._replace(partitions=answered)})}
        if left:
            initializing[topic_id] = topic._replace(partitions=left)
        else:
            del initializing[topic_id]
    return replace(states, initializing=initializing, initialized=initialized)


def delete_all(states: StatePartitions, topics: Topics) -> tuple[StatePartitions, Partitions]:
    """Note that all state of a group goes; returns what the coordinator is asked to delete. Topics that are deleted are
    forgotten, and those whose deletion was not answered are asked for again.
    """
    deleting, asked = dict[bytes, str](), dict[bytes, frozenset[int]]()
    for topic_id, topic in _union(states.initialized, states.initializing).items():
        if topics.by_id(topic_id) is not None:
            deleting[topic_id], asked[topic_id] = topic.name, topic.partitions
    for topic_id, name in states.deleting.items():
        if (known := topics.by_id(topic_id)) is not None:
            deleting[topic_id], asked[topic_id] = name, frozenset(known.partitions)
    return StatePartitions(deleting=deleting), asked


def delete(states: StatePartitions, wanted: Iterable[Described]) -> tuple[StatePartitions, Partitions]:
    """Note that the state of these topics goes; returns what the coordinator is asked to delete. A topic without state
    is left out.
    """
    initialized, deleting, asked = dict(states.initialized), dict(states.deleting), dict[bytes, frozenset[int]]()
    for topic in wanted:
        if (known := initialized.pop(topic.topic_id, None)) is not None:
            asked[topic.topic_id] = known.partitions
            deleting[topic.topic_id] = topic.name
        elif topic.topic_id in deleting:
            asked[topic.topic_id] = frozenset(topic.partitions)
    return replace(states, initialized=initialized, deleting=deleting), asked


def deleted(states: StatePartitions, topic_ids: Collection[bytes]) -> StatePartitions:
    """Note that the state of these topics is gone."""
    left = {topic_id: name for topic_id, name in states.deleting.items() if topic_id not in topic_ids}
    return replace(states, deleting=left)


def without_deleted(states: StatePartitions | None, topics: Topics) -> StatePartitions | None:
    """The same without topics that do not exist any more; the same object where there are none."""
    if states is None:
        return None
    known = {*states.initializing, *states.initialized, *states.deleting}
    gone = frozenset(topic_id for topic_id in known if topics.by_id(topic_id) is None)
    if not gone:
        return states
    return StatePartitions(
        {topic_id: topic for topic_id, topic in states.initializing.items() if topic_id not in gone},
        {topic_id: topic for topic_id, topic in states.initialized.items() if topic_id not in gone},
        {topic_id: name for topic_id, name in states.deleting.items() if topic_id not in gone},
    )


def _partitions(topics: Named, topic_id: bytes) -> frozenset[int]:
    topic = topics.get(topic_id)
    return frozenset() if topic is None else topic.partitions


def _union(topics: Named, more: Named) -> Named:
    merged = dict(topics)
    for topic_id, topic in more.items():
        merged[topic_id] = topic._replace(partitions=topic.partitions | _partitions(topics, topic_id))
    return merged
