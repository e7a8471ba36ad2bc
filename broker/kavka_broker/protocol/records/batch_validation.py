"""Whether the bytes of a batch's records are those that its header says, and when they were made.

A leader looks at every record that it takes, so this is the cheapest walk that sees all of it. Records of one batch
mostly have the same size: then a byte of one record and the same byte of the next lie a fixed distance apart, and one
slice with that distance compares hundreds of them, at some nanoseconds a record. Where sizes differ it goes from record
to record, at some hundreds; a caller without time for many of these says so with `steps_max`.

As in Apache Kafka, offsets that the records themselves say are looked at in compressed batches only.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.record import varint
from kavka_broker.protocol.records.scan import UNBOUNDED, past, past_headers

HIGH: Final = bytes(range(0x80, 0x100))
LOW: Final = bytes(range(0x80))
EVEN: Final = bytes(range(0, 0x100, 2))
#: The fewest alike records that are compared; fewer are walked over one by one.
RUN_MIN: Final = 8
#: The records that are walked over after one that is unlike those behind it, before one is compared again.
WALKED_BETWEEN: Final = 16
#: The records that are compared at first, and at a time from then on.
TRIAL: Final = 128
BLOCK: Final = 1024
#: The most headers of a record that is compared.
HEADERS_MAX: Final = 8
#: The distinct bytes taken out of a long column one after the other: a set of all takes longer where few differ.
PEELED_MAX: Final = 8
PEELED_FROM: Final = 256

#: The two low bytes of the varints 0, 1, 2 and so on, as columns, from where they begin again to a block beyond; each
#: as it is when another byte follows (0x80), and when none does.
_NUMBERS: Final = {
    (shift, mark): bytes((number << 1 >> shift) & 0x7F | mark for number in range((64 << shift) + BLOCK))
    for shift in (0, 7)
    for mark in (0, 0x80)
}

#: A step is the walk over one record, or over one of its headers. A comparison of records takes so many steps at all,
#: and one for each so many that are alike.
STEPS_A_RUN: Final = 24
ALIKE_A_STEP: Final = 32


class TooLong(Exception):
    """The records take more steps to look at than are allowed."""


class Misnumbered(Exception):
    """The offset deltas of the records are not 0, 1, 2 and so on."""


class Layout(NamedTuple):
    """Where the parts of a record lie, from its first byte on."""

    size: int
    time_at: int
    offset_at: int
    key_at: int
    fixed: list[tuple[int, bytes]]
    """The bytes of all lengths and of the number of headers, each with its place."""


def time_span(  # noqa: C901 (calls cost more)
    data: bytes, count: int, steps_max: int = UNBOUNDED, *, is_numbered: bool = False
) -> tuple[int, int]:
    """The least and the greatest timestamp delta of the `count` records in `data`.

    Raises, whatever the bytes, only ProtocolViolation, TooLong beyond `steps_max` and, if they are to be numbered,
    Misnumbered. Flat, since most varints have one byte or two and need no call.
    """
    position, left, size = 0, count, len(data)
    earliest, latest, last = 1 << 70, -(1 << 70), -1
    # With one step a record, the last `unpaid` records would have none. It grows with records that cost more.
    unpaid, stop, compared_from = count - steps_max, max(count - steps_max, 0), count
    try:
        while left > stop:
            byte = lowest = data[position]
            at = position + 1
            if byte & 0x80:
                second = data[at]
                byte, at = (byte & 0x7F | second << 7, at + 1) if second < 0x80 else _raw(data, position)
            end = at + (byte >> 1)
            if byte & 1 or end > size:
                raise ProtocolViolation(f"a record that ends at byte {end} of {size}")
            if RUN_MIN <= left <= compared_from and data[end] == lowest:
                alike, span = _run(data, position, end - position, left, count - left if is_numbered else None)
                if alike:
                    earliest, latest = min(earliest, *span), max(latest, *span)
                    left, position = left - alike, position + alike * (end - position)
                    unpaid += STEPS_A_RUN + alike // ALIKE_A_STEP - alike
                    stop = max(unpaid, 0)
                    continue
                compared_from = left - WALKED_BETWEEN
            byte, at = data[at + 1], at + 2
            if byte & 0x80:
                second = data[at]
                byte, at = (byte & 0x7F | second << 7, at + 1) if second < 0x80 else _raw(data, at - 1)
            if byte != last:
                last, delta = byte, (byte >> 1) ^ -(byte & 1)
                earliest, latest = min(earliest, delta), max(latest, delta)
            if is_numbered:
                byte, second = data[at], data[at + 1]
                byte = byte if byte < 0x80 else byte & 0x7F | second << 7 if second < 0x80 else _raw(data, at)[0]
                if byte != (count - left) << 1:
                    raise Misnumbered
            if data[at] & 0x80:
                at = at + 1 if data[at + 1] < 0x80 else varint(data, at)[1] - 1
            byte, at = data[at + 1], at + 2
            if byte & 0x80:
                byte, at = _raw(data, at - 1)
            at = at + (byte >> 1) if not byte & 1 else past(~(byte >> 1), at, end)
            byte, at = data[at], at + 1
            if byte & 0x80:
                second = data[at]
                byte, at = (byte & 0x7F | second << 7, at + 1) if second < 0x80 else _raw(data, at - 1)
            at = at + (byte >> 1) if not byte & 1 else past(~(byte >> 1), at, end)
            if at < end and not data[at]:
                at += 1
            else:
                at, headers = _past_headers(data, at, end, left - unpaid - 1)
                unpaid += headers
                stop = max(unpaid, 0)
            if at != end:
                raise ProtocolViolation(f"a record ends {end - at} bytes off")
            position, left = end, left - 1
    except IndexError:
        raise ProtocolViolation("a record is longer than it says, or is not there") from None
    if left:
        raise TooLong
    if position != size:
        raise ProtocolViolation(f"{size - position} bytes follow the last record")
    return earliest, latest


def _past_headers(data: bytes, position: int, end: int, steps_max: int) -> tuple[int, int]:
    """The end of the headers that begin there, and their number. Raises ProtocolViolation or TooLong."""
    count = varint(data, position)[0]
    if count > steps_max:
        if count > end - position:
            raise ProtocolViolation(f"{count} headers in {end - position} bytes")
        raise TooLong
    return past_headers(data, position, end), count


def _raw(data: bytes, position: int) -> tuple[int, int]:
    """A varint as it is written: the lowest bit is the sign."""
    value, position = varint(data, position)
    return (value << 1) ^ (value >> 63), position


def _run(data: bytes, position: int, size: int, left: int, number: int | None) -> tuple[int, list[int]]:
    """The number of records from here on that are laid out as the first, and the span of their timestamps; 0 for few.

    `size` is that of the first, `number` its offset delta if that is looked at; `left` records are expected from here.
    Raises Misnumbered.
    """
    span: list[int] = []
    if data[position : position + RUN_MIN * size : size].count(data[position]) < RUN_MIN:
        return 0, span
    layout = _layout(data, position)
    if layout is None:
        return 0, span
    alike, most = 0, min(left, (len(data) - position) // size)
    asked = min(most, TRIAL)
    while asked:
        begin = position + alike * size
        found = _alike(data, begin, layout, asked)
        if alike + found < RUN_MIN:
            return 0, span
        if found:
            span += _span(data, begin, layout, found)
            if number is not None:
                _check_numbers(data, begin, layout, found, number + alike)
        alike += found
        asked = min(most - alike, BLOCK) if found == asked else 0
    return alike, span


def _layout(data: bytes, position: int) -> Layout | None:
    """The layout of one record; None for one with many headers, or for bytes that are none. Raises IndexError."""
    try:
        length, at = varint(data, position)
        end, time_at = at + length, at + 1
        lengths = [*range(position, at)]
        offset_at = time_at + 1 if data[time_at] < 0x80 else varint(data, time_at)[1]
        key_at = offset_at + 1 if data[offset_at] < 0x80 else varint(data, offset_at)[1]
        headers_at = _past_fields(2, data, key_at, end, lengths)
        lengths.append(headers_at)
        headers, at = data[headers_at] >> 1, headers_at + 1
        if headers > HEADERS_MAX:
            return None
        if headers:
            past_headers(data, headers_at, end)  # refuses more faults than `_past_fields` does
            at = _past_fields(2 * headers, data, at, end, lengths)
        if at != end or data[headers_at] & 1:
            return None
    except ProtocolViolation:
        return None
    fixed = [(at - position, data[at : at + 1]) for at in lengths]
    return Layout(end - position, time_at - position, offset_at - position, key_at - position, fixed)


def _past_fields(count: int, data: bytes, position: int, end: int, lengths: list[int]) -> int:
    """The end of so many fields; the places of their lengths' bytes go to `lengths`. Raises ProtocolViolation."""
    for _ in range(count):
        byte = data[position]
        if byte & 0x81:  # of two bytes, or negative
            length, at = varint(data, position)
            lengths += range(position, at)
            position = past(length, at, end)
        else:
            lengths.append(position)
            position += 1 + (byte >> 1)
    return position


