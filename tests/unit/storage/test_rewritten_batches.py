"""Batches whose records the broker looks at: what a client says inside of them is judged as well."""

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import HEADER, HEADER_BYTES, BatchHeader, set_crc
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import Record, build_batch
from tests.unit.storage.support import NOW_MS, append, config, found_at, open_log, refusal, youngest

RECOMPRESSED = config(compression_type="zstd")
COMPACTED = config(cleanup_policy=("compact",))
DAY_MS = 86_400_000
BASE = 100  # deltas below zero are written as well


def lying(offsets: list[int], timestamps_ms: list[int] | None = None) -> bytearray:
    """Records with these offset deltas, behind a header that says that all is well."""
    stamps = timestamps_ms or [NOW_MS] * len(offsets)
    records = [Record(BASE + offset, stamp, b"k", b"v") for offset, stamp in zip(offsets, stamps, strict=True)]
    batch = build_batch(records, base_offset=BASE)
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


def test_a_search_by_time_that_meets_records_that_are_none_says_so() -> None:
    log = open_log()
    batch = build_batch([Record(0, NOW_MS, b"k", b"v")])
    batch[HEADER_BYTES:] = b"\xff" * (len(batch) - HEADER_BYTES)
    set_crc(batch)
    log.append_as_leader(memoryview(batch), 0, NOW_MS)
    with pytest.raises(BrokerError) as caught:
        found_at(log, NOW_MS)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(BrokerError) as caught:
        youngest(log)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
