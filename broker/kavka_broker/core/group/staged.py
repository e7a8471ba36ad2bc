"""Offsets that open transactions have committed: they count from the transaction's COMMIT on, or never.

What counts for a partition is the commit that stands last in the log, of those that are not a transaction's or whose
transaction is committed; a tombstone is one of them. So a staged offset is worth nothing any more as soon as something
counts that stands behind it, whenever its own transaction ends: else the offset that a group reads would depend on who
has read the log, and when (KAFKA-19163).
"""

from collections.abc import Iterator
from typing import NamedTuple

from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue

__all__ = ["Staged", "StagedOffset"]

Place = tuple[str, str, int]  # group, topic, partition


class StagedOffset(NamedTuple):
    """An offset of an open transaction. `since` is the number of topic deletions that were known when it came."""

    key: OffsetCommitKey
    value: OffsetCommitValue
    log_offset: int
    since: int


class Staged:
    """The staged offsets of the groups of one partition of `__consumer_offsets`, by producer id."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[Place, StagedOffset]] = {}
        self._producers: dict[Place, dict[int, None]] = {}  # the producers that have staged an offset, by partition
        self._places: dict[str, dict[Place, None]] = {}  # the partitions with staged offsets, by group

    def __len__(self) -> int:
        return len(self._by_producer)

    def stage(self, producer_id: int, offset: StagedOffset) -> None:
        """Keep an offset until its transaction ends; a later one of the same transaction takes its place."""
        place = place_of(offset.key)
        self._by_producer.setdefault(producer_id, {})[place] = offset
        self._producers.setdefault(place, {})[producer_id] = None
        self._places.setdefault(place[0], {})[place] = None

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction may change this offset."""
        return (group_id, topic, partition) in self._producers

    def has_group(self, group_id: str) -> bool:
        return group_id in self._places

    def of_group(self, group_id: str) -> list[tuple[str, int]]:
        """Topics and partitions of which a group has staged offsets."""
        return [(topic, partition) for _, topic, partition in self._places.get(group_id, ())]

    def end(self, producer_id: int) -> list[StagedOffset]:
        """Take out what the producer's transaction has staged, in the order of the log."""
        ended = self._by_producer.pop(producer_id, {})
        for place in ended:
            self._forget(place, producer_id)
        return sorted(ended.values(), key=lambda offset: offset.log_offset)

    def supersede(self, key: OffsetCommitKey, log_offset: int) -> None:
        """Drop staged offsets of a partition that stand in the log before what counts now."""
        place = place_of(key)
        for producer_id in list(self._producers.get(place, ())):
            staged = self._by_producer[producer_id]
            if staged[place].log_offset < log_offset:
                del staged[place]
                if not staged:
                    del self._by_producer[producer_id]
                self._forget(place, producer_id)

    def _forget(self, place: Place, producer_id: int) -> None:
        producers = self._producers[place]
        del producers[producer_id]
        if producers:
            return
        del self._producers[place]
        places = self._places[place[0]]
        del places[place]
        if not places:
            del self._places[place[0]]

    def __iter__(self) -> Iterator[tuple[int, StagedOffset]]:
        """Producer ids and what they have staged."""
        for producer_id, staged in self._by_producer.items():
            for offset in staged.values():
                yield producer_id, offset


def place_of(key: OffsetCommitKey) -> Place:
    return key.group, key.topic, key.partition
