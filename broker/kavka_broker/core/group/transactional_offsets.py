"""Offsets that open transactions have committed: they count from the transaction's COMMIT on, or never.

What counts for a partition is the commit that stands last in the log, of those that are not a transaction's or whose
transaction is committed; a tombstone is one of them. So a staged offset is worth nothing any more as soon as something
counts that stands behind it, whenever its own transaction ends: else the offset that a group reads would depend on who
has read the log, and when (KAFKA-19163).
"""

from collections.abc import Iterator
from typing import NamedTuple

from kavka_broker.core.group.settings import metadata_bytes, name_bytes
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


class StagedTransaction:
    """What one transaction has staged, in the order of the log."""

    __slots__ = ("offsets", "producer_id")

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.offsets: dict[Place, StagedOffset] = {}


class Staged:
    """The staged offsets of the groups of one partition of `__consumer_offsets`.

    A transaction that has its marker is no longer its producer's, who may have begun the next one, and is kept until
    all of its offsets are taken out.
    """

    def __init__(self) -> None:
        self._open: dict[int, StagedTransaction] = {}  # by producer id
        self._ended: dict[StagedTransaction, None] = {}
        self._holders: dict[Place, dict[StagedTransaction, None]] = {}  # those that have staged an offset, by partition
        self._places: dict[str, dict[Place, None]] = {}  # the partitions with staged offsets, by group
        self.names_bytes = 0  # of the long names of those groups
        self.metadata_bytes = 0  # of the long metadata of the offsets

    def __len__(self) -> int:
        return len(self._open) + len(self._ended)

    def stage(self, producer_id: int, offset: StagedOffset) -> None:
        """Keep an offset until its transaction ends; a later one of the same transaction takes its place."""
        place = place_of(offset.key)
        transaction = self._open.get(producer_id)
        if transaction is None:
            transaction = self._open[producer_id] = StagedTransaction(producer_id)
        former = transaction.offsets.pop(place, None)
        if former is not None and former.value.metadata:
            self.metadata_bytes -= metadata_bytes(former.value.metadata)
        transaction.offsets[place] = offset
        if offset.value.metadata:
            self.metadata_bytes += metadata_bytes(offset.value.metadata)
        self._holders.setdefault(place, {})[transaction] = None
        if place[0] not in self._places:
            self._places[place[0]] = {}
            self.names_bytes += name_bytes(place[0])
        self._places[place[0]][place] = None

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction may change this offset."""
        return (group_id, topic, partition) in self._holders

    def has_group(self, group_id: str) -> bool:
        return group_id in self._places

    def of_group(self, group_id: str) -> list[tuple[str, int]]:
        """Topics and partitions of which a group has staged offsets."""
        return [(topic, partition) for _, topic, partition in self._places.get(group_id, ())]

    def count(self, producer_id: int) -> int:
        """How many offsets the producer's open transaction has staged."""
        transaction = self._open.get(producer_id)
        return 0 if transaction is None else len(transaction.offsets)

    def end(self, producer_id: int) -> Iterator[StagedOffset]:
        """End the producer's transaction; returns an iterator that takes its offsets out, in the order of the log."""
        transaction = self._open.pop(producer_id, None)
        if transaction is None:
            return iter(())
        self._ended[transaction] = None
        return self._take(transaction)

    def _take(self, transaction: StagedTransaction) -> Iterator[StagedOffset]:
        for place in list(transaction.offsets):
            offset = transaction.offsets.pop(place, None)
            if offset is not None:  # else superseded meanwhile
                self._forget(place, transaction, offset)
                yield offset
        self._ended.pop(transaction, None)

    def supersede(self, key: OffsetCommitKey, log_offset: int) -> None:
        """Drop staged offsets of a partition that stand in the log before what counts now."""
        place = place_of(key)
        for transaction in list(self._holders.get(place, ())):
            if transaction.offsets[place].log_offset < log_offset:
                offset = transaction.offsets.pop(place)
                if not transaction.offsets and transaction not in self._ended:
                    del self._open[transaction.producer_id]
                self._forget(place, transaction, offset)

    def _forget(self, place: Place, transaction: StagedTransaction, offset: StagedOffset) -> None:
        if offset.value.metadata:
            self.metadata_bytes -= metadata_bytes(offset.value.metadata)
        holders = self._holders[place]
        del holders[transaction]
        if holders:
            return
        del self._holders[place]
        places = self._places[place[0]]
        del places[place]
        if not places:
            del self._places[place[0]]
            self.names_bytes -= name_bytes(place[0])
            assert min(self.names_bytes, self.metadata_bytes) >= 0, (self.names_bytes, self.metadata_bytes)

    def __iter__(self) -> Iterator[tuple[int, StagedOffset]]:
        """Producer ids and what they have staged."""
        for transaction in (*self._ended, *self._open.values()):
            for offset in transaction.offsets.values():
                yield transaction.producer_id, offset


def place_of(key: OffsetCommitKey) -> Place:
    return key.group, key.topic, key.partition
