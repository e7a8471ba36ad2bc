"""The records of a batch as entries, in pieces: keys are read, values and headers stay the bytes that they are.

This is what the log cleaner needs to know of a record, and to write it again. A batch of some kilobytes may unpack to
hundreds of megabytes; here it costs the memory of one piece and of its largest record. The rules are those of
`record.read_records`, which gives the records themselves; only the text of headers' names is not looked at.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import HEADER_BYTES, LOG_APPEND_TIME_BIT, BatchHeader, Buffer
from kavka_broker.protocol.records.compression import DECOMPRESSED_BYTES_MAX
from kavka_broker.protocol.records.record import varint
from kavka_broker.protocol.records.scan import past, past_headers
from kavka_broker.protocol.records.unpacking import PIECE_BYTES, unpack

#: A record's length takes two bytes or more in all but the smallest, and at most ten.
_LENGTH_BYTES_MAX: Final = 10


class Entry(NamedTuple):
    """One record. `tail` is its key, value and headers as they stand in the batch."""

    offset: int
    timestamp: int
    key: bytes | None
    has_value: bool
    tail: memoryview


def entries(header: BatchHeader, batch: Buffer, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Iterator[list[Entry]]:
    """Entries of one whole batch, grouped by the piece in which they end; the list of a piece may be empty.

    Raises only ProtocolViolation, whatever the bytes, as soon as the faulty ones are reached.
    """
    left, rest = header.records_count, bytearray()
    if left < 0:
        raise ProtocolViolation(f"a batch of {left} records")
    wanted_bytes = 0
    for piece in _pieces(header, memoryview(batch)[HEADER_BYTES : header.size_bytes], size_bytes_max):
        if rest:
            # The buffer grows in place: a record of many pieces is not copied again with each of them.
            rest += piece
            if len(rest) < wanted_bytes:
                yield []
                continue
        found, position, wanted_bytes = _whole(header, data := rest or piece, left)
        left -= len(found)
        if rest or position < len(data):
            rest = bytearray(memoryview(data)[position:])
        yield found
    if left:
        raise ProtocolViolation(f"{left} of {header.records_count} records are not there")
    if rest:
        raise ProtocolViolation(f"{len(rest)} bytes follow the last record")


def _pieces(header: BatchHeader, body: memoryview, size_bytes_max: int) -> Iterable[bytes]:
    if header.codec or len(body) > PIECE_BYTES:
        return unpack(header.codec, body, size_bytes_max)
    return (bytes(body),)  # most batches are one piece


def _whole(  # noqa: C901 (calls cost more)
    header: BatchHeader, data: bytes | bytearray, left: int
) -> tuple[list[Entry], int, int]:
    """The entries that end in `data`, where the next begins, and how many bytes that takes, if known.

    Flat, since most varints have one byte and need no call. Raises ProtocolViolation.
    """
    found: list[Entry] = []
    view, position, size = memoryview(data), 0, len(data)
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    leader_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else None
    try:
        while left:
            if position + _LENGTH_BYTES_MAX > size and not _ends(view[position:]):
                return found, position, 0
            at = position + 1
            if (byte := data[position]) & 0x80:
                length, at = varint(data, position)
            else:
                length = (byte >> 1) ^ -(byte & 1)
            end = at + length
            if length < 0:
                raise ProtocolViolation(f"a record of {length} bytes")
            if end > size:
                return found, position, end - position
            at += 2
            if (byte := data[at - 1]) & 0x80:
                timestamp_delta, at = varint(data, at - 1)
            else:
                timestamp_delta = (byte >> 1) ^ -(byte & 1)
            tail = at + 1
            if (byte := data[at]) & 0x80:
                offset_delta, tail = varint(data, at)
            else:
                offset_delta = (byte >> 1) ^ -(byte & 1)
            key_at = tail + 1
            if (byte := data[tail]) & 0x81:  # of two bytes, or negative
                key_length, key_at = varint(data, tail)
                at = past(key_length, key_at, end)
                key = None if key_length < 0 else bytes(view[key_at:at])
            else:
                at = key_at + (byte >> 1)
                key = bytes(view[key_at:at])
            at += 1
            if (byte := data[at - 1]) & 0x81:
                value_length, at = varint(data, at - 1)
                at = past(value_length, at, end)
            else:
                value_length = byte >> 1
                at += value_length
            at = past_headers(data, at, end) if data[at] else at + 1
            if at != end:
                raise ProtocolViolation(f"a record of {length} bytes ends {end - at} bytes off")
            timestamp = base_timestamp + timestamp_delta if leader_time is None else leader_time
            found.append(Entry(base_offset + offset_delta, timestamp, key, value_length >= 0, view[tail:end]))
            left, position = left - 1, end
    except IndexError:
        raise ProtocolViolation("a record is longer than it says") from None
    return found, position, 0


def _ends(rest: memoryview) -> bool:
    """Whether the varint at the beginning ends in `rest`, or is too long to be one."""
    return len(rest) >= _LENGTH_BYTES_MAX or any(byte < 0x80 for byte in rest)
