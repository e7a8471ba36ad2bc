"""Reading: whole batches, within bounds, from wherever; records by time."""

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import read_header, split_batches
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import Record, build_batch
from kavka_broker.storage.log import Chunk, Log
from kavka_broker.storage.log_reading import READERS_MAX
from tests.unit.storage.support import NOW_MS, append, config, everything, fill, found_at, new_disk, open_log, youngest

BATCH_BYTES = 172  # what `fill` writes for each of the first ten


def offsets(chunk: Chunk) -> list[int]:
    return [header.base_offset for part in chunk.parts for header, _ in split_batches(part)]


def filled(count: int = 10, **changes: object) -> Log:
    log = open_log(config=config(**changes))
    fill(log, count)
    return log


def test_batches_have_the_size_that_the_tests_count_on() -> None:
    assert offsets(filled().read(0, BATCH_BYTES)) == [0]
    assert filled().read(0, BATCH_BYTES).size_bytes == BATCH_BYTES


def test_only_whole_batches_come_up_to_the_limit() -> None:
    log = filled()
    assert offsets(log.read(0, 3 * BATCH_BYTES)) == [0, 1, 2]
    assert offsets(log.read(0, 4 * BATCH_BYTES - 1)) == [0, 1, 2]
    assert log.read(1, 2 * BATCH_BYTES).size_bytes == 2 * BATCH_BYTES


def test_one_batch_comes_even_where_it_is_too_large_but_only_if_asked() -> None:
    log = filled()
    assert offsets(log.read(2, 10)) == [2]
    assert log.read(2, 10, at_least_one=False) == Chunk([], 0)
    assert offsets(log.read(2, 0)) == [2]


def test_a_read_inside_a_batch_gets_the_batch() -> None:
    log = open_log()
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    assert offsets(log.read(2, 9999)) == [0, 3]
    assert [record.offset for record in everything(log)] == [0, 1, 2, 3]


def test_nothing_at_or_above_the_upper_offset() -> None:
    log = filled(20)
    assert offsets(log.read(0, 9999, upper_offset=3)) == [0, 1, 2]
    assert log.read(3, 9999, upper_offset=3) == Chunk([], 0)
    assert log.read(20, 9999) == Chunk([], 0)
    assert offsets(log.read(6, 9999, upper_offset=8)) == [6, 7]
    assert offsets(log.read(6, BATCH_BYTES, upper_offset=8)) == [6]
    assert offsets(log.read(0, 9999, upper_offset=99)) == [0, 1, 2, 3, 4]


def test_a_chunk_ends_with_its_segment_and_the_next_read_goes_on() -> None:
    log = filled(12)
    assert [segment.base_offset for segment in log.segments] == [0, 5, 10]
    assert offsets(log.read(3, 9999)) == [3, 4]
    assert offsets(log.read(5, 9999)) == [5, 6, 7, 8, 9]
    assert offsets(log.read(10, 9999)) == [10, 11]


def test_a_reader_at_the_end_goes_on_after_a_roll() -> None:
    log = filled(5)
    assert offsets(log.read(0, 9999)) == [0, 1, 2, 3, 4]
    fill(log, 1)
    assert len(log.segments) == 2
    assert offsets(log.read(5, 9999)) == [5]


@pytest.mark.parametrize("offset", [-1, 11])
def test_a_read_outside_the_log_is_out_of_range(offset: int) -> None:
    with pytest.raises(BrokerError) as caught:
        filled().read(offset, 100)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_many_readers_at_many_places() -> None:
    log = filled(40)
    for _ in range(2):
        for start in range(40):
            assert offsets(log.read(start, BATCH_BYTES))[0] == start
    assert len(log.reader.places) <= READERS_MAX


def test_a_chunk_stays_readable_when_the_log_is_cut_and_written_anew() -> None:
    log = filled()
    chunk = log.read(2, 9999)
    before = bytes(chunk.parts[0])
    log.truncate_to(2)
    append(log, b"something else")
    assert bytes(chunk.parts[0]) == before


def test_holes_are_stepped_over() -> None:
    log = open_log()
    for base_offset in (0, 7, 9):
        log.append_as_follower(memoryview(build_batch([(b"k", b"v")], base_offset=base_offset)), NOW_MS)
    assert offsets(log.read(1, 9999)) == [7, 9]
    assert offsets(log.read(8, 9999)) == [9]


def test_a_hole_at_the_end_of_a_segment() -> None:
    log = open_log()
    append(log)
    log.state.end_offset = 5  # as if compaction had taken 1 to 4
    log.roll(NOW_MS)
    append(log, b"five")
    assert offsets(log.read(2, 9999)) == [5]


def test_an_offset_is_found_by_time() -> None:
    log = filled(20)
    assert found_at(log, NOW_MS) == (0, NOW_MS, 0)
    assert found_at(log, 0) == (0, NOW_MS, 0)
    for index in range(20):
        assert found_at(log, NOW_MS + index) == (index, NOW_MS + index, 0)
    assert found_at(log, NOW_MS + 20) is None
    assert youngest(log) == (19, NOW_MS + 19, 0)


def test_offsets_are_found_by_time_inside_compressed_batches_out_of_order() -> None:
    log = open_log()
    times = [50, 10, 99, 70, 99]
    records = [Record(-1, time, b"k", b"v") for time in times]
    log.append_as_leader(memoryview(build_batch(records, compression=Compression.GZIP)), 6, NOW_MS)
    assert found_at(log, 51) == (2, 99, 6)
    assert found_at(log, 10) == (0, 50, 6)
    assert youngest(log) == (2, 99, 6)


def test_no_offset_below_the_start_of_the_log_is_found_by_time() -> None:
    log = filled(20)
    log.advance_start(8)
    assert found_at(log, 0) == (8, NOW_MS + 8, 0)


def test_no_offset_is_found_by_time_without_records() -> None:
    log = open_log()
    assert found_at(log, 0) is None
    assert youngest(log) is None


def test_offsets_are_found_by_time_after_a_start() -> None:
    disk = new_disk()
    log = open_log(disk)
    fill(log, 13)
    log.close()
    log = open_log(disk, recover=False)
    assert youngest(log) == (12, NOW_MS + 12, 0)
    assert [found_at(log, NOW_MS + index) for index in (3, 11)] == [(3, NOW_MS + 3, 0), (11, NOW_MS + 11, 0)]
    assert read_header(log.read(12, 1).parts[0]).base_offset == 12
