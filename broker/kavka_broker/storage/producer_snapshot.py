"""A partition's producers in a file, as Kafka writes it.

    version int16 (1), crc uint32 over all that follows, count int32, then of each producer:
    id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64,
    coordinator epoch int32, first offset of the open transaction int64

Written when a segment is rolled and when a log is closed, and named by the offset it stands before. After a start only
the batches behind the newest snapshot must be looked at. Of the last batches only the newest is kept.

Behind that Kavka writes whose snapshot it is, which Kafka passes over; the CRC covers it:

    topic id uuid, partition int32, offset int64, and of the segment that ends there (`fingerprint`, -1: not known)
    base offset int64, CRC of the first batch int64, CRC of the last batch int64

A snapshot of another log, or of another place, is not believed. One that Kafka has written says nothing of this; it is
held against the batches.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from struct import Struct, error
from typing import Final, NamedTuple

from crc32c import crc32c

from kavka_broker.core.partition.producer_state import NO_SEQUENCE, SEQUENCE_MAX, Producer, WrittenBatch
from kavka_broker.logs import get
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.file_names import SNAPSHOT, offset_file, parse_offset_file
from kavka_broker.storage.segment_fingerprint import Fingerprint

log = get("storage")

VERSION: Final = 1
_HEAD: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_MARK: Final = Struct(">16siqqqq")
assert _HEAD.size + _COUNT.size == 10, "Kafka's snapshot begins with 10 bytes"
assert _ENTRY.size == 46, "an entry of Kafka's snapshot has 46 bytes"


class Mark(NamedTuple):
    """Whose snapshot it is: of this partition, as it was before `offset`, and of this log's bytes."""

    topic_id: bytes
    partition: int
    offset: int
    fingerprint: Fingerprint


def encode(producers: Iterable[tuple[int, Producer]], mark: Mark) -> bytes:
    """The file's bytes."""
    entries = [_pack(producer_id, producer) for producer_id, producer in producers]
    packed_mark = _MARK.pack(mark.topic_id, mark.partition, mark.offset, *mark.fingerprint)
    body = _COUNT.pack(len(entries)) + b"".join(entries) + packed_mark
    return _HEAD.pack(VERSION, crc32c(body)) + body


def _pack(producer_id: int, producer: Producer) -> bytes:
    last = producer.batches[-1] if producer.batches else WrittenBatch(NO_SEQUENCE, NO_SEQUENCE, -1, -1, -1)
    return _ENTRY.pack(
        producer_id,
        producer.epoch,
        last.last_sequence,
        last.last_offset,
        last.last_offset - last.base_offset,
        producer.timestamp_ms,
        producer.coordinator_epoch,
        producer.transaction_first_offset,
    )


def decode(data: bytes) -> list[tuple[int, Producer]]:
    """The producers of a snapshot. Any bytes: raises only ProtocolViolation."""
    entries, _ = _split(data)
    return [_unpack(entry) for entry in _ENTRY.iter_unpack(entries)]


def mark_of(data: bytes) -> Mark | None:
    """Whose snapshot these bytes are; None where Kafka wrote them. Raises ProtocolViolation, as `decode` does."""
    _, mark = _split(data)
    if not mark:
        return None
    topic_id, partition, offset, *fingerprint = _MARK.unpack(mark)
    return Mark(topic_id, partition, offset, Fingerprint(*fingerprint))


def _split(data: bytes) -> tuple[bytes, bytes]:
    """The bytes of the producers, and of the mark."""
    try:
        version, crc = _HEAD.unpack_from(data)
        body = data[_HEAD.size :]
        (count,) = _COUNT.unpack_from(body)
    except error as problem:
        raise ProtocolViolation(f"a producer snapshot is cut: {problem}") from None
    if version != VERSION:
        raise ProtocolViolation(f"a producer snapshot of version {version}; this broker reads version {VERSION}")
    if crc32c(body) != crc:
        raise ProtocolViolation("a producer snapshot has a wrong CRC")
    end = _COUNT.size + count * _ENTRY.size
    if count < 0 or len(body) not in (end, end + _MARK.size):
        raise ProtocolViolation(f"a producer snapshot of {count} producers has {len(body)} bytes")
    return body[_COUNT.size : end], body[end:]


