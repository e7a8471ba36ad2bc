"""The records of `__share_group_state`: a snapshot of a share partition's state, or an update of it.

A snapshot may have 10,000 batches: its bytes are put together from those of its batches. Bytes of another form, which
Apache Kafka may write one day, are read as any message is.
"""

from dataclasses import dataclass
from struct import Struct, error
from typing import Final

from kavka_broker.core.share.packed_batches import ROW_BYTES, PackedBatches
from kavka_broker.core.share.state_batches import StateBatch, combine
from kavka_broker.protocol.coordinator_records import (
    Coordinator,
    frame_key,
    frame_value,
    record_classes,
    record_number,
    unframe,
)
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Buffer, Message
from kavka_broker.protocol.messages.share.share_snapshot_key import ShareSnapshotKey
from kavka_broker.protocol.messages.share.share_snapshot_value import ShareSnapshotValue
from kavka_broker.protocol.messages.share.share_update_key import ShareUpdateKey
from kavka_broker.protocol.messages.share.share_update_value import ShareUpdateValue
from kavka_broker.protocol.wire import read_uvarint, uvarint

_HEAD: Final = Struct(">hiiiqqq")
"""The version of a snapshot, and its fields before the batches, in their order."""
_COMPLETE: Final = Struct(">3si")
"""The count of records that are done, as the only tagged field: one, of tag 0, with four bytes."""
_ONE_TAG: Final = b"\1\0\4"
_NO_TAGS: Final = b"\0"
_UNKNOWN_COUNT: Final = -1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The value of a snapshot record."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    batches: PackedBatches


ShareRecord = tuple[Message, Snapshot | ShareUpdateValue | None]
"""A key of either kind with its value; None for a tombstone."""


def frame(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Return the bytes of a record's key and value."""
    key, value = record
    match value:
        case None:
            return frame_key(key), None
        case Snapshot():
            return frame_key(key), _frame_snapshot(value)
        case _:
            return frame_key(key), frame_value(value)


def read(key: Buffer, value: Buffer | None) -> ShareRecord | None:
    """Return the record of these bytes; None for one of an unknown kind. Raises ProtocolViolation."""
    number = record_number(key)
    if number is None or record_classes(Coordinator.SHARE, number) is None:
        return None
    if number == ShareSnapshotKey.API_KEY and value is not None and (snapshot := _read_snapshot(value)) is not None:
        return unframe(key, None, Coordinator.SHARE)[0], snapshot
    message, content = unframe(key, value, Coordinator.SHARE)
    return message, _of_message(content) if isinstance(content, ShareSnapshotValue) else _update(content)


def _update(content: Message | None) -> ShareUpdateValue | None:
    assert content is None or isinstance(content, ShareUpdateValue), content
    return content


def _frame_snapshot(snapshot: Snapshot) -> bytes:
    head = _HEAD.pack(
        ShareSnapshotValue.VERSIONS[1],
        snapshot.snapshot_epoch,
        snapshot.state_epoch,
        snapshot.leader_epoch,
        snapshot.start_offset,
        snapshot.create_timestamp,
        snapshot.write_timestamp,
    )
    complete = snapshot.delivery_complete_count
    tags = _NO_TAGS if complete == _UNKNOWN_COUNT else _COMPLETE.pack(_ONE_TAG, complete)
    return b"".join((head, uvarint(len(snapshot.batches) + 1), snapshot.batches.rows, tags))


def _read_snapshot(value: Buffer) -> Snapshot | None:
    """Return the snapshot of bytes that are as this broker writes them; None for others."""
    try:
        version, epoch, state_epoch, leader_epoch, start_offset, created_ms, written_ms = _HEAD.unpack_from(value)
        count, position = read_uvarint(memoryview(value), _HEAD.size)
    except (error, IndexError, ProtocolViolation):
        return None
    end = position + (count - 1) * ROW_BYTES
    complete = _complete_count(bytes(value[end:])) if position <= end <= len(value) else None
    rows = bytes(value[position:end])
    if version != ShareSnapshotValue.VERSIONS[1] or complete is None or any(rows[ROW_BYTES - 1 :: ROW_BYTES]):
        return None
    batches = PackedBatches(rows)
    if not batches.is_combined(max(start_offset, 0)):
        return None
    return Snapshot(epoch, state_epoch, leader_epoch, start_offset, complete, created_ms, written_ms, batches)


def _complete_count(tags: bytes) -> int | None:
    """Return the count of records that are done; None where there are other tagged fields."""
    if tags == _NO_TAGS:
        return _UNKNOWN_COUNT
    if len(tags) != _COMPLETE.size:
        return None
    tag, count = _COMPLETE.unpack(tags)
    return count if tag == _ONE_TAG else None


def _of_message(value: ShareSnapshotValue) -> Snapshot:
    start_offset = max(value.start_offset, 0)
    batches = [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in value.state_batches
    ]
    return Snapshot(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        value.create_timestamp,
        value.write_timestamp,
        PackedBatches.of(combine(batches, start_offset)),
    )


__all__ = ["ShareRecord", "ShareSnapshotKey", "ShareUpdateKey", "ShareUpdateValue", "Snapshot", "frame", "read"]
