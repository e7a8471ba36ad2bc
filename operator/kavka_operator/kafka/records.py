"""Records as the consumer of kafka-python fetches them, with their headers left packed.

The library takes every header of a record apart, in Python. A record of the audit topic has ten, and a consumer spent
most of its time there. A record here keeps the bytes of its headers, and takes them apart when somebody asks.
All else is the library's: what is fetched, which transactions were aborted, and where reading goes on. As the library
has no place for that, this module knows names that the library does not promise; its version is pinned.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.errors import CorruptRecordError
from kafka.record.util import decode_varint

Header = tuple[str, bytes | None]
MAGIC: Final = 2
"""The format of batches that have headers."""
NO_HEADERS: Final = b"\x00"
NULL: Final = 1
"""The length -1 as a varint, which stands for null."""


class PackedRecord(NamedTuple):
    """A record. `packed_headers` is their number, and then the name and the value of each behind their lengths."""

    partition: int
    offset: int
    timestamp: int
    value: bytes | None
    packed_headers: bytes

    @property
    def headers(self) -> list[Header]:
        """Return the headers. Raises ValueError."""
        packed = self.packed_headers
        headers = []
        try:
            count, at = decode_varint(packed, 0)
            for _ in range(count):
                name, at = _sized(packed, at)
                value, at = _sized(packed, at)
                headers.append(((name or b"").decode(), value))
        except IndexError:
            raise ValueError("the headers of the record are cut off") from None
        if at != len(packed):
            raise ValueError(f"{len(packed) - at} bytes follow the headers of the record")
        return headers


def leave_packed(consumer: KafkaConsumer) -> KafkaConsumer:
    """Have a consumer give records of this kind, and return it."""
    consumer._fetcher.PartitionRecords = _PackedRecords
    return consumer


class _PackedRecords(Fetcher.PartitionRecords):  # type: ignore[misc]  # the library has no types
    """The records of one partition in the answer to a fetch."""

    def _unpack_records(self, tp: Any, records: Any, *_: object) -> Iterator[PackedRecord]:
        """Give the records. Raises CorruptRecordError."""
        for batch in iter(records.next_batch, None):
            if self.check_crcs and not batch.validate_crc():
                raise CorruptRecordError(f"the batch of {tp} at offset {batch.base_offset} has another checksum")
            if batch.magic != MAGIC:
                yield from self._of_old_format(tp.partition, batch)
                continue
            if not self._is_hidden(batch):
                for record in _unpacked(tp.partition, batch):
                    self.next_fetch_offset = record.offset + 1
                    yield record
            # Of the last records of a batch, compaction may have left nothing but their offsets.
            self.next_fetch_offset = batch.next_offset
        self.drain()

    def _is_hidden(self, batch: Any) -> bool:
        """Whether the batch is a marker, or of a transaction that was aborted."""
        self.leader_epoch = batch.leader_epoch
        if self.isolation_level == IsolationLevel.READ_COMMITTED and batch.has_producer_id():
            self._consume_aborted_transactions_up_to(batch.last_offset)
            if self._contains_abort_marker(batch):
                self.aborted_producer_ids.discard(batch.producer_id)
            elif self._is_batch_aborted(batch):
                return True
        return bool(batch.is_control_batch)

    def _of_old_format(self, partition: int, batch: Any) -> Iterator[PackedRecord]:
        for record in batch:
            if self.check_crcs and not record.validate_crc():
                raise CorruptRecordError(f"the record at offset {record.offset} has another checksum")
            self.next_fetch_offset = record.offset + 1
            yield PackedRecord(partition, record.offset, record.timestamp, record.value, NO_HEADERS)


def _unpacked(partition: int, batch: Any) -> list[PackedRecord]:
    batch._maybe_uncompress()
    try:
        found = _parsed(partition, batch, bytes(batch._buffer))
    except (IndexError, ValueError) as problem:
        raise CorruptRecordError(f"a record behind offset {batch.base_offset} is malformed: {problem}") from problem
    return found


def _parsed(partition: int, batch: Any, data: bytes) -> list[PackedRecord]:
    """Raises ValueError and IndexError where the bytes are no records."""
    base_offset, base_ms, records, at = batch.base_offset, batch.first_timestamp, [], batch._pos
    written_ms = batch.max_timestamp if batch.timestamp_type == batch.LOG_APPEND_TIME else None
    for _ in range(batch.records_count):
        size, at = decode_varint(data, at)
        end = at + size
        delta_ms, at = decode_varint(data, at + 1)  # behind the attributes, of which there are none
        delta, at = decode_varint(data, at)
        _, at = _sized(data, at)
        value, at = _sized(data, at)
        if not at < end <= len(data):
            raise ValueError(f"it has {size} bytes, and its fields have others")
        time_ms = base_ms + delta_ms if written_ms is None else written_ms
        records.append(PackedRecord(partition, base_offset + delta, time_ms, value, data[at:end]))
        at = end
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes follow the last record")
    return records


def _sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    """A field behind its length, and where it ends. Raises ValueError and IndexError."""
    if data[at] == NULL:
        return None, at + 1
    size, at = decode_varint(data, at)
    if size < 0 or at + size > len(data):
        raise ValueError(f"a field of {size} bytes, {len(data) - at} are left")
    return data[at : at + size], at + size
