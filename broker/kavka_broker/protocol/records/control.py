"""Control batches: what the broker tells itself in a log, and no client sees.

The key of a control record is a version and a kind; its value is a message of that kind. Transaction markers end
a transaction of one producer; the others belong to the metadata log: which node leads, what a snapshot spans, which
version of KRaft is spoken and which nodes vote.
"""

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    NO_SEQUENCE,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
    Buffer,
    set_crc,
)
from kavka_broker.protocol.records.record import Record, build_batch, read_records

_KEY: Final = Struct(">hh")
_MARKER: Final = Struct(">hi")
_KEY_VERSION: Final = 0
_MARKER_VERSION: Final = 0
# The one record of a marker as brokers write it: 16 bytes, a key of four and a value of six among them, no headers.
_MARKER_RECORD: Final = Struct(">5shhbhib")
_BEFORE_KEY: Final = bytes([2 * 16, 0, 0, 0, 2 * _KEY.size])
_VALUE_LENGTH: Final = 2 * _MARKER.size
_MARKER_BYTES: Final = HEADER_BYTES + _MARKER_RECORD.size
_ATTRIBUTES_AT: Final = 22  # of a header: the low byte of the attributes
_COUNT_AT: Final = 57  # of a header: the number of records
_ONE_RECORD: Final = b"\0\0\0\1"


class ControlType(IntEnum):
    """The kinds of control record that Kafka 4.3 knows."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_ENDS: Final = {kind.value: kind for kind in (ControlType.ABORT, ControlType.COMMIT)}


class Marker(NamedTuple):
    """The end of a transaction."""

    kind: ControlType
    coordinator_epoch: int


def control_key(kind: ControlType) -> bytes:
    return _KEY.pack(_KEY_VERSION, kind)


def control_type(key: bytes | None) -> ControlType | None:
    """The kind of a control record; None for a kind of a newer Kafka, which readers skip. Raises ProtocolViolation."""
    if key is None or len(key) < _KEY.size:
        raise ProtocolViolation("a control record has a key of four bytes or more")
    kind: int = _KEY.unpack_from(key)[1]
    return ControlType(kind) if 0 <= kind <= ControlType.KRAFT_VOTERS else None


def build_control_batch(
    records: Sequence[tuple[ControlType, bytes]],
    *,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """A control batch of the metadata log; the values are encoded messages (`LeaderChangeMessage` ...)."""
    return build_batch(
        [(control_key(kind), value) for kind, value in records],
        timestamp_ms=timestamp_ms,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        control=True,
    )


def build_marker(
    kind: ControlType, *, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp_ms: int
) -> bytearray:
    """The batch that ends a producer's transaction: COMMIT or ABORT. Packed at once: each partition of each transaction
    gets one.
    """
    marker = bytearray(_MARKER_BYTES)
    HEADER.pack_into(
        marker,
        0,
        0,
        _MARKER_BYTES - PREFIX_BYTES,
        -1,
        MAGIC,
        0,
        TRANSACTIONAL_BIT | CONTROL_BIT,
        0,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        1,
    )
    key, value = (_KEY_VERSION, kind), (_MARKER_VERSION, coordinator_epoch)
    _MARKER_RECORD.pack_into(marker, HEADER_BYTES, _BEFORE_KEY, *key, _VALUE_LENGTH, *value, 0)
    set_crc(marker)
    return marker


def read_marker(batch: Buffer) -> Marker | None:
    """The transaction marker in a control batch, or None where it holds another record. Raises ProtocolViolation."""
    if (usual := _read_usual(batch)) is not None:
        return usual
    record: Record | None = next(iter(read_records(batch)), None)
    if record is None:
        return None
    kind = control_type(record.key)
    if kind is not ControlType.COMMIT and kind is not ControlType.ABORT:
        return None
    if record.value is None or len(record.value) < _MARKER.size:
        raise ProtocolViolation("a transaction marker has a value of six bytes or more")
    return Marker(kind, _MARKER.unpack_from(record.value)[1])


def _read_usual(batch: Buffer) -> Marker | None:
    """A marker that stands byte for byte where brokers write it; None for every other batch."""
    if (
        len(batch) != _MARKER_BYTES
        or batch[_ATTRIBUTES_AT] & CODEC_MASK
        or batch[_COUNT_AT:HEADER_BYTES] != _ONE_RECORD
    ):
        return None
    before, _, kind, value_length, _, epoch, headers = _MARKER_RECORD.unpack_from(batch, HEADER_BYTES)
    if before != _BEFORE_KEY or value_length != _VALUE_LENGTH or headers or kind not in _ENDS:
        return None
    return Marker(_ENDS[kind], epoch)
