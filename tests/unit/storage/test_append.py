"""What a leader takes, what it refuses and with which code, and what it writes."""

import tracemalloc
from typing import Any

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import (
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    TimestampType,
    crc_is_valid,
    read_header,
    set_crc,
    split_batches,
)
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import Record, build_batch, read_records
from kavka_broker.storage.batch_check import NotOnLoop, prepare_in_thread
from kavka_broker.storage.log import Log, Origin
from kavka_broker.storage.record_check import WALKED_ON_LOOP_MAX
from tests.unit.storage.support import NOW_MS, append, config, everything, found_at, headers, open_log, refusal, values

LARGE = LogConfig()


def patched(batch: bytearray, position: int, data: bytes, *, sign: bool = True) -> bytearray:
    batch[position : position + len(data)] = data
    if sign:
        set_crc(batch)
    return batch


def one(**fields: object) -> bytearray:
    return build_batch([(b"key", b"value")], timestamp_ms=NOW_MS, **fields)  # type: ignore[arg-type]


def test_offsets_follow_each_other() -> None:
    log = open_log()
    first = append(log, b"a", b"b")
    second = append(log, b"c", epoch=1)
    assert (first.base_offset, first.last_offset, first.duplicate) == (0, 1, False)
    assert (second.base_offset, second.last_offset, second.log_append_time_ms) == (2, 2, -1)
    assert log.log_end_offset == 3
    assert [(header.base_offset, header.leader_epoch) for header in headers(log)] == [(0, 0), (2, 1)]
    assert values(log) == [b"a", b"b", b"c"]


def test_offset_and_epoch_are_written_into_the_buffer_that_was_handed_in() -> None:
    log = open_log()
    append(log)
    batch = one()
    log.append_as_leader(memoryview(batch), 7, NOW_MS)
    assert read_header(batch)[:3] == (1, len(batch) - 12, 7)


