"""The primitives of Kafka's wire format that are too rare or too long to be written out in compiled code.

Compiled code reads and writes one-byte lengths itself and comes here for longer ones. An unsigned varint holds
seven bits a byte, the lowest first; lengths are Java ints, so five bytes and 2^31 - 1 are the end of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from struct import Struct
from typing import Any, Final, NoReturn

from kavka_broker.protocol.errors import ProtocolViolation

UVARINT_SIZE_MAX: Final = 5
INT_MAX: Final = 2**31 - 1
ELEMENTS_MAX: Final = 100_000
"""Of all arrays of a message together, where its decoder is bounded."""
STRING_BYTES_MAX: Final = 2**15 - 1
"""Kafka refuses longer strings, in flexible versions too."""
CUT: Final = b"..."
"""The end of a message that was too long."""

KEPT_COUNT_MAX: Final = 32
"""Up to this length, arrays of numbers find a `struct.Struct` made before."""

ONE_BYTE: Final = tuple(bytes((value,)) for value in range(128))
"""The varints of one byte."""


class TooManyElements(ProtocolViolation):
    """The arrays of a message have more elements in all than its decoder was to take."""


class UnsupportedField(ValueError):
    """A message holds something that the version it is encoded in cannot carry."""


def read_uvarint(buffer: Sequence[int], position: int) -> tuple[int, int]:
    """The number at `position` and the position after it. Raises IndexError at the bytes' end, or ProtocolViolation."""
    value = 0
    for index in range(UVARINT_SIZE_MAX):
        byte = buffer[position + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if value > INT_MAX:
                break
            return value, position + index + 1
    raise ProtocolViolation(f"the varint at byte {position} is longer than {UVARINT_SIZE_MAX} bytes or too large")


def read_string_length(buffer: Sequence[int], position: int) -> tuple[int, int]:
    """The compact length of a string: its bytes and one. Raises ProtocolViolation."""
    length, position = read_uvarint(buffer, position)
    if length > STRING_BYTES_MAX + 1:
        raise ProtocolViolation(f"a string of {length - 1} bytes; {STRING_BYTES_MAX} is the limit")
    return length, position


def skip_tags(buffer: Sequence[int], position: int) -> int:
    """The position after tagged fields of which none is known; `position` is that of their count."""
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
    return position


def uvarint(value: int) -> bytes:
    """The bytes of an unsigned varint."""
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def string_length(length: int) -> bytes:
    """The compact length of a long string. Raises UnsupportedField where Kafka would refuse to read it."""
    if length > STRING_BYTES_MAX + 1:
        raise UnsupportedField(f"a string of {length - 1} bytes; {STRING_BYTES_MAX} is the limit")
    return uvarint(length)


def cut_message(encoded: bytes) -> bytes:
    """An error message as it is, or cut, with three dots, to fit: it may name what a request named at length."""
    if len(encoded) <= STRING_BYTES_MAX:
        return encoded
    return encoded[: STRING_BYTES_MAX - len(CUT)].decode(errors="ignore").encode() + CUT


class Methods(dict[int, Callable[..., Any]]):
    """A method of `struct.Struct` by the number of values of one format it takes, kept for the usual short arrays."""

    def __init__(self, method: str, value_format: str) -> None:
        super().__init__()
        self._method = method
        self._format = value_format

    def __missing__(self, count: int) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(Struct(f">{count}{self._format}"), self._method)
        if count <= KEPT_COUNT_MAX:
            self[count] = method
        return method


def size_of(buffers: Iterable[Sized]) -> int:
    """The bytes of several buffers together."""
    return sum(map(len, buffers))


def refuse_null(name: str) -> NoReturn:
    """Raise ProtocolViolation: null was read where the version has no null."""
    raise ProtocolViolation(f"{name} is null")


def refuse_length(name: str, length: int, left: int) -> NoReturn:
    """Raise ProtocolViolation: a length was read that the remaining bytes cannot hold."""
    raise ProtocolViolation(f"{name} claims {length} entries; {left} bytes are left")


def refuse_count(name: str) -> NoReturn:
    """Raise TooManyElements: with this array the message has more than the bounded decoder may take."""
    raise TooManyElements(f"with {name} there are more than {ELEMENTS_MAX} elements in the request")


def refuse_tag(name: str, tag: int) -> NoReturn:
    """Raise ProtocolViolation: a tagged field's size is not that of its content."""
    raise ProtocolViolation(f"{name}: the size of tagged field {tag} is wrong")


def refuse_end(end: int) -> NoReturn:
    """Raise ProtocolViolation: a value reaches past the end of the buffer."""
    raise ProtocolViolation(f"the message needs more than its {end} bytes")


def unsupported(name: str, version: int) -> NoReturn:
    """Raise UnsupportedField: the version cannot carry the value of this field."""
    raise UnsupportedField(f"{name} cannot be encoded in version {version}")
