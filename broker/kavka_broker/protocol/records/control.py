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
from kavka_broker.protocol.records.batch import Buffer
from kavka_broker.protocol.records.record import Record, build_batch, read_records

_KEY: Final = Struct(">hh")
_MARKER: Final = Struct(">hi")
_KEY_VERSION: Final = 0
_MARKER_VERSION: Final = 0


class ControlType(IntEnum):
    """The kinds of control record that Kafka 4.3 knows."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


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
    """The batch that ends a producer's transaction: COMMIT or ABORT."""
    return build_batch(
        [(control_key(kind), _MARKER.pack(_MARKER_VERSION, coordinator_epoch))],
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def read_marker(batch: Buffer) -> Marker | None:
    """The transaction marker in a control batch, or None where it holds another record. Raises ProtocolViolation."""
    record: Record | None = next(iter(read_records(batch)), None)
    if record is None:
        return None
    kind = control_type(record.key)
    if kind is not ControlType.COMMIT and kind is not ControlType.ABORT:
        return None
    if record.value is None or len(record.value) < _MARKER.size:
        raise ProtocolViolation("a transaction marker has a value of six bytes or more")
    return Marker(kind, _MARKER.unpack_from(record.value)[1])
