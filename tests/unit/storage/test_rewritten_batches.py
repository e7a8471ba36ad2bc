"""Batches whose records the broker looks at: what a client says inside of them is judged as well."""

import tracemalloc
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import HEADER, HEADER_BYTES, BatchHeader, crc_is_valid, read_header, set_crc
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import Record, build_batch, read_records
from kavka_broker.storage.batch_check import (
    ON_LOOP_BYTES_MAX,
    ON_LOOP_RECORDS_MAX,
    UNPACKED_ON_LOOP_BYTES_MAX,
    NotOnLoop,
    prepare_in_thread,
)
from kavka_broker.storage.log import Origin
from kavka_broker.storage.record_check import WALKED_ON_LOOP_MAX, RecordsRefused
from tests.unit.storage.support import NOW_MS, append, config, found_at, open_log, refusal, youngest

RECOMPRESSED = config(compression_type="zstd")
COMPACTED = config(cleanup_policy=("compact",))
DAY_MS = 86_400_000
BASE = 100  # deltas below zero are written as well


def lying(
    offsets: list[int], timestamps_ms: list[int] | None = None, codec: Compression = Compression.NONE
) -> bytearray:
    """Records with these offset deltas, behind a header that says that all is well."""
    stamps = timestamps_ms or [NOW_MS] * len(offsets)
    records = [Record(BASE + offset, stamp, b"k", b"v") for offset, stamp in zip(offsets, stamps, strict=True)]
    batch = build_batch(records, base_offset=BASE, compression=codec)
    header = BatchHeader._make(HEADER.unpack_from(batch))._replace(
        base_offset=0, last_offset_delta=len(offsets) - 1, max_timestamp=NOW_MS
    )
    HEADER.pack_into(batch, 0, *header)
    set_crc(batch)
    return batch


@pytest.mark.parametrize("offsets", [[0, -7], [0, 0], [0, 2], [1, 2], [1, 0]])
@pytest.mark.parametrize("changes", [RECOMPRESSED, COMPACTED], ids=["recompressed", "compacted"])
def test_offsets_inside_a_batch_go_up_by_one(offsets: list[int], changes: object) -> None:
    """The end of the log follows from them: a negative one would move it back over what is written."""
    log = open_log(config=changes)  # type: ignore[arg-type]
    for _ in range(9):
        append(log, b"before")
    assert refusal(log, lying(offsets)) == ErrorCode.INVALID_RECORD
    assert refusal(log, lying([0, 1])) == ErrorCode.NONE
    assert log.log_end_offset == 11


@pytest.mark.parametrize("offsets", [[0, -7], [0, 0], [0, 2], [1, 2], [1, 0], [*range(64), *range(64)]])
@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.name)
def test_offsets_inside_a_compressed_batch_go_up_by_one(offsets: list[int], codec: Compression) -> None:
    """Those of an uncompressed one are the leader's, whatever the records say: as Apache Kafka has it."""
    log = open_log(config=config(internal_segment_bytes=10_000))
    expected = ErrorCode.INVALID_RECORD if codec else ErrorCode.NONE
    assert refusal(log, lying(offsets, codec=codec)) == expected
    assert log.log_end_offset == (0 if codec else len(offsets))
    assert refusal(log, lying([0, 1], codec=codec)) == ErrorCode.NONE


def test_the_first_record_of_another_offset_is_named() -> None:
    with pytest.raises(RecordsRefused, match="record 2 of the batch has the offset delta 5") as refused:
        open_log().append_as_leader(memoryview(lying([0, 1, 5, 7], codec=Compression.ZSTD)), 0, NOW_MS)
    assert [index for index, _ in refused.value.records] == [2]


def test_a_time_out_of_bounds_is_told_before_an_offset() -> None:
    batch = lying([0, 2], [NOW_MS, NOW_MS + DAY_MS], codec=Compression.LZ4)
    assert refusal(open_log(), batch) == ErrorCode.INVALID_TIMESTAMP


