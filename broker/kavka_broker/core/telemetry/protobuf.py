"""The wire format of protocol buffers, as far as metrics need it: fields one after the other, nothing built.

A field is its number and its value: an int of a varint, or the bytes of everything else. A message within a message is
bytes too, until somebody reads it; so nothing nests deeper than its reader goes.
"""

from collections.abc import Iterator
from typing import Final

from kavka_broker.protocol.errors import ProtocolViolation

Value = int | memoryview
Field = tuple[int, Value]

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
VARINT_BYTES_MAX: Final = 10
FIELD_NUMBER_MAX: Final = (1 << 29) - 1


class Reader:
    """Reads messages, and counts their fields: `fields_max` in all."""

    def __init__(self, fields_max: int) -> None:
        self._left = fields_max

    def fields(self, data: memoryview) -> Iterator[Field]:
        """Yield the fields of a message. Raises ProtocolViolation for anything else."""
        at, end = 0, len(data)
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise ProtocolViolation("protobuf: too many fields")
            tag, at = varint(data, at)
            number, kind = tag >> 3, tag & 7
            if not 0 < number <= FIELD_NUMBER_MAX:
                raise ProtocolViolation(f"protobuf: {number} is no number of a field")
            if kind == VARINT:
                value, at = varint(data, at)
                yield number, value
                continue
            size, at = _size(kind, data, at)
            if size > end - at:
                raise ProtocolViolation(f"protobuf: a field of {size} bytes, {end - at} are left")
            yield number, data[at : at + size]
            at += size


def _size(kind: int, data: memoryview, at: int) -> tuple[int, int]:
    match kind:
        case 1:
            return 8, at
        case 5:
            return 4, at
        case 2:
            return varint(data, at)
    raise ProtocolViolation(f"protobuf: {kind} is no kind of a field")


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return the number at `at`, of 64 bits at most, and where it ends. Raises ProtocolViolation."""
    value = shift = 0
    for position in range(at, min(len(data), at + VARINT_BYTES_MAX)):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, position + 1
        shift += 7
    raise ProtocolViolation("protobuf: a number is cut, or longer than 64 bits")


def write_varint(value: int) -> bytes:
    """Return a number as it is written."""
    assert value >= 0, value
    pieces = bytearray()
    while value > 0x7F:
        pieces.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*pieces, value))


def write_bytes(number: int, data: bytes | memoryview) -> bytes:
    """Return a field of bytes: a text, or a message within another."""
    assert 0 < number <= FIELD_NUMBER_MAX, f"{number} is no number of a field"
    return b"".join((write_varint(number << 3 | BYTES), write_varint(len(data)), data))
