"""The records of `__share_group_state`: a snapshot of a share partition's state, or an update of it.

A snapshot may have 10,000 batches: its bytes are put together from those of its batches. Bytes of another form, which
Apache Kafka may write one day, are read as any message is. Records that another broker has written may be long: they
are read in parts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from kavka_broker.protocol.messages.share import share_update_value as updates
from kavka_broker.protocol.messages.share.share_snapshot_key import ShareSnapshotKey
from kavka_broker.protocol.messages.share.share_snapshot_value import ShareSnapshotValue
from kavka_broker.protocol.messages.share.share_update_key import ShareUpdateKey
from kavka_broker.protocol.messages.share.share_update_value import ShareUpdateValue
from kavka_broker.protocol.wire import read_uvarint, uvarint

_HEAD: Final = Struct(">hiiiqqq")
"""The version of a snapshot, and its fields before the batches, in their order."""
_UPDATE_HEAD: Final = Struct(">hiiq")
"""The same of an update."""
_COMPLETE: Final = Struct(">3si")
"""The count of records that are done, as the only tagged field: one, of tag 0, with four bytes."""
_ONE_TAG: Final = b"\1\0\4"
_NO_TAGS: Final = b"\0"
_UNKNOWN_COUNT: Final = -1

BATCHES_PER_PART_MAX: Final = 200
BATCHES_CHECKED_MAX: Final = 5_000
"""Batches that are handled in a step: about two milliseconds of either."""


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


def read_parts(key: Buffer, value: Buffer | None) -> Iterator[ShareRecord | None]:
    """Give a record as records with few batches each that give the same state, in their order; None after a step that
    has only looked at batches, and nothing for a record of an unknown kind. Raises ProtocolViolation.

    The states of the batches of an update are taken over one by one, so it is that of its parts. A snapshot whose
    batches are in another order is one without any, and an update. What is of another form stays whole.
    """
    number = None if value is None else record_number(key)
    snapshot = update = None
    if value is not None and number == ShareSnapshotKey.API_KEY:
        snapshot = _parse_snapshot(value)
    elif value is not None and number == ShareUpdateKey.API_KEY:
        update = _parse_update(value)
    if snapshot is not None:
        yield from _parts_of_snapshot(_key_of(key), snapshot)
    elif update is not None:
        yield from _parts_of_update(_key_of(key), *update)
    elif (whole := read(key, value)) is not None:
        yield whole


def _key_of(key: Buffer) -> Message:
    return unframe(key, None, Coordinator.SHARE)[0]


def _parts_of_snapshot(key: Message, snapshot: Snapshot) -> Iterator[ShareRecord | None]:
    assert isinstance(key, ShareSnapshotKey), key
    packed, start_offset = snapshot.batches, max(snapshot.start_offset, 0)
    for low in range(0, len(packed), BATCHES_CHECKED_MAX):
        if not packed.is_combined(start_offset, low, low + BATCHES_CHECKED_MAX):
            break
        yield None
    else:
        yield key, snapshot
        return
    yield key, replace(snapshot, batches=PackedBatches())
    head = ShareUpdateValue(
        snapshot.snapshot_epoch, snapshot.leader_epoch, snapshot.start_offset, snapshot.delivery_complete_count
    )
    yield from _parts_of_update(ShareUpdateKey(key.group_id, key.topic_id, key.partition), head, packed)


def _parts_of_update(key: Message, head: ShareUpdateValue, packed: PackedBatches) -> Iterator[ShareRecord]:
    for low in range(0, len(packed) or 1, BATCHES_PER_PART_MAX):
        part = [updates.StateBatch(*batch) for batch in packed.part(low, low + BATCHES_PER_PART_MAX)]
        yield (
            key,
            ShareUpdateValue(
                head.snapshot_epoch, head.leader_epoch, head.start_offset, head.delivery_complete_count, part
            ),
        )


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
    snapshot = _parse_snapshot(value)
    if snapshot is None or not snapshot.batches.is_combined(max(snapshot.start_offset, 0)):
        return None
    return snapshot


def _parse_snapshot(value: Buffer) -> Snapshot | None:
    """Return the snapshot of bytes without fields of a later release, its batches in any order; None for others."""
    try:
        version, epoch, state_epoch, leader_epoch, start_offset, created_ms, written_ms = _HEAD.unpack_from(value)
    except error:
        return None
    found = _rows_and_count(value, _HEAD.size)
    if version != ShareSnapshotValue.VERSIONS[1] or found is None:
        return None
    return Snapshot(epoch, state_epoch, leader_epoch, start_offset, found[1], created_ms, written_ms, found[0])


def _parse_update(value: Buffer) -> tuple[ShareUpdateValue, PackedBatches] | None:
    """As `_parse_snapshot`; an update without its batches, and these."""
    try:
        version, epoch, leader_epoch, start_offset = _UPDATE_HEAD.unpack_from(value)
    except error:
        return None
    found = _rows_and_count(value, _UPDATE_HEAD.size)
    if version != ShareUpdateValue.VERSIONS[1] or found is None:
        return None
    return ShareUpdateValue(epoch, leader_epoch, start_offset, found[1]), found[0]


def _rows_and_count(value: Buffer, position: int) -> tuple[PackedBatches, int] | None:
    """Return the batches at a position, and the count of records that are done; None where there are tagged fields
    beside that.
    """
    try:
        count, begin = read_uvarint(memoryview(value), position)
    except (IndexError, ProtocolViolation):
        return None
    end = begin + (count - 1) * ROW_BYTES
    complete = _complete_count(bytes(value[end:])) if begin <= end <= len(value) else None
    rows = bytes(value[begin:end])
    return None if complete is None or any(rows[ROW_BYTES - 1 :: ROW_BYTES]) else (PackedBatches(rows), complete)


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


__all__ = [
    "ShareRecord",
    "ShareSnapshotKey",
    "ShareUpdateKey",
    "ShareUpdateValue",
    "Snapshot",
    "frame",
    "read",
    "read_parts",
]
