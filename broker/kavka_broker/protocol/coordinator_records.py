"""Keys and values of `__consumer_offsets`, `__transaction_state` and `__share_group_state`.

A key begins with an int16 that says which message it is, a value with an int16 that is its version. A record
without a value is a tombstone: what the key names is gone.
"""

from __future__ import annotations

from enum import Enum
from struct import Struct, error
from typing import Final

from kavka_broker.protocol.catalog import message_class
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Buffer, Message
from kavka_broker.protocol.messages import index

KEY_VERSION: Final = 0
"""Keys never change: two of them are equal where their bytes are."""

_PREFIX: Final = Struct(">h")


class Coordinator(Enum):
    """The coordinator that a record belongs to: the same number means another message for each."""

    GROUP = "group"
    TRANSACTION = "transaction"
    SHARE = "share"


_TABLES: Final = {
    Coordinator.GROUP: (index.GROUP_KEYS, index.GROUP_VALUES),
    Coordinator.TRANSACTION: (index.TRANSACTION_KEYS, index.TRANSACTION_VALUES),
    Coordinator.SHARE: (index.SHARE_KEYS, index.SHARE_VALUES),
}


def frame_key(key: Message) -> bytes:
    """The bytes of a record's key."""
    assert key.KIND == "coordinator-key", f"{key.NAME} is no key"
    assert key.API_KEY is not None
    return _PREFIX.pack(key.API_KEY) + encode(key, KEY_VERSION)


def frame_value(value: Message, version: int | None = None) -> bytes:
    """The bytes of a record's value, by default in the newest version."""
    assert value.KIND == "coordinator-value", f"{value.NAME} is no value"
    chosen = value.VERSIONS[1] if version is None else version
    return _PREFIX.pack(chosen) + encode(value, chosen)


def unframe(
    key: Buffer, value: Buffer | None, coordinator: Coordinator = Coordinator.GROUP
) -> tuple[Message, Message | None]:
    """The key and value of a record. Raises ProtocolViolation where this release knows no such record."""
    number = _prefix(key)
    kinds = record_classes(coordinator, number)
    if kinds is None:
        raise ProtocolViolation(f"{coordinator.value} record: key {number} is unknown")
    key_kind, value_kind = kinds
    decoded = decode(key_kind, KEY_VERSION, memoryview(key)[_PREFIX.size :])
    if value is None:
        return decoded, None
    version = _prefix(value)
    if not value_kind.VERSIONS[0] <= version <= value_kind.VERSIONS[1]:
        raise ProtocolViolation(f"{coordinator.value} record: {value_kind.NAME} has no version {version}")
    return decoded, decode(value_kind, version, memoryview(value)[_PREFIX.size :])


def record_classes(coordinator: Coordinator, number: int) -> tuple[type[Message], type[Message]] | None:
    """The classes of key and value; None for a number that Kafka does not have."""
    keys, values = _TABLES[coordinator]
    if number not in keys:
        return None
    return message_class(keys[number], coordinator.value), message_class(values[number], coordinator.value)


def record_number(key: Buffer) -> int | None:
    """The number that says which message a key is; None for bytes that are no key."""
    return _PREFIX.unpack_from(key)[0] if len(key) >= _PREFIX.size else None


def _prefix(buffer: Buffer) -> int:
    try:
        (number,) = _PREFIX.unpack_from(buffer)
    except error as problem:
        raise ProtocolViolation(f"coordinator record: {problem}") from None
    assert isinstance(number, int)
    return number
