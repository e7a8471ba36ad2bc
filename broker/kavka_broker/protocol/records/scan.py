"""The records of a batch, looked at one piece after the other, without keeping them.

To judge a batch or to search it takes a record's offset, its time and whether it has a key; keys, values and headers
are only walked over. So a batch costs the memory of a few pieces, whatever it unpacks to, and a caller that has found
what it looked for stops there. Between two pieces the loop may do something else: see `storage.time_search`.

The rules are those of `record.read_records`, which gives the records themselves; only the text of headers' names is not
looked at.
"""

from collections.abc import Generator, Iterator
from typing import Final

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import HEADER_BYTES, LOG_APPEND_TIME_BIT, BatchHeader
from kavka_broker.protocol.records.compression import DECOMPRESSED_BYTES_MAX, Buffer
from kavka_broker.protocol.records.record import varint
from kavka_broker.protocol.records.unpacking import unpack

VARINT_BYTES_MAX: Final = 10
UNBOUNDED: Final = 1 << 62
HEADERS_PER_STEP_MAX: Final = 500
"""Of a record that lies across pieces, where each takes some microseconds."""


class RecordTooLarge(ProtocolViolation):
    """A record has more bytes than the caller allows."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"a record of {size_bytes} bytes")
        self.size_bytes = size_bytes


Seen = tuple[int, int, bool]
"""Of one record: its offset, its timestamp in ms, whether it has a key. Plain, since millions of them are made."""


def scan(
    header: BatchHeader,
    batch: Buffer,
    size_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    record_bytes_max: int = UNBOUNDED,
) -> Iterator[list[Seen]]:
    """Records of one whole batch, grouped by the piece in which they end; the list of a piece may be empty.

    Raises only ProtocolViolation, whatever the bytes, as soon as the faulty ones are reached: RecordTooLarge at the
    length of a record above `record_bytes_max`.
    """
    if header.records_count < 0:
        raise ProtocolViolation(f"a batch of {header.records_count} records")
    body = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    return _Walk(header, unpack(header.codec, body, size_bytes_max), record_bytes_max).records()


class _Walk:
    """A walk over records, some of which lie across pieces. Keys and values of these are passed over and not kept."""

    def __init__(self, header: BatchHeader, pieces: Iterator[bytes], record_bytes_max: int) -> None:
        self._header = header
        self._record_bytes_max = record_bytes_max
        self._leader_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else None
        self._left = header.records_count
        self._pieces = pieces
        self._data = b""
        self._position = 0
        self._room = 0  # bytes of the record that lies across pieces
        self._found: list[Seen] = []

    def records(self) -> Iterator[list[Seen]]:
        """Records by the piece in which they end. Raises ProtocolViolation."""
        self._data = next(self._pieces, b"")
        while self._left:
            self._whole()
            if self._left:
                yield from self._across()
        yield self._found
        rest = len(self._data) - self._position or len(next(self._pieces, b""))
        if rest:
            raise ProtocolViolation(f"{rest} bytes or more follow the last record")

    def _whole(self) -> None:
        """The records that lie in this piece as a whole. Flat, since most varints have one byte and need no call."""
        data, position, size = self._data, self._position, len(self._data)
        base_offset, base_timestamp = self._header.base_offset, self._header.base_timestamp
        leader_time, add, left, most = self._leader_time, self._found.append, self._left, self._record_bytes_max
        try:
            while left:
                if position + VARINT_BYTES_MAX > size and not _has_varint(data, position):
                    break
                length, at = varint(data, position)
                end = at + length
                if not 0 <= length <= most:
                    raise RecordTooLarge(length) if length > most else ProtocolViolation(f"a record of {length} bytes")
                if end > size:
                    break
                at += 2
                if (byte := data[at - 1]) & 0x80:
                    timestamp_delta, at = varint(data, at - 1)
                else:
                    timestamp_delta = (byte >> 1) ^ -(byte & 1)
                offset_delta, at = varint(data, at)
                at += 1
                if (byte := data[at - 1]) & 0x80:
                    key_length, at = varint(data, at - 1)
                else:
                    key_length = (byte >> 1) ^ -(byte & 1)
                at = at + key_length if 0 <= key_length <= end - at else past(key_length, at, end)
                at += 1
                if (byte := data[at - 1]) & 0x80:
                    value_length, at = varint(data, at - 1)
                else:
                    value_length = (byte >> 1) ^ -(byte & 1)
                at = at + value_length if 0 <= value_length <= end - at else past(value_length, at, end)
                at = past_headers(data, at, end) if data[at] else at + 1
                if at != end:
                    raise ProtocolViolation(f"a record of {length} bytes ends {end - at} bytes off")
                timestamp = base_timestamp + timestamp_delta if leader_time is None else leader_time
                add((base_offset + offset_delta, timestamp, key_length >= 0))
                left, position = left - 1, end
        except IndexError:
            raise ProtocolViolation("a record is longer than it says") from None
        self._left, self._position = left, position

    # --- a record that ends in a later piece: gives what was found whenever it takes another one -----------------

    def _across(self) -> Iterator[list[Seen]]:
        self._room = VARINT_BYTES_MAX
        length = yield from self._varint()
        if length < 0:
            raise ProtocolViolation(f"a record of {length} bytes")
        if length > self._record_bytes_max:
            raise RecordTooLarge(length)
        self._room = length
        yield from self._skip(1)
        timestamp_delta = yield from self._varint()
        offset_delta = yield from self._varint()
        key_length = yield from self._field()
        yield from self._field()
        count = yield from self._varint()
        if not 0 <= count <= self._room:
            raise ProtocolViolation(f"{count} headers in {self._room} bytes")
        for number in range(count):
            yield from self._field(is_name=True)
            yield from self._field()
            if number % HEADERS_PER_STEP_MAX == HEADERS_PER_STEP_MAX - 1:
                yield []
        if self._room:
            raise ProtocolViolation(f"a record of {length} bytes ends {self._room} bytes off")
        timestamp = self._header.base_timestamp + timestamp_delta if self._leader_time is None else self._leader_time
        self._found.append((self._header.base_offset + offset_delta, timestamp, key_length >= 0))
        self._left -= 1

    def _skip(self, count: int) -> Iterator[list[Seen]]:
        if count > self._room:
            raise ProtocolViolation(f"a field of {count} bytes, {self._room} are left")
        self._room -= count
        while count > len(self._data) - self._position:
            count -= len(self._data) - self._position
            yield from self._next_piece()
        self._position += count

    def _next_piece(self) -> Iterator[list[Seen]]:
        yield self._found
        self._found, self._position = [], 0
        self._data = next(self._pieces, b"")
        if not self._data:
            raise ProtocolViolation(f"{self._left} of {self._header.records_count} records are not there")

    def _varint(self) -> Generator[list[Seen], None, int]:
        encoded = bytearray()
        while not encoded or encoded[-1] & 0x80:
            yield from self._skip(1)
            encoded.append(self._data[self._position - 1])
            if len(encoded) > VARINT_BYTES_MAX:
                raise ProtocolViolation("a varint is longer than ten bytes")
        return varint(encoded, 0)[0]

    def _field(self, *, is_name: bool = False) -> Generator[list[Seen], None, int]:
        length = yield from self._varint()
        if length < (0 if is_name else -1):
            raise ProtocolViolation(f"a length of {length}")
        yield from self._skip(max(length, 0))
        return length


def _has_varint(data: Buffer, position: int) -> bool:
    """Whether the varint at `position` ends in `data`."""
    return any(byte < 0x80 for byte in data[position : position + VARINT_BYTES_MAX])


def past(length: int, position: int, end: int) -> int:
    """The end of the field that begins there. A length of -1 is null. Raises ProtocolViolation."""
    if length < 0:
        if length != -1:
            raise ProtocolViolation(f"a length of {length}")
        return position
    if length > end - position:
        raise ProtocolViolation(f"a field of {length} bytes, {end - position} are left")
    return position + length


def past_headers(data: bytes | bytearray, position: int, end: int) -> int:
    """The end of the headers that begin there. Raises ProtocolViolation, or IndexError where the data ends."""
    count, position = varint(data, position)
    if not 0 <= count <= end - position:
        raise ProtocolViolation(f"{count} headers in {end - position} bytes")
    for _ in range(count):
        byte = data[position]
        position += 1
        if byte & 0x81:  # of two bytes, or negative
            length, position = varint(data, position - 1)
            if length < 0:
                raise ProtocolViolation("a header without a name")
            byte = length << 1
        position += byte >> 1
        byte = data[position]
        position += 1
        if byte & 0x81:
            length, position = varint(data, position - 1)
            position = past(length, position, end)
        else:
            position += byte >> 1
        if position > end:
            raise ProtocolViolation(f"headers that end {position - end} bytes behind their record")
    return position
