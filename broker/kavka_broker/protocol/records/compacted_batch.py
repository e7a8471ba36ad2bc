"""A batch of which some records are gone, as a compacted log has it.

It keeps its offsets, so that the sequence of its last record can be worked out, its producer, its epochs and its codec.
With a delete horizon (KIP-534) the base timestamp is that time, and timestamps of records are counted from it.
"""

from typing import Final

from kavka_broker.protocol.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    BatchHeader,
    set_crc,
)
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.entries import Entry
from kavka_broker.protocol.records.packing import packer
from kavka_broker.protocol.records.record import put_varint

#: The bytes that a codec is given at a time, which takes it a millisecond at most.
FED_BYTES: Final = 64 * 1024


class RetainedBatch:
    """The batch with the records that are added, in their order, and with a delete horizon where one is given.

    Each record is packed as it is added: no more than the packed bytes is held.
    """

    def __init__(self, header: BatchHeader, horizon_ms: int | None) -> None:
        self.count = 0
        self._header = header
        self._horizon_ms = horizon_ms
        self._base_timestamp = horizon_ms
        self._max_timestamp = NO_TIMESTAMP
        self._packer = packer(Compression(header.codec))
        self._waiting = bytearray()
        self._batch = bytearray(HEADER_BYTES)

    def add(self, entry: Entry) -> None:
        if self._base_timestamp is None:
            self._base_timestamp = entry.timestamp
        head = bytearray(1)
        put_varint(head, entry.timestamp - self._base_timestamp)
        put_varint(head, entry.offset - self._header.base_offset)
        put_varint(self._waiting, len(head) + len(entry.tail))
        self._waiting += head
        for start in range(0, len(entry.tail), FED_BYTES):
            self._waiting += entry.tail[start : start + FED_BYTES]
            if len(self._waiting) >= FED_BYTES:
                self._pack()
        self.count += 1
        self._max_timestamp = max(self._max_timestamp, entry.timestamp)

    def _pack(self) -> None:
        self._batch += self._packer.compress(self._waiting)
        self._waiting = bytearray()

    def built(self) -> bytearray:
        """The whole batch, after at least one record was added."""
        assert self.count, "a batch of which nothing is left is empty"
        self._pack()
        self._batch += self._packer.flush()
        header, has_horizon = self._header, self._horizon_ms is not None
        kept = header._replace(
            length=len(self._batch) - PREFIX_BYTES,
            attributes=header.attributes & ~DELETE_HORIZON_BIT | (DELETE_HORIZON_BIT if has_horizon else 0),
            base_timestamp=self._base_timestamp or 0,
            max_timestamp=self._max_timestamp,
            records_count=self.count,
        )
        return _signed(kept, self._batch)


def empty_batch(header: BatchHeader) -> bytearray:
    """The batch without its records, which keeps its producer, its offsets and its time."""
    kept = header._replace(
        length=HEADER_BYTES - PREFIX_BYTES,
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
        base_timestamp=NO_TIMESTAMP,
        records_count=0,
    )
    return _signed(kept, bytearray(HEADER_BYTES))


def _signed(header: BatchHeader, batch: bytearray) -> bytearray:
    HEADER.pack_into(batch, 0, *header)
    set_crc(batch)
    return batch
