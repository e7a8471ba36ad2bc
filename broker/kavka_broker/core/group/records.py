"""Records of `__consumer_offsets` as keys and values, and the batches that they become."""

from collections.abc import Sequence
from typing import NamedTuple

from kavka_broker.protocol.coordinator_records import frame_key, frame_value
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.group_metadata_key import GroupMetadataKey
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kavka_broker.protocol.records.record import build_batch

__all__ = ["KeyedRecord", "batch_of", "framed", "group_record", "group_tombstone", "offset_tombstone"]


class KeyedRecord(NamedTuple):
    """A record; without a value it is a tombstone. `version` is the value's."""

    key: Message
    value: Message | None = None
    version: int = 0


GROUP_VALUE_VERSION = 3  # the version that Kafka 4.3 writes
assert GroupMetadataValue.VERSIONS[1] >= GROUP_VALUE_VERSION, GROUP_VALUE_VERSION


def group_record(group_id: str, value: GroupMetadataValue) -> KeyedRecord:
    return KeyedRecord(GroupMetadataKey(group_id), value, GROUP_VALUE_VERSION)


def group_tombstone(group_id: str) -> KeyedRecord:
    return KeyedRecord(GroupMetadataKey(group_id))


def offset_tombstone(group_id: str, topic: str, partition: int) -> KeyedRecord:
    return KeyedRecord(OffsetCommitKey(group_id, topic, partition))


def batch_of(records: Sequence[KeyedRecord], now_ms: int, producer: tuple[int, int] | None = None) -> bytearray:
    """One batch of records; of a transaction of the `producer`, by its id and epoch, where there is one."""
    return build_batch(
        map(framed, records),
        timestamp_ms=now_ms,
        producer_id=NO_PRODUCER_ID if producer is None else producer[0],
        producer_epoch=NO_PRODUCER_EPOCH if producer is None else producer[1],
        transactional=producer is not None,
    )


def framed(record: KeyedRecord) -> tuple[bytes, bytes | None]:
    """The bytes of a record's key and value."""
    key, value, version = record
    return frame_key(key), None if value is None else frame_value(value, version)
