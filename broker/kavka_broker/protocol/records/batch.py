"""The header of a record batch, format v2.

    0  base offset      int64      set by the broker
    8  length           int32      of all that follows this field
   12  leader epoch     int32      set by the broker
   16  magic            int8       2
   17  crc              uint32     CRC-32C of all that follows this field
   21  attributes       int16      codec (3 bits), timestamp type, transactional, control, delete horizon
   23  last offset delta int32
   27  base timestamp   int64
   35  max timestamp    int64
   43  producer id      int64      -1: none
   51  producer epoch   int16
   53  base sequence    int32
   57  records count    int32
   61  the records

Base offset and leader epoch stand before the CRC, so that a broker can set them without touching what the client
signed. Whatever stands behind it can only be changed together with a new CRC.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from kavka_broker.protocol.errors import ProtocolViolation

Buffer = bytes | bytearray | memoryview

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
# Base offset and length, from which the beginning of the next batch follows.
PREFIX_BYTES: Final = 12
# The length field of a batch without records.
LENGTH_MIN: Final = HEADER_BYTES - PREFIX_BYTES
CRC_FROM: Final = 21
MAGIC: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1

_OFFSET: Final = Struct(">q")
_CRC_ATTRIBUTES: Final = Struct(">Ih")
EXTENT: Final = Struct(">qi4xb6xi")


class TimestampType(IntEnum):
    """The origin of a batch's timestamps: the producer, or the leader on append."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader(NamedTuple):
    """All fields of a batch's header, in their order on disk."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_bytes(self) -> int:
        """The bytes of the whole batch, its header included."""
        return PREFIX_BYTES + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        """The id of the compression codec; see `compression.Compression`."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType((self.attributes & LOG_APPEND_TIME_BIT) >> 3)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether the base timestamp is the time from which a compacted log may drop its tombstones (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id >= 0

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap from 2^31 - 1 to 0."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


class Extent(NamedTuple):
    """The offsets that a batch spans and its size, as far as a scan over batches needs them."""

    base_offset: int
    last_offset: int
    size_bytes: int


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`, unchecked except that it is whole. Raises ProtocolViolation."""
    if len(buffer) - position < HEADER_BYTES:
        raise ProtocolViolation(f"a batch header takes {HEADER_BYTES} bytes, {len(buffer) - position} are left")
    return BatchHeader._make(HEADER.unpack_from(buffer, position))


def read_extent(buffer: Buffer, position: int = 0) -> Extent:
    """The offsets and size of the batch at `position`, for scans that look at no other field.

    Raises ProtocolViolation where no batch can be: another magic, shorter than its header, offsets that go back.
    """
    base_offset, length, magic, last_offset_delta = EXTENT.unpack_from(buffer, position)
    if magic != MAGIC or length < LENGTH_MIN or base_offset < 0 or last_offset_delta < 0:
        raise ProtocolViolation(
            f"no batch header: base offset {base_offset}, length {length}, magic {magic}, "
            f"last offset delta {last_offset_delta}"
        )
    return Extent(base_offset, base_offset + last_offset_delta, PREFIX_BYTES + length)


EXTENT_BYTES: Final = EXTENT.size


def split_batches(view: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Each whole batch of `view` with its header; a cut one at the end is left out. Raises ProtocolViolation."""
    whole = memoryview(view)
    position, end = 0, len(whole)
    while end - position >= HEADER_BYTES:
        header = read_header(whole, position)
        if header.size_bytes < HEADER_BYTES:
            raise ProtocolViolation(f"a batch of {header.size_bytes} bytes is shorter than its header")
        if header.size_bytes > end - position:
            return
        yield header, whole[position : position + header.size_bytes]
        position += header.size_bytes


def compute_crc(batch: Buffer) -> int:
    """The CRC that the batch should carry."""
    return crc32c(memoryview(batch)[CRC_FROM:])


def crc_is_valid(batch: Buffer) -> bool:
    """Whether `batch`, which must be one whole batch, carries the CRC of its bytes."""
    stored: int = _CRC_ATTRIBUTES.unpack_from(batch, CRC_FROM - 4)[0]
    return stored == compute_crc(batch)


def set_base_offset(batch: bytearray | memoryview, base_offset: int, position: int = 0) -> None:
    _OFFSET.pack_into(batch, position, base_offset)


def set_log_append_time(batch: bytearray | memoryview, now_ms: int) -> None:
    """Stamp one whole batch with the leader's time, and renew the CRC, which covers it."""
    header = read_header(batch)
    attributes = header.attributes | LOG_APPEND_TIME_BIT
    _CRC_ATTRIBUTES.pack_into(batch, CRC_FROM - 4, 0, attributes)
    _OFFSET.pack_into(batch, 35, now_ms)
    set_crc(batch)


def set_max_timestamp(batch: bytearray | memoryview, timestamp_ms: int) -> None:
    """Set another largest timestamp, and renew the CRC, which covers it."""
    _OFFSET.pack_into(batch, 35, timestamp_ms)
    set_crc(batch)


def set_crc(batch: bytearray | memoryview) -> None:
    """Set the CRC of one whole batch."""
    crc = compute_crc(batch)
    attributes: int = _CRC_ATTRIBUTES.unpack_from(batch, CRC_FROM - 4)[1]
    _CRC_ATTRIBUTES.pack_into(batch, CRC_FROM - 4, crc, attributes)
