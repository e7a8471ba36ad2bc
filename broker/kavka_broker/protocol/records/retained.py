"""A batch of which some records are gone, as a compacted log has it.

It keeps its offsets, so that the sequence of its last record can be worked out, its producer, its epochs and its codec.
With a delete horizon (KIP-534) the base timestamp is that time, and timestamps of records are counted from it.
"""

from collections.abc import Sequence

from kavka_broker.protocol.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    PREFIX_BYTES,
    BatchHeader,
    set_crc,
)
from kavka_broker.protocol.records.compression import Compression, compress
from kavka_broker.protocol.records.record import Record, pack_records


def retained_batch(header: BatchHeader, records: Sequence[Record], horizon_ms: int | None) -> bytearray:
    """The batch with these of its records, at least one, and with a delete horizon where one is given."""
    attributes = header.attributes & ~DELETE_HORIZON_BIT
    base_timestamp = records[0].timestamp
    if horizon_ms is not None:
        attributes, base_timestamp = attributes | DELETE_HORIZON_BIT, horizon_ms
    body = compress(Compression(header.codec), pack_records(records, header.base_offset, base_timestamp), None)
    return _signed(
        header._replace(
            length=HEADER_BYTES - PREFIX_BYTES + len(body),
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max(record.timestamp for record in records),
            records_count=len(records),
        ),
        body,
    )


def empty_batch(header: BatchHeader) -> bytearray:
    """The batch without any record: what is known of its producer, its offsets and its time."""
    return _signed(
        header._replace(
            length=HEADER_BYTES - PREFIX_BYTES,
            attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
            base_timestamp=header.max_timestamp,
            records_count=0,
        ),
        b"",
    )


def _signed(header: BatchHeader, body: bytes | bytearray | memoryview) -> bytearray:
    batch = bytearray(HEADER_BYTES + len(body))
    HEADER.pack_into(batch, 0, *header)
    batch[HEADER_BYTES:] = body
    set_crc(batch)
    return batch