def test_which_of_many_records_has_another_offset_is_found_in_a_thread() -> None:
    log, offsets = open_log(config=PLAIN), [*range(2 * WALKED_ON_LOOP_MAX), 7]
    batch = lying(offsets, codec=Compression.ZSTD)
    with pytest.raises(NotOnLoop):
        log.append_as_leader(memoryview(bytearray(batch)), 0, NOW_MS)
    with pytest.raises(BrokerError, match="offset delta 7"):
        prepare_in_thread(memoryview(batch), log.config, NOW_MS)


def test_timestamps_inside_a_batch_are_held_to_the_bounds() -> None:
    log = open_log(config=RECOMPRESSED)
    assert refusal(log, lying([0, 1], [NOW_MS, NOW_MS + DAY_MS])) == ErrorCode.INVALID_TIMESTAMP
    assert refusal(log, lying([0, 1], [NOW_MS, 2**62])) == ErrorCode.INVALID_TIMESTAMP
    assert refusal(log, lying([0, 1], [NOW_MS, NOW_MS])) == ErrorCode.NONE


def test_a_timestamp_beyond_64_bits_is_refused_where_the_broker_sets_the_time() -> None:
    log = open_log(config=config(compression_type="zstd", message_timestamp_type="LogAppendTime"))
    batch = lying([0, 1], [NOW_MS, NOW_MS + DAY_MS])
    header = BatchHeader._make(HEADER.unpack_from(batch))._replace(base_timestamp=2**63 - 1)
    HEADER.pack_into(batch, 0, *header)
    set_crc(batch)
    assert refusal(log, batch) == ErrorCode.INVALID_RECORD


def test_a_batch_that_grows_beyond_the_limit_is_refused() -> None:
    packed = build_batch([Record(0, NOW_MS, b"k", b"v" * 5000)], compression=Compression.GZIP)
    log = open_log(
        config=config(compression_type="uncompressed", max_message_bytes=1000, internal_segment_bytes=100_000)
    )
    assert len(packed) < 1000
    assert refusal(log, packed) == ErrorCode.MESSAGE_TOO_LARGE


def test_another_codec_keeps_everything_else() -> None:
    log = open_log(config=config(compression_type="gzip"))
    records = [Record(0, NOW_MS - 5, b"k", b"v", [("h", None)]), Record(1, NOW_MS, None, b"w")]
    batch = build_batch(records, producer_id=4, producer_epoch=2, base_sequence=0, leader_epoch=8)
    old = BatchHeader._make(HEADER.unpack_from(batch))
    log.append_as_leader(memoryview(batch), 8, NOW_MS)
    stored = log.read(0, 9999).parts[0]
    new = BatchHeader._make(HEADER.unpack_from(stored))
    assert (read_records(stored), new.codec) == (records, Compression.GZIP)
    assert new._replace(length=0, crc=0, attributes=0) == old._replace(length=0, crc=0, attributes=0)
    assert crc_is_valid(stored)


def test_a_header_that_understates_the_time_is_put_right_by_another_codec() -> None:
    log = open_log(config=RECOMPRESSED)
    log.append_as_leader(memoryview(lying([0, 1], [NOW_MS, NOW_MS + 5])), 0, NOW_MS)
    assert youngest(log) == (1, NOW_MS + 5, 0)


LARGE = config(compression_type="zstd", cleanup_policy=("compact",), internal_segment_bytes=10_000_000)
MANY = [(b"k%d" % index, b"v" * 100) for index in range(3 * ON_LOOP_RECORDS_MAX)]


def bomb() -> bytearray:
    """Some hundred bytes, which unpack to many megabytes: of one record."""
    return build_batch([(b"k", bytes(32 << 20))], timestamp_ms=NOW_MS, compression=Compression.GZIP)