@pytest.mark.parametrize(
    ("what", "batch", "code"),
    [
        ("no bytes", bytearray(), ErrorCode.INVALID_RECORD),
        ("half a header", one()[:40], ErrorCode.INVALID_RECORD),
        ("half a batch", one()[:-1], ErrorCode.INVALID_RECORD),
        ("two batches", one() + one(), ErrorCode.INVALID_RECORD),
        ("bytes behind it", one() + b"\0", ErrorCode.INVALID_RECORD),
        ("magic 1", patched(one(), 16, b"\1"), ErrorCode.INVALID_RECORD),
        ("magic 0, cut", patched(one(), 16, b"\0")[:34], ErrorCode.INVALID_RECORD),
        ("no length", patched(one(), 8, bytes(4)), ErrorCode.CORRUPT_MESSAGE),
        ("negative length", patched(one(), 8, b"\xff" * 4), ErrorCode.CORRUPT_MESSAGE),
        ("length within the header", patched(one(), 8, b"\0\0\0\x20"), ErrorCode.CORRUPT_MESSAGE),
        ("absurd length", patched(one(), 8, b"\x7f\xff\xff\xff"), ErrorCode.INVALID_RECORD),
        ("wrong CRC", patched(one(), 61, b"\x77", sign=False), ErrorCode.CORRUPT_MESSAGE),
        ("base offset", one(base_offset=3), ErrorCode.INVALID_RECORD),
        ("negative delta", patched(one(), 23, b"\xff" * 4), ErrorCode.INVALID_RECORD),
        ("no records", patched(one(), 57, bytes(4)), ErrorCode.INVALID_RECORD),
        ("count differs", patched(one(), 57, b"\0\0\0\2"), ErrorCode.INVALID_RECORD),
        ("control", one(control=True), ErrorCode.INVALID_RECORD),
        ("no sequence", one(producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD),
        ("codec 6", patched(one(), 21, b"\0\6"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ("broker's time", patched(one(), 21, b"\0\x08"), ErrorCode.INVALID_TIMESTAMP),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_batch_that_no_client_may_send_is_refused(what: str, batch: bytearray, code: ErrorCode) -> None:
    assert refusal(open_log(), batch) == code


def test_a_batch_above_max_message_bytes_is_refused() -> None:
    batch = build_batch([(None, bytes(500))], timestamp_ms=NOW_MS)
    size = len(batch)
    assert refusal(open_log(config=config(max_message_bytes=size)), batch) == ErrorCode.NONE
    assert refusal(open_log(config=config(max_message_bytes=size - 1)), batch) == ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(open_log(config=config(internal_segment_bytes=size)), batch) == ErrorCode.NONE
    assert refusal(open_log(config=config(internal_segment_bytes=size - 1)), batch) == ErrorCode.RECORD_LIST_TOO_LARGE


CODECS = [codec for codec in Compression if codec]


@pytest.mark.parametrize("changes", [{}, {"cleanup_policy": ("compact",)}, {"compression_type": "uncompressed"}])
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_record_of_a_compressed_batch_may_be_as_large_as_the_topic_says(
    codec: Compression, changes: dict[str, Any]
) -> None:
    records, body = [(b"k", b"v"), (b"k", bytes(500)), (b"k", b"v")], 508
    batch = build_batch(records, timestamp_ms=NOW_MS, compression=codec)
    for limit, code in ((body, ErrorCode.NONE), (body - 1, ErrorCode.INVALID_RECORD)):
        log = open_log(config=config(**changes, max_decompressed_message_bytes=limit))
        assert refusal(log, bytearray(batch)) == code


def test_a_record_of_an_uncompressed_batch_is_bounded_by_the_batch_alone() -> None:
    batch = build_batch([(b"k", bytes(500))], timestamp_ms=NOW_MS)
    for codec in ("producer", "gzip"):
        log = open_log(config=config(compression_type=codec, max_decompressed_message_bytes=10))
        assert refusal(log, bytearray(batch)) == ErrorCode.NONE


def test_a_record_that_is_too_large_is_refused_at_its_length() -> None:
    """What a small batch unpacks to is neither kept nor unpacked to its end."""
    batch = memoryview(build_batch([(b"k", bytes(64 << 20))], timestamp_ms=NOW_MS, compression=Compression.ZSTD))
    tracemalloc.start()
    try:
        with pytest.raises(BrokerError, match=r"max\.decompressed\.message\.bytes is 1000") as refused:
            prepare_in_thread(batch, config(cleanup_policy=("compact",), max_decompressed_message_bytes=1000), NOW_MS)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert peak_bytes < 1 << 20


def test_many_small_records_beside_the_bound_are_looked_at_in_a_thread() -> None:
    records = [(b"k", b"v")] * (WALKED_ON_LOOP_MAX + 1)
    batch = build_batch(records, timestamp_ms=NOW_MS, compression=Compression.ZSTD)
    changed = config(max_decompressed_message_bytes=1000, internal_segment_bytes=1 << 20)
    with pytest.raises(NotOnLoop):
        open_log(config=changed).append_as_leader(memoryview(bytearray(batch)), 0, NOW_MS)
    assert bytes(prepare_in_thread(memoryview(batch), changed, NOW_MS).batch) == bytes(batch)


@pytest.mark.parametrize(
    ("timestamp_ms", "code"),
    [
        (NOW_MS + 60, ErrorCode.NONE),
        (NOW_MS + 61, ErrorCode.INVALID_TIMESTAMP),
        (NOW_MS - 50, ErrorCode.NONE),
        (NOW_MS - 51, ErrorCode.INVALID_TIMESTAMP),
        (NO_TIMESTAMP, ErrorCode.NONE),
    ],
)
def test_timestamps_too_far_off_are_refused(timestamp_ms: int, code: ErrorCode) -> None:
    log = open_log(config=config(message_timestamp_before_max_ms=50, message_timestamp_after_max_ms=60))
    assert refusal(log, build_batch([(None, b"v")], timestamp_ms=timestamp_ms)) == code


def test_log_append_time_stamps_the_batch() -> None:
    log = open_log(config=config(message_timestamp_type="LogAppendTime"))
    appended = append(log, b"a", b"b", timestamp_ms=5)
    assert appended.log_append_time_ms == NOW_MS
    (header,) = headers(log)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in everything(log)] == [NOW_MS, NOW_MS]
    assert found_at(log, NOW_MS) == (0, NOW_MS, 0)


def test_a_topic_with_a_codec_of_its_own_stores_that() -> None:
    log = open_log(config=config(compression_type="gzip"))
    records = [Record(-1, NOW_MS + index, b"k", b"v%d" % index, [("h", b"x")]) for index in range(3)]
    append(log, b"before")
    log.append_as_leader(memoryview(build_batch(records, compression=Compression.ZSTD)), 4, NOW_MS)
    header = headers(log)[1]
    assert (header.codec, header.base_offset, header.leader_epoch) == (Compression.GZIP, 1, 4)
    assert [record.value for record in everything(log)[1:]] == [b"v0", b"v1", b"v2"]
    assert all(crc_is_valid(batch) for part in log.read(0, 9999).parts for _, batch in split_batches(part))


def test_the_producers_codec_is_kept_by_default() -> None:
    log = open_log()
    batch = build_batch([(b"k", b"v" * 99)], timestamp_ms=NOW_MS, compression=Compression.SNAPPY)
    log.append_as_leader(memoryview(batch), 0, NOW_MS)
    assert bytes(log.read(0, 9999).parts[0]) == batch


def test_compacted_topics_demand_keys() -> None:
    log = open_log(config=config(cleanup_policy=("compact",)))
    keyless = build_batch([(b"k", b"v"), (None, b"v")], timestamp_ms=NOW_MS, compression=Compression.LZ4)
    assert refusal(log, keyless) == ErrorCode.INVALID_RECORD
    append(log, b"with a key")
    assert log.log_end_offset == 1


def test_a_compacted_topic_refuses_records_that_cannot_be_read() -> None:
    log = open_log(config=config(cleanup_policy=("compact",)))
    garbage = patched(one(compression=Compression.GZIP), 61, b"\xff\xff")
    assert refusal(log, garbage) == ErrorCode.INVALID_RECORD


def test_the_broker_itself_may_write_control_batches_and_several_at_once() -> None:
    log = open_log(config=LARGE)
    both = one(control=True) + one()
    appended = log.append_as_leader(memoryview(both), 2, NOW_MS, Origin.COORDINATOR)
    assert (appended.base_offset, appended.last_offset) == (0, 1)
    assert [header.is_control for header in headers(log)] == [True, False]


def follow(log: Log, *batches: bytearray) -> int:
    return log.append_as_follower(memoryview(b"".join(batches)), NOW_MS).last_offset


def test_a_follower_takes_offsets_and_epochs_as_they_come() -> None:
    leader, follower = open_log(), open_log()
    append(leader, b"a", b"b", epoch=3)
    append(leader, b"c", epoch=5)
    follower.append_as_follower(leader.read(0, 9999).parts[0])
    assert everything(follower) == everything(leader)
    assert follower.epochs.entries == leader.epochs.entries == ((3, 0), (5, 2))


def test_a_follower_leaves_a_cut_batch_out_and_refuses_a_broken_one() -> None:
    log = open_log()
    first, second = one(), one(base_offset=1)
    assert follow(log, first, second[:-1]) == 0
    assert refusal_of(lambda: follow(log, patched(second, 61, b"\x77", sign=False))) == ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 1


def test_a_follower_refuses_what_it_has_already() -> None:
    log = open_log()
    follow(log, one())
    assert refusal_of(lambda: follow(log, one())) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert follow(log, one(base_offset=8)) == 8  # its leader's log was compacted


def refusal_of(call: object) -> ErrorCode:
    from kavka_broker.protocol.errors import BrokerError

    with pytest.raises(BrokerError) as caught:
        call()  # type: ignore[operator]
    return caught.value.code


def test_a_batch_with_the_leaders_time_comes_out_as_it_went_in() -> None:
    log = open_log(config=config(message_timestamp_type="LogAppendTime"))
    append(log, b"x", timestamp_ms=1)
    (record,) = read_records(log.read(0, 9999).parts[0])
    assert record.timestamp == NOW_MS
    assert headers(log)[0].attributes & LOG_APPEND_TIME_BIT
