"""Records of `__consumer_offsets` as keys and values, before they are bytes."""

from typing import NamedTuple

from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.group_metadata_key import GroupMetadataKey
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey

__all__ = ["KeyedRecord", "group_record", "group_tombstone", "offset_tombstone"]


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