@pytest.mark.parametrize(
    "batch",
    [
        build_batch(MANY, timestamp_ms=NOW_MS),
        build_batch([(b"k", b"")] * (ON_LOOP_RECORDS_MAX + 1), timestamp_ms=NOW_MS),
        build_batch([(b"k", bytes(ON_LOOP_BYTES_MAX))], timestamp_ms=NOW_MS, compression=Compression.LZ4),
        bomb(),
    ],
    ids=["large", "many", "unpacks", "bomb"],
)
@pytest.mark.parametrize("changes", [RECOMPRESSED, COMPACTED], ids=["recompressed", "compacted"])
def test_what_takes_long_is_not_done_on_the_loop(changes: LogConfig, batch: bytearray) -> None:
    log = open_log(config=replace(changes, max_message_bytes=10_000_000, internal_segment_bytes=10_000_000))
    with pytest.raises(NotOnLoop):
        log.append_as_leader(memoryview(bytearray(batch)), 0, NOW_MS)
    assert log.log_end_offset == 0
    given = bytes(batch)
    prepared = prepare_in_thread(memoryview(batch), log.config, NOW_MS)
    assert bytes(batch) == given
    appended = log.append_prepared(prepared, 3, NOW_MS)
    assert (appended.base_offset, log.log_end_offset) == (0, appended.last_offset + 1)
    stored = log.read(0, 1 << 30).parts[0]
    assert read_records(stored) == read_records(batch)
    assert crc_is_valid(stored)
    assert BatchHeader._make(HEADER.unpack_from(stored)).leader_epoch == 3


PLAIN = config(max_message_bytes=10_000_000, internal_segment_bytes=10_000_000)


@pytest.mark.parametrize("whose_time", ["CreateTime", "LogAppendTime"])
def test_many_records_alike_are_judged_on_the_loop(whose_time: str) -> None:
    log = open_log(config=replace(PLAIN, message_timestamp_type=whose_time))
    for _ in ("first of the log", "ordinary"):
        batch = build_batch([(None, bytes(100))] * 9000, timestamp_ms=NOW_MS)
        log.append_as_leader(memoryview(batch), 0, NOW_MS)
    assert log.log_end_offset == 18_000


def test_packed_records_are_judged_on_the_loop_up_to_some_bytes() -> None:
    log = open_log(config=PLAIN)
    for value_bytes, is_on_loop in ((90_000, True), (2 * UNPACKED_ON_LOOP_BYTES_MAX, False)):
        batch = build_batch([(b"k", bytes(value_bytes))], timestamp_ms=NOW_MS, compression=Compression.LZ4)
        with nullcontext() if is_on_loop else pytest.raises(NotOnLoop):
            log.append_as_leader(memoryview(batch), 0, NOW_MS)
    assert log.log_end_offset == 1


