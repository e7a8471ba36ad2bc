"""A partition's producers in a file, as Kafka writes it.

    version int16 (1), crc uint32 over all that follows, count int32, then of each producer:
    id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64,
    coordinator epoch int32, first offset of the open transaction int64

Written when a segment is rolled and when a log is closed, and named by the offset it stands before. After a start only
the batches behind the newest snapshot must be looked at. Of the last batches only the newest is kept.
"""

from collections.abc import Iterable
from struct import Struct, error
from typing import Final

from crc32c import crc32c

from kavka_broker.core.partition.producer_state import NO_SEQUENCE, SEQUENCE_MAX, Producer, WrittenBatch
from kavka_broker.protocol.errors import ProtocolViolation

VERSION: Final = 1
_HEAD: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")


def encode(producers: Iterable[tuple[int, Producer]]) -> bytes:
    """The file's bytes."""
    entries = [_pack(producer_id, producer) for producer_id, producer in producers]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
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
    if len(body) != _COUNT.size + count * _ENTRY.size:
        raise ProtocolViolation(f"a producer snapshot of {count} producers has {len(body)} bytes")
    return [_unpack(entry) for entry in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _unpack(entry: tuple[int, int, int, int, int, int, int, int]) -> tuple[int, Producer]:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp_ms, coordinator_epoch, first_offset = entry
    producer = Producer(epoch, timestamp_ms, [], coordinator_epoch, first_offset)
    if last_sequence != NO_SEQUENCE:
        base_sequence = (last_sequence - delta) & SEQUENCE_MAX
        base_offset = last_offset - delta
        producer.batches.append(WrittenBatch(base_sequence, last_sequence, base_offset, last_offset, timestamp_ms))
    return producer_id, producer
