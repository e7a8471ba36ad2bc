import pytest

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import (
    HEADER_BYTES,
    TimestampType,
    crc_is_valid,
    read_extent,
    read_header,
    set_base_offset,
    set_log_append_time,
    split_batches,
)
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import Record, build_batch, read_records

# What MemoryRecords of kafka-clients 4.3.1 makes of one record: key "k", value "v", timestamp 1234567890123.
KAFKA_BATCH = bytes.fromhex(
    "0000000000000000" "0000003a" "ffffffff" "02" "d00237f8" "0000" "00000000"
    "0000011f71fb04cb" "0000011f71fb04cb" "ffffffffffffffff" "ffff" "ffffffff" "00000001"
    "10" "00" "00" "00" "02" "6b" "02" "76" "00"
)  # fmt: skip


def test_a_batch_equals_kafkas_byte_for_byte() -> None:
    assert build_batch([Record(-1, 1234567890123, b"k", b"v")]) == KAFKA_BATCH


def test_all_fields_of_a_header() -> None:
    batch = build_batch(
        [Record(-1, 100, None, b"a"), Record(-1, 300, None, b"b"), Record(-1, 200, None, b"c")],
        base_offset=5,
        leader_epoch=2,
        compression=Compression.ZSTD,
        producer_id=9,
        producer_epoch=1,
        base_sequence=7,
        transactional=True,
    )
    header = read_header(batch)
    assert header.base_offset == 5
    assert header.last_offset == 7
    assert header.next_offset == 8
    assert header.size_bytes == len(batch)
    assert header.leader_epoch == 2
    assert header.magic == 2
    assert header.codec == Compression.ZSTD
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert header.is_transactional
    assert not header.is_control
    assert not header.has_delete_horizon
    assert (header.base_timestamp, header.max_timestamp) == (100, 300)
    assert (header.producer_id, header.producer_epoch) == (9, 1)
    assert (header.base_sequence, header.last_sequence) == (7, 9)
    assert header.records_count == 3
    assert read_extent(batch) == (5, 7, len(batch))


def test_the_last_sequence_of_a_batch_wraps_to_0() -> None:
    batch = build_batch([(None, b"")] * 3, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert read_header(batch).last_sequence == 0


def test_offset_and_epoch_lie_outside_the_crc() -> None:
    batch = build_batch([(None, b"x")])
    set_base_offset(batch, 2**40)
    batch[12:16] = (17).to_bytes(4, "big")
    assert crc_is_valid(batch)
    assert read_header(batch)[:3] == (2**40, len(batch) - 12, 17)


def test_any_other_byte_breaks_the_crc() -> None:
    batch = build_batch([(b"key", b"value")])
    for position in range(17, len(batch)):
        batch[position] ^= 1
        assert not crc_is_valid(batch), position
        batch[position] ^= 1


def test_the_leaders_time_is_every_records_time() -> None:
    batch = build_batch([Record(-1, 100, None, b"a"), Record(-1, 50, None, b"b")])
    set_log_append_time(batch, 777)
    header = read_header(batch)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.max_timestamp == 777
    assert crc_is_valid(batch)
    assert [record.timestamp for record in read_records(batch)] == [777, 777]


def test_split_leaves_a_cut_batch_out() -> None:
    first, second = build_batch([(None, b"a")]), build_batch([(None, b"bb")], base_offset=1)
    both = bytes(first + second)
    assert [bytes(batch) for _, batch in split_batches(both)] == [first, second]
    for cut in range(len(first), len(both)):
        assert len(list(split_batches(both[:cut]))) == 1


def test_a_batch_shorter_than_its_header_is_a_violation() -> None:
    batch = build_batch([(None, b"a")])
    batch[8:12] = (HEADER_BYTES - 13).to_bytes(4, "big")
    with pytest.raises(ProtocolViolation, match="shorter than its header"):
        list(split_batches(batch))
    with pytest.raises(ProtocolViolation, match="61 bytes"):
        read_header(batch[:60])
