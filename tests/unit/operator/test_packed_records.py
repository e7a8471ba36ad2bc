"""Records with packed headers are those that the library gives, in the same order, up to the same offset."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.memory_records import MemoryRecordsBuilder

from kavka_broker.protocol.records.batch import HEADER, set_crc
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.protocol.records.record import Record, build_batch
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.records import PackedRecord, _PackedRecords

PLACE = TopicPartition("t", 3)
BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=80), BYTES), max_size=3)
CODECS = (Compression.NONE, Compression.GZIP, Compression.LZ4)
"""Those that the library unpacks without a further package."""
RECORDS = st.lists(st.builds(Record, st.just(-1), st.integers(0, 2**40), BYTES, BYTES, HEADERS), min_size=1, max_size=5)


def given_by(kind: Any, data: bytes, fetch_offset: int = 0, aborted: Sequence[object] = ()) -> tuple[list[Any], int]:
    """What a consumer takes of the answer to a fetch, and where it goes on."""
    answer = kind(
        fetch_offset,
        PLACE,
        MemoryRecords(data),
        isolation_level=IsolationLevel.READ_COMMITTED,
        aborted_transactions=aborted,
    )
    found: list[Any] = []
    while answer:  # until nothing is left, as the library asks
        found += answer.take(2)
    if kind is _PackedRecords:
        found = [record for batch in found for record in batch.records() if record.offset >= fetch_offset]
    return [(one.partition, one.offset, one.timestamp, one.value, one.headers) for one in found], (
        answer.next_fetch_offset
    )


def are_equal(data: bytes, fetch_offset: int = 0, aborted: Sequence[object] = ()) -> int:
    """Check that both give the same; returns how many records."""
    ours = given_by(_PackedRecords, data, fetch_offset, aborted)
    assert ours == given_by(Fetcher.PartitionRecords, data, fetch_offset, aborted)
    return len(ours[0])


@given(st.lists(st.tuples(RECORDS, st.sampled_from(CODECS)), max_size=3), st.integers(0, 12))
def test_all_records_are_given_from_the_offset_on(batches: list[tuple[list[Record], Compression]], at: int) -> None:
    data, offset = b"", 0
    for records, compression in batches:
        data += build_batch(records, base_offset=offset, compression=compression)
        offset += len(records)
    assert are_equal(data, at) == max(0, offset - at)


class Aborted(SimpleNamespace):
    """A transaction that the answer to a fetch names as aborted."""

    producer_id: int
    first_offset: int


@pytest.mark.parametrize(("kind", "count"), [(ControlType.ABORT, 1), (ControlType.COMMIT, 3)])
def test_a_transaction_that_was_aborted_is_left_out(kind: ControlType, count: int) -> None:
    def sent(value: bytes, offset: int, producer_id: int) -> bytes:
        return bytes(
            build_batch(
                [(None, value)],
                timestamp_ms=5,
                base_offset=offset,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
            )
        )

    marker = build_marker(kind, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=6)
    marker[:8] = (2).to_bytes(8, "big")
    plain = build_batch([(None, b"plain")], timestamp_ms=7, base_offset=4)
    data = sent(b"a", 0, 7) + sent(b"b", 1, 7) + marker + plain
    aborted = [Aborted(producer_id=7, first_offset=0)] if kind is ControlType.ABORT else []
    assert are_equal(data, aborted=aborted) == count


@pytest.mark.parametrize("magic", [0, 1])
def test_records_of_old_formats_have_no_headers(magic: int) -> None:
    builder = MemoryRecordsBuilder(magic, 0, 1000)
    for value in (b"a", None):
        builder.append(5, b"key", value)
    builder.close()
    assert are_equal(bytes(builder.buffer())) == 2


def test_what_compaction_left_of_a_batch_ends_where_the_batch_did() -> None:
    batch = build_batch([(None, b"a")], timestamp_ms=5)
    batch[23:27] = (9).to_bytes(4, "big")  # the offset of its last record
    set_crc(batch)
    assert given_by(_PackedRecords, bytes(batch))[1] == 10
    assert are_equal(bytes(batch)) == 1


def test_another_checksum_is_told() -> None:
    batch = build_batch([(None, b"a")], timestamp_ms=5)
    batch[-1] ^= 1
    with pytest.raises(CorruptRecordError, match="another checksum"):
        given_by(_PackedRecords, bytes(batch))


@given(st.binary(max_size=40), st.integers(1, 3))
def test_any_bytes_are_records_or_are_told_as_malformed(body: bytes, count: int) -> None:
    batch = build_batch([(None, b"")] * count, timestamp_ms=5)
    batch[HEADER.size :] = body
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    set_crc(batch)
    try:
        found = given_by(_PackedRecords, bytes(batch))[0]
    except AdminError:
        return
    assert len(found) == count


@given(st.binary(max_size=40))
def test_any_headers_are_headers_or_are_told_as_malformed(packed: bytes) -> None:
    record = PackedRecord(0, 0, 0, None, packed)
    try:
        assert all(isinstance(name, str) for name, _ in record.headers)
    except ValueError:
        return