@pytest.mark.parametrize(
    ("records", "code"),
    [
        ([Record(-1, NOW_MS, None, bytes(90 + i % 3)) for i in range(2 * WALKED_ON_LOOP_MAX)], ErrorCode.NONE),
        ([Record(-1, NOW_MS + DAY_MS, None, b"v" * 100)] * (2 * WALKED_ON_LOOP_MAX), ErrorCode.INVALID_TIMESTAMP),
        ([Record(-1, NOW_MS, b"k", b"v", [("h", None)] * WALKED_ON_LOOP_MAX)], ErrorCode.NONE),
    ],
    ids=["of many sizes", "untimely", "with many headers"],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_what_takes_many_steps_is_judged_in_a_thread(records: list[Record], code: ErrorCode, is_first: bool) -> None:
    log = open_log(config=PLAIN)
    if not is_first:
        append(log, b"before")
    batch = build_batch(records)
    with pytest.raises(NotOnLoop):
        log.append_as_leader(memoryview(bytearray(batch)), 0, NOW_MS)
    if code != ErrorCode.NONE:
        with pytest.raises(BrokerError) as refused:
            prepare_in_thread(memoryview(batch), log.config, NOW_MS)
        assert refused.value.code == code
        return
    prepared = prepare_in_thread(memoryview(batch), log.config, NOW_MS)
    assert log.append_prepared(prepared, 0, NOW_MS).last_offset == len(records) - is_first


def test_keys_are_looked_at_in_the_memory_of_some_pieces() -> None:
    batch = bomb()
    tracemalloc.start()
    try:
        prepare_in_thread(memoryview(batch), COMPACTED, NOW_MS)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1 << 20


@pytest.mark.parametrize(("codec", "outcome"), [("zstd", nullcontext()), ("uncompressed", pytest.raises(BrokerError))])
def test_a_batch_is_packed_again_in_the_memory_of_some_pieces(codec: str, outcome: Any) -> None:
    """Memory tells how long other threads wait: to join what a bomb holds is one call, in which none of them runs."""
    batch = bytearray(build_batch([Record(0, NOW_MS, b"k", bytes(16 << 20))], compression=Compression.GZIP))
    tracemalloc.start()
    try:
        with outcome as refused:
            prepare_in_thread(memoryview(batch), config(compression_type=codec), NOW_MS)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 3 << 20, "some pieces, and what is packed, up to max.message.bytes"
    assert refused is None or refused.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_what_was_made_ready_for_another_configuration_is_not_written() -> None:
    log = open_log(config=LARGE)
    prepared = prepare_in_thread(memoryview(build_batch(MANY, timestamp_ms=NOW_MS)), log.config, NOW_MS)
    log.config = replace(LARGE, compression_type="lz4")
    with pytest.raises(NotOnLoop):
        log.append_prepared(prepared, 0, NOW_MS)
    assert log.log_end_offset == 0


def test_the_time_of_a_batch_that_was_made_ready_is_that_of_its_append() -> None:
    log = open_log(config=replace(LARGE, message_timestamp_type="LogAppendTime"))
    prepared = prepare_in_thread(memoryview(build_batch(MANY, timestamp_ms=NOW_MS)), log.config, NOW_MS)
    assert log.append_prepared(prepared, 0, NOW_MS + 50).log_append_time_ms == NOW_MS + 50


def test_the_brokers_own_records_have_keys_and_are_not_looked_at() -> None:
    log = open_log(config=replace(COMPACTED, internal_segment_bytes=10_000_000))
    batch = build_batch(MANY, timestamp_ms=NOW_MS)
    assert log.append_as_leader(memoryview(batch), 0, NOW_MS, Origin.COORDINATOR).last_offset == len(MANY) - 1


def test_the_brokers_own_records_are_as_large_and_as_packed_as_the_topic_says() -> None:
    batch = build_batch(MANY, timestamp_ms=NOW_MS)
    log = open_log(config=replace(LARGE, max_message_bytes=len(batch) - 1))
    with pytest.raises(BrokerError) as caught:
        log.append_as_leader(memoryview(batch), 0, NOW_MS, Origin.COORDINATOR)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    for wanted, written in (
        ("uncompressed", Compression.NONE),
        ("producer", Compression.NONE),
        ("gzip", Compression.GZIP),
    ):
        log = open_log(config=replace(LARGE, compression_type=wanted))
        log.append_as_leader(memoryview(bytearray(batch)), 0, NOW_MS, Origin.COORDINATOR)
        stored = bytes(log.read(0, len(batch) + 1).parts[0])
        assert read_header(stored).codec == written
        assert len(read_records(stored)) == len(MANY)
    log = open_log(config=replace(LARGE, message_timestamp_type="LogAppendTime"))
    appended = log.append_as_leader(memoryview(bytearray(batch)), 0, NOW_MS + 50, Origin.COORDINATOR)
    assert appended.log_append_time_ms == NOW_MS + 50


def test_a_search_by_time_that_meets_records_that_are_none_says_so() -> None:
    log = open_log()
    batch = build_batch([Record(0, NOW_MS, b"k", b"v")])
    batch[HEADER_BYTES:] = b"\xff" * (len(batch) - HEADER_BYTES)
    set_crc(batch)
    log.append_as_leader(memoryview(batch), 0, NOW_MS, Origin.COORDINATOR)
    with pytest.raises(BrokerError) as caught:
        found_at(log, NOW_MS)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(BrokerError) as caught:
        youngest(log)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