def _alike(data: bytes, position: int, layout: Layout, most: int) -> int:
    """The number of records from here on, `most` at most, that are laid out so."""
    size, end = layout.size, position + most * layout.size
    for at, byte in layout.fixed:
        column = data[position + at : end : size]
        if column != byte * len(column):
            end = position + size * (len(column) - len(column.lstrip(byte)))
    for start, stop in ((layout.time_at, layout.offset_at), (layout.offset_at, layout.key_at)):
        for at in range(start, stop - 1):
            column = data[position + at : end : size]
            if column.translate(None, HIGH):
                end = position + size * (len(column) - len(column.lstrip(HIGH)))
        column = data[position + stop - 1 : end : size]
        if not column.isascii():
            end = position + size * (len(column) - len(column.lstrip(LOW)))
    return (end - position) // size


def _check_numbers(data: bytes, position: int, layout: Layout, count: int, number: int) -> None:
    """Check that the offset deltas of a run go up by one from `number` on. Raises Misnumbered."""
    end, last = position + count * layout.size, layout.key_at - 1
    for at in range(layout.offset_at, layout.key_at):
        shift = 7 * (at - layout.offset_at)
        if data[position + at : end : layout.size] != column_of_numbers(number, count, shift, has_next=at < last):
            raise Misnumbered
    if (number + count - 1) << 1 >= 1 << 7 * (layout.key_at - layout.offset_at):
        raise Misnumbered  # the numbers do not fit their bytes


