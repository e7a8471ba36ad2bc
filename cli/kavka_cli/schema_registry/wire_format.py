"""Confluent's wire format: a zero byte, the id of the schema in four bytes, and what was serialized.

Of Protobuf, the path to the message in its file stands before that: the number of indexes and the indexes, as zigzag
varints, where one zero byte alone is the first message. Source: Confluent, "Wire format" of Schema Registry.
"""

from typing import Final, NamedTuple

MAGIC: Final = 0
HEAD_BYTES: Final = 5
INDEXES_MAX: Final = 32
VARINT_BYTES_MAX: Final = 5


class WireFormatError(ValueError):
    """Bytes that are not of this format; the message says what is wrong."""


class Framed(NamedTuple):
    """The id of a schema, and the bytes that were serialized by it."""

    schema_id: int
    payload: bytes


def unframe(data: bytes | None) -> Framed | None:
    """The parts of a key or value; None where it is not of this format."""
    if data is None or len(data) < HEAD_BYTES or data[0] != MAGIC:
        return None
    schema_id = int.from_bytes(data[1:HEAD_BYTES], "big", signed=True)
    if schema_id <= 0:  # ids begin at 1: a long number as a key, or another format
        return None
    return Framed(schema_id, bytes(data[HEAD_BYTES:]))


def message_indexes(payload: bytes) -> tuple[tuple[int, ...], bytes]:
    """The path to a Protobuf message, and the message. Raises WireFormatError."""
    count, at = _zigzag(payload, 0)
    if count == 0:
        return (0,), payload[at:]
    if not 0 < count <= INDEXES_MAX:
        raise WireFormatError(f"{count} message indexes")
    path = []
    for _ in range(count):
        index, at = _zigzag(payload, at)
        path.append(index)
    return tuple(path), payload[at:]


def _zigzag(payload: bytes, at: int) -> tuple[int, int]:
    """A number, and the position behind it."""
    found = 0
    for shift in range(VARINT_BYTES_MAX):
        if at >= len(payload):
            raise WireFormatError("the message indexes are cut off")
        byte = payload[at]
        at += 1
        found |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
    raise WireFormatError("a message index is longer than five bytes")
