"""The records inside a batch.

    length varint, attributes int8, timestamp delta varint, offset delta varint,
    key length varint, key, value length varint, value, headers count varint, headers

All varints are zigzag; a length of -1 is null. Timestamps and offsets are deltas from the batch's header, so a batch
can be given its offsets without touching a record. In a batch of the leader's time every record has the batch's max
timestamp, whatever its delta says.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import (
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    read_header,
    set_crc,
)
from kavka_broker.protocol.records.compression import (
    DECOMPRESSED_BYTES_MAX,
    Compression,
    compress,
    decompress,
)

Header = tuple[str, bytes | None]
# The smallest record: a length and six fields of one byte each.
_RECORD_BYTES_MIN: Final = 7
#: A length of -1, which stands for null.
_NULL: Final = 1


class Record(NamedTuple):
    """One record, with the offset and the timestamp that its batch gives it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()


# Records of a batch to be built: with a time (and an offset, or -1: the next one), or pairs of key and value.
Source = Record | tuple[bytes | None, bytes | None]


def read_records(batch: Buffer, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """All records of one whole batch. Raises only ProtocolViolation, whatever the bytes."""
    header = read_header(batch)
    body = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    data = bytes(decompress(header.codec, body, size_bytes_max))
    if not 0 <= header.records_count <= len(data) // _RECORD_BYTES_MIN:
        raise ProtocolViolation(f"{header.records_count} records do not fit into {len(data)} bytes")
    try:
        return _parse(header, data)
    except (IndexError, UnicodeDecodeError) as problem:
        raise ProtocolViolation(f"a record is malformed: {problem}") from None


def _parse(header: BatchHeader, data: bytes) -> list[Record]:
    records: list[Record] = []
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    leader_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else None
    position = 0
    for _ in range(header.records_count):
        length, position = varint(data, position)
        end = position + length
        if length < 0 or end > len(data):
            raise ProtocolViolation(f"a record of {length} bytes, {len(data) - position} are left")
        timestamp_delta, position = varint(data, position + 1)
        offset_delta, position = varint(data, position)
        if data[position] == _NULL:
            key, position = None, position + 1
        else:
            key, position = _nullable_bytes(data, position, end)
        value, position = _nullable_bytes(data, position, end)
        headers: Sequence[Header] = ()
        if data[position]:
            headers, position = _headers(data, position, end)
        else:
            position += 1
        if position != end:
            raise ProtocolViolation(f"a record of {length} bytes ends {end - position} bytes off")
        timestamp = base_timestamp + timestamp_delta if leader_time is None else leader_time
        records.append(Record(base_offset + offset_delta, timestamp, key, value, headers))
    if position != len(data):
        raise ProtocolViolation(f"{len(data) - position} bytes follow the last record")
    return records


def varint(data: bytes | bytearray, position: int) -> tuple[int, int]:
    """The zigzag number at `position`, and where it ends. Raises IndexError, or ProtocolViolation over ten bytes."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value = byte & 0x7F
    shift = 7
    while byte & 0x80:
        if shift > 63:
            raise ProtocolViolation("a varint is longer than ten bytes")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1), position


def _nullable_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = varint(data, position)
    if length < 0:
        if length != -1:
            raise ProtocolViolation(f"a length of {length}")
        return None, position
    if length > end - position:
        raise ProtocolViolation(f"a field of {length} bytes, {end - position} are left")
    return data[position : position + length], position + length


def _headers(data: bytes, position: int, end: int) -> tuple[list[Header], int]:
    count, position = varint(data, position)
    if not 0 <= count <= end - position:
        raise ProtocolViolation(f"{count} headers in {end - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        name, position = _nullable_bytes(data, position, end)
        if name is None:
            raise ProtocolViolation("a header without a name")
        value, position = _nullable_bytes(data, position, end)
        headers.append((name.decode(), value))
    return headers, position


def build_batch(
    records: Iterable[Source],
    *,
    timestamp_ms: int = NO_TIMESTAMP,
    base_offset: int = 0,
    leader_epoch: int = -1,
    compression: Compression = Compression.NONE,
    compression_level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """Build one batch of `records`. Raises ValueError where there are none.

    A pair of key and value takes `timestamp_ms` and the next offset.
    """
    placed = [_placed(source, index, base_offset, timestamp_ms) for index, source in enumerate(records)]
    if not placed:
        raise ValueError("a batch has at least one record")
    base_timestamp = placed[0].timestamp
    body = compress(compression, pack_records(placed, base_offset, base_timestamp), compression_level)
    batch = bytearray(HEADER_BYTES + len(body))
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - PREFIX_BYTES,
        leader_epoch,
        MAGIC,
        0,
        compression | (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0),
        placed[-1].offset - base_offset,
        base_timestamp,
        max(record.timestamp for record in placed),
        producer_id,
        producer_epoch,
        base_sequence,
        len(placed),
    )
    batch[HEADER_BYTES:] = body
    set_crc(batch)
    return batch


def _placed(source: Source, index: int, base_offset: int, timestamp_ms: int) -> Record:
    if len(source) == 2:
        return Record(base_offset + index, timestamp_ms, source[0], source[1])
    if source.offset < 0:
        return source._replace(offset=base_offset + index)
    return source


def pack_records(records: Sequence[Record], base_offset: int, base_timestamp: int) -> bytearray:
    packed = bytearray()
    for record in records:
        body = bytearray(1)
        put_varint(body, record.timestamp - base_timestamp)
        put_varint(body, record.offset - base_offset)
        _put_nullable(body, record.key)
        _put_nullable(body, record.value)
        put_varint(body, len(record.headers))
        for name, value in record.headers:
            _put_nullable(body, name.encode())
            _put_nullable(body, value)
        put_varint(packed, len(body))
        packed += body
    return packed


def put_varint(target: bytearray, value: int) -> None:
    """Append a zigzag number."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    while value > 0x7F:
        target.append(value & 0x7F | 0x80)
        value >>= 7
    target.append(value)


def _put_nullable(target: bytearray, value: bytes | None) -> None:
    if value is None:
        target.append(1)
        return
    put_varint(target, len(value))
    target += value