def column_of_numbers(number: int, count: int, shift: int, *, has_next: bool) -> bytes:
    """The bytes of `count` varints from `number` on that hold their bits from `shift` on."""
    mark = 0x80 if has_next else 0
    if shift < 14:
        repeated, begin = _NUMBERS[shift, mark], number % (64 << shift)
        return repeated[begin : begin + count]
    made = bytearray()
    while len(made) < count:
        high, alike = number << 1 >> shift, (1 << shift - 1) - number % (1 << shift - 1)
        made += bytes([high & 0x7F | mark]) * min(alike, count - len(made))
        number += alike
    return bytes(made)


def _span(data: bytes, position: int, layout: Layout, count: int) -> list[int]:
    """Timestamp deltas of a run that include the least and the greatest."""
    end = position + count * layout.size
    columns = [data[position + at : end : layout.size] for at in range(layout.time_at, layout.offset_at)]
    lowest = columns[0]
    if len(columns) == 1:
        return [(byte >> 1) ^ -(byte & 1) for byte in _distinct(lowest)]
    columns.reverse()
    if lowest.translate(None, EVEN):  # negative deltas are not ordered as their bytes are
        found = set(zip(*columns, strict=True))
        signs = [row for row in found if row[-1] & 1], [row for row in found if not row[-1] & 1]
        return [_delta(row) for some in signs if some for row in (min(some), max(some))]
    return [_delta(_extreme(columns, pick)) for pick in (min, max)]


def _extreme(columns: list[bytes], pick: Callable[[Iterable[Any]], Any]) -> tuple[int, ...]:
    """The least or the greatest row. Timestamps mostly go up: rows with the same first bytes lie side by side."""
    row: list[int] = []
    first, count = 0, len(columns[0])
    for column in columns:
        part = column[first : first + count]
        byte = pick(_distinct(part))
        begin, count = part.find(byte), part.count(byte)
        if part.rfind(byte) - begin >= count:
            return tuple(pick(zip(*columns, strict=True)))
        row.append(byte)
        first += begin
    return tuple(row)


def _delta(row: tuple[int, ...]) -> int:
    """The number that a row of columns stands for, its highest byte first."""
    return varint(bytes(reversed(row)), 0)[0]


def _distinct(column: bytes) -> set[int]:
    """The bytes that a column has."""
    if len(column) < PEELED_FROM:
        return set(column)
    found: set[int] = set()
    while column and len(found) < PEELED_MAX:
        found.add(column[0])
        column = column.translate(None, column[:1])
    return found.union(column)
