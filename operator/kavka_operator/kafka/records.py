"""Records as the consumer of kafka-python fetches them, with batches and headers left packed.

The library takes every record and every header apart, in Python. A record of the audit topic has ten headers, and a
consumer spent most of its time there. Here the consumer gives batches. A batch keeps the bytes of its records, and a
record those of its headers, and takes them apart when somebody asks.
All else is the library's: what is fetched, which transactions were aborted, and where reading goes on. As the library
has no place for that, this module knows names that the library does not promise; its version is pinned.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.errors import CorruptRecordError, KafkaError
from kafka.record.util import decode_varint

from kavka_operator.kafka.admin import AdminError

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


class PackedBatch:
    """Records of one batch, as they stand in it. What takes them apart raises AdminError where they are malformed."""

    __slots__ = ("_base_ms", "_batch", "_written_ms", "base_offset", "count", "offset", "partition", "topic")

    def __init__(self, topic: str, partition: int, batch: Any) -> None:
        self.topic, self.partition, self._batch = topic, partition, batch
        self.base_offset, self.count = batch.base_offset, batch.records_count
        self.offset = batch.last_offset  # by it the library skips what is before the offset that was asked for
        self._base_ms = batch.first_timestamp
        self._written_ms = batch.max_timestamp if batch.timestamp_type == batch.LOG_APPEND_TIME else None

    def packed(self) -> bytes:
        """Return the bytes of the records, one behind the other. Raises AdminError."""
        try:
            self._batch._maybe_uncompress()
        except KafkaError as error:
            raise AdminError(f"{self.topic} cannot be read: {error}") from error
        except Exception as problem:  # what each codec raises is its own
            raise self._malformed(problem) from problem
        return bytes(memoryview(self._batch._buffer)[self._batch._pos :])

    def record_at(self, packed: bytes, at: int) -> tuple[PackedRecord, int]:
        """Return the record that stands at a place of the bytes, and the place behind it."""
        try:
            return self._parsed(packed, at)
        except (IndexError, ValueError) as problem:
            raise self._malformed(problem) from problem

    def records(self) -> list[PackedRecord]:
        """Return all records."""
        packed, at, records = self.packed(), 0, []
        for _ in range(self.count):
            record, at = self.record_at(packed, at)
            records.append(record)
        if at != len(packed):
            raise self._malformed(f"{len(packed) - at} bytes follow the last record")
        return records

    def _parsed(self, data: bytes, at: int) -> tuple[PackedRecord, int]:
        """Raises ValueError and IndexError where the bytes are no record."""
        size, at = decode_varint(data, at)
        end = at + size
        delta_ms, at = decode_varint(data, at + 1)  # behind the attributes, of which there are none
        delta, at = decode_varint(data, at)
        _, at = _sized(data, at)
        value, at = _sized(data, at)
        if not at < end <= len(data):
            raise ValueError(f"it has {size} bytes, and its fields have others")
        time_ms = self._base_ms + delta_ms if self._written_ms is None else self._written_ms
        return PackedRecord(self.partition, self.base_offset + delta, time_ms, value, data[at:end]), end

    def _malformed(self, problem: object) -> AdminError:
        words = f"a record behind offset {self.base_offset} is malformed: {problem}"
        return AdminError(f"{self.topic} cannot be read: {CorruptRecordError(words)}")


class OldBatch:
    """A record of a format before headers, as a batch."""

    __slots__ = ("_record", "base_offset", "count", "offset", "partition")

    def __init__(self, partition: int, record: Any) -> None:
        self.partition, self.base_offset, self.offset, self.count = partition, record.offset, record.offset, 1
        self._record = PackedRecord(partition, record.offset, record.timestamp, record.value, NO_HEADERS)

    def packed(self) -> bytes:
        """Return nothing: no record here has the format of others."""
        return b""

    def record_at(self, packed: bytes, at: int) -> tuple[PackedRecord, int]:
        """Return the record, and the place behind it."""
        return self._record, at

    def records(self) -> list[PackedRecord]:
        """Return the record."""
        return [self._record]


AnyBatch = PackedBatch | OldBatch


def leave_packed(consumer: KafkaConsumer) -> KafkaConsumer:
    """Have a consumer give batches of such records, and return it."""
    consumer._fetcher.PartitionRecords = _PackedRecords
    return consumer


class _PackedRecords(Fetcher.PartitionRecords):  # type: ignore[misc]  # the library has no types
    """The batches of one partition in the answer to a fetch."""

    def _unpack_records(self, tp: Any, records: Any, *_: object) -> Iterator[AnyBatch]:
        """Give the batches. Raises CorruptRecordError."""
        for batch in iter(records.next_batch, None):
            if self.check_crcs and not batch.validate_crc():
                raise CorruptRecordError(f"the batch of {tp} at offset {batch.base_offset} has another checksum")
            if batch.magic != MAGIC:
                yield from self._of_old_format(tp.partition, batch)
                continue
            # Behind the batch, of whose last records compaction may have left nothing but their offsets.
            self.next_fetch_offset = batch.next_offset
            if not self._is_hidden(batch):
                yield PackedBatch(tp.topic, tp.partition, batch)
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

    def _of_old_format(self, partition: int, batch: Any) -> Iterator[OldBatch]:
        for record in batch:
            if self.check_crcs and not record.validate_crc():
                raise CorruptRecordError(f"the record at offset {record.offset} has another checksum")
            self.next_fetch_offset = record.offset + 1
            yield OldBatch(partition, record)


def _sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    """A field behind its length, and where it ends. Raises ValueError and IndexError."""
    if data[at] == NULL:
        return None, at + 1
    size, at = decode_varint(data, at)
    if size < 0 or at + size > len(data):
        raise ValueError(f"a field of {size} bytes, {len(data) - at} are left")
    return data[at : at + size], at + size