def _unpack(entry: tuple[int, int, int, int, int, int, int, int]) -> tuple[int, Producer]:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp_ms, coordinator_epoch, first_offset = entry
    producer = Producer(epoch, timestamp_ms, [], coordinator_epoch, first_offset)
    if last_offset >= 0:
        # A batch of the coordinator's own, such as offsets committed in a transaction, has no sequence.
        base_sequence = NO_SEQUENCE if last_sequence == NO_SEQUENCE else (last_sequence - delta) & SEQUENCE_MAX
        base_offset = last_offset - delta
        producer.batches.append(WrittenBatch(base_sequence, last_sequence, base_offset, last_offset, timestamp_ms))
    return producer_id, producer


#: Whether the batches agree with these producers, as they are said to be before this offset.
BornOut = Callable[[int, list[tuple[int, Producer]]], bool]


class ProducerSnapshots:
    """The snapshots in a log's directory. `newest` is the offset of the one that was written or loaded last; -1: none.
    `are_there` is false until one is seen or written.

    Everything raises OSError as the disk does.
    """

    def __init__(self, disk: Disk, directory: str, topic_id: bytes, partition: int) -> None:
        self.newest = -1
        self.are_there = False
        self._disk = disk
        self._directory = directory
        self._owner = (topic_id, partition)

    def path(self, offset: int) -> str:
        return os.path.join(self._directory, offset_file(offset, SNAPSHOT))

    def offsets(self) -> list[int]:
        """The offsets before which a snapshot stands, ascending."""
        parsed = map(parse_offset_file, self._disk.names(self._directory))
        return sorted(found[0] for found in parsed if found is not None and found[1] == SNAPSHOT)

    def write(
        self, offset: int, producers: Iterable[tuple[int, Producer]], fingerprint: Fingerprint, *, durable: bool
    ) -> str:
        """Write down the producers as they are before `offset`; returns the file's path."""
        assert offset >= 0
        assert fingerprint.base_offset <= offset, f"a segment from {fingerprint.base_offset} on ends at {offset}"
        path = self.path(offset)
        self._disk.write_file(path, encode(producers, Mark(*self._owner, offset, fingerprint)), durable=durable)
        self.newest, self.are_there = offset, True
        return path

    def fingerprint(self, offset: int) -> Fingerprint | None:
        """What the snapshot at `offset` says of the segment that ends there; None where there is none of this log."""
        try:
            mark = mark_of(self._disk.read_file(self.path(offset)))
        except (FileNotFoundError, ProtocolViolation):
            return None
        return mark.fingerprint if mark is not None and self._is_own(mark, offset) else None

    def is_there(self, offset: int) -> bool:
        """Whether a log was closed, or a segment ended, at `offset`."""
        return self._disk.exists(self.path(offset))

    def _is_own(self, mark: Mark, offset: int) -> bool:
        return mark[:3] == (*self._owner, offset)

    def load(
        self, at_most: int, log_end_offset: int, is_borne_out: BornOut, offsets: Sequence[int] | None = None
    ) -> list[tuple[int, Producer]]:
        """The producers of the newest snapshot up to `at_most`; none where there is none (`newest` says so).

        One that says nothing of whose it is has to be `is_borne_out` by the batches.
        """
        assert at_most <= log_end_offset
        offsets = self.offsets() if offsets is None else offsets
        assert all(former < later for former, later in pairwise(offsets)), f"{self._directory}: snapshots at {offsets}"
        self.are_there |= bool(offsets)
        for offset in reversed(offsets):
            path = self.path(offset)
            if offset > log_end_offset:
                # A snapshot of the truncated part would describe other records once the log is as long again.
                self._disk.remove(path)
                continue
            if offset > at_most:
                continue
            try:
                data = self._disk.read_file(path)
                producers, mark = decode(data), mark_of(data)
            except ProtocolViolation as problem:
                log.warning("snapshot.removed", path=path, reason=str(problem))
                self._disk.remove(path)
                continue
            if is_borne_out(offset, producers) if mark is None else self._is_own(mark, offset):
                self.newest = offset
                return producers
            # Nor is it removed: perhaps it is the topic's id that has been exchanged.
            log.warning("snapshot.not_believed", path=path)
        self.newest = -1
        return []

    def drop(self, is_stray: Callable[[int], bool]) -> None:
        """Remove those of which `is_stray` says so."""
        if is_stray(self.newest):
            self.newest = -1
        for offset in self.offsets():
            if is_stray(offset):
                self._disk.remove(self.path(offset))
