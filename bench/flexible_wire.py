"""What requests and answers of flexible versions have in common (KIP-482), for the benches that write their own."""

import struct
from typing import Final

from bench import wire

NO_TAGS: Final = b"\0"
NULL: Final = b"\0"
"""A text or an array that is not there."""


class Reader:
    """Reads an answer of flexible version."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._position = 0

    def unpack(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(layout, self._body, self._position)
        self._position += struct.calcsize(layout)
        return found

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._body[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def count(self) -> int:
        """How many elements follow."""
        return max(0, self.unsigned() - 1)

    def skip_text(self) -> None:
        length = self.count()
        self._position += length

    def skip_tags(self) -> None:
        for _ in range(self.unsigned()):
            self.unsigned()
            length = self.unsigned()
            self._position += length


def frame(api_key: int, version: int, body: bytes) -> bytes:
    """A request with its size and header (version 2)."""
    header = wire.HEADER.pack(api_key, version, 1, len(wire.CLIENT_ID)) + wire.CLIENT_ID + NO_TAGS
    return struct.pack(">i", len(header) + len(body)) + header + body


def text(value: str) -> bytes:
    return sized(value.encode())


def sized(data: bytes) -> bytes:
    return counted(len(data)) + data


def counted(number: int) -> bytes:
    """A length or a number of elements, as compact fields have it."""
    return wire.unsigned_varint(number + 1)
