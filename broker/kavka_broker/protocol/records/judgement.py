"""Whether the bytes of an uncompressed batch are the records that its header says, and when they were made.

A leader looks at every record that it takes, so this is the cheapest walk that sees all of it. Records of one batch
mostly have the same size: then a byte of one record and the same byte of the next lie a fixed distance apart, and one
slice with that distance compares hundreds of them. Where sizes differ it goes from record to record.

As in Apache Kafka, offsets that the records themselves say are not looked at: the leader numbers them.
"""

from typing import Final, NamedTuple

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.record import varint
from kavka_broker.protocol.records.scan import past, past_headers

HIGH: Final = bytes(range(0x80, 0x100))
LOW: Final = bytes(range(0x80))
#: Fewer alike are walked over one by one.
RUN_MIN: Final = 4
#: As many are compared before all are.
TRIAL: Final = 16


class Layout(NamedTuple):
    """Where the parts of one record lie, from its first byte; its size and the time that it says."""

    size: int
    time_at: int
    offset_at: int
    key_at: int  # the length of the key
    value_at: int  # the length of the value
    headers_at: int
    timestamp_delta: int


def time_span(data: bytes, count: int) -> tuple[int, int]:  # noqa: C901 (flat: calls would cost more than all of it)
    """The least and the greatest timestamp delta of the `count` records that `data` is.

    Any bytes: raises only `ProtocolViolation`. Flat, since most varints have one byte or two and need no call.
    """
    position, left, size = 0, count, len(data)
    earliest, latest = 1 << 70, -(1 << 70)
    try:
        while left:
            byte, at = data[position], position + 1
            if byte & 0x80:
                second = data[at]
                byte, at = (byte & 0x7F | second << 7, at + 1) if second < 0x80 else _raw(data, position)
            end = at + (byte >> 1)
            if byte & 1 or end > size:
                raise ProtocolViolation(f"a record that ends at byte {end} of {size}")
            if left >= RUN_MIN and data[end : end + at - position] == data[position:at]:
                alike, span = _run(data, position, min(left, (size - position) // (end - position)))
                if alike:
                    earliest, latest = min(earliest, *span), max(latest, *span)
                    left, position = left - alike, position + alike * (end - position)
                    continue
            byte = data[at + 1]
            at += 2
            if byte & 0x80:
                byte, at = _raw(data, at - 1)
            delta = (byte >> 1) ^ -(byte & 1)
            earliest = min(earliest, delta)
            latest = max(latest, delta)
            if data[at] & 0x80:
                at = at + 1 if data[at + 1] < 0x80 else varint(data, at)[1] - 1
            byte = data[at + 1]
            at += 2
            if byte & 0x80:
                byte, at = _raw(data, at - 1)
            at = at + (byte >> 1) if not byte & 1 else past(~(byte >> 1), at, end)
            byte = data[at]
            at += 1
            if byte & 0x80:
                second = data[at]
                byte, at = (byte & 0x7F | second << 7, at + 1) if second < 0x80 else _raw(data, at - 1)
            at = at + (byte >> 1) if not byte & 1 else past(~(byte >> 1), at, end)
            at = at + 1 if at < end and not data[at] else past_headers(data, at, end)
            if at != end:
                raise ProtocolViolation(f"a record ends {end - at} bytes off")
            position, left = end, left - 1
    except IndexError:
        raise ProtocolViolation("a record is longer than it says, or is not there") from None
    if position != size:
        raise ProtocolViolation(f"{size - position} bytes follow the last record")
    return earliest, latest


def _raw(data: bytes, position: int) -> tuple[int, int]:
    """A varint as it is written: the lowest bit is the sign."""
    value, position = varint(data, position)
    return (value << 1) ^ (value >> 63), position


def _run(data: bytes, position: int, most: int) -> tuple[int, list[int]]:
    """How many records from here on are laid out alike, and their different timestamp deltas; 0 for too few."""
    layout = _layout(data, position)
    alike = _alike(data, position, layout, min(most, TRIAL))
    if alike == TRIAL < most:
        alike = _alike(data, position, layout, most)
    return (alike, _times(data, position, layout, alike)) if alike >= RUN_MIN else (0, [])


def _layout(data: bytes, position: int) -> Layout:
    """Walk over one record. Raises ProtocolViolation, or IndexError where the data ends."""
    length, at = varint(data, position)
    end = at + length
    if length < 0 or end > len(data):
        raise ProtocolViolation(f"a record of {length} bytes, {len(data) - at} are left")
    time_at = at + 1
    timestamp_delta, offset_at = varint(data, time_at)
    key_at = varint(data, offset_at)[1]
    length, at = varint(data, key_at)
    value_at = at + length if length >= 0 else past(length, at, end)
    length, at = varint(data, value_at)
    headers_at = at + length if length >= 0 else past(length, at, end)
    if headers_at >= end:
        raise ProtocolViolation("a field is longer than its record")
    at = headers_at + 1 if not data[headers_at] else past_headers(data, headers_at, end)
    if at != end:
        raise ProtocolViolation(f"a record ends {end - at} bytes off")
    start = position
    return Layout(
        end - start, time_at - start, offset_at - start, key_at - start, value_at - start, headers_at - start,
        timestamp_delta,
    )  # fmt: skip


def _alike(data: bytes, position: int, layout: Layout, most: int) -> int:
    """How many records from here on, `most` at most, are laid out as the first is, and have no headers."""
    if data[position + layout.headers_at]:
        return 1
    stride, end = layout.size, position + most * layout.size
    for at in (*range(layout.time_at - 1), *_fixed(layout, data, position), layout.headers_at):
        column = data[position + at : end : stride]
        if column.count(column[:1]) != len(column):
            end = position + stride * (len(column) - len(column.lstrip(column[:1])))
    for start, stop in ((layout.time_at, layout.offset_at), (layout.offset_at, layout.key_at)):
        for at in range(start, stop):
            column = data[position + at : end : stride]
            rest = column.lstrip(LOW if at == stop - 1 else HIGH)
            if rest:
                end = position + stride * (len(column) - len(rest))
    return (end - position) // stride


def _fixed(layout: Layout, data: bytes, position: int) -> tuple[int, ...]:
    """The bytes of both lengths: of key and value."""
    of_key = varint(data, position + layout.key_at)[1] - position
    of_value = varint(data, position + layout.value_at)[1] - position
    return (*range(layout.key_at, of_key), *range(layout.value_at, of_value))


def _times(data: bytes, position: int, layout: Layout, count: int) -> list[int]:
    """The different timestamp deltas of a run."""
    end = position + count * layout.size
    columns = [data[position + at : end : layout.size] for at in range(layout.time_at, layout.offset_at)]
    if len(columns) == 1:
        return [(byte >> 1) ^ -(byte & 1) for byte in set(columns[0])]
    return [varint(bytes(one), 0)[0] for one in set(zip(*columns, strict=True))]
