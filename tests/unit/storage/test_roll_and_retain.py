"""When a segment is full, and when it goes."""

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.records.batch import NO_TIMESTAMP
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.storage.log import Log
from kavka_broker.storage.retention import delete_expired
from kavka_broker.storage.segment import OFFSETS_MAX
from tests.support.sim_disk import DiskError, SimDisk
from tests.unit.storage.support import DIRECTORY, NOW_MS, append, config, fill, new_disk, open_log, values


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_segment_is_rolled_by_its_size() -> None:
    log = open_log()
    fill(log, 11)
    assert bases(log) == [0, 5, 10]
    assert all(segment.size_bytes <= 1000 for segment in log.segments)


def test_a_segment_ends_by_the_time_of_its_records() -> None:
    log = open_log(config=config(segment_ms=1000))
    append(log, timestamp_ms=NOW_MS)
    append(log, timestamp_ms=NOW_MS + 1000)
    assert bases(log) == [0]
    append(log, timestamp_ms=NOW_MS + 1001)
    assert bases(log) == [0, 2]


def test_a_segment_ends_by_the_clock_where_records_have_no_time() -> None:
    log = open_log(config=config(segment_ms=1000))
    append(log, timestamp_ms=NO_TIMESTAMP)
    append(log, timestamp_ms=NO_TIMESTAMP, now_ms=NOW_MS + 1000)
    assert bases(log) == [0]
    append(log, timestamp_ms=NO_TIMESTAMP, now_ms=NOW_MS + 1001)
    assert bases(log) == [0, 2]


def test_a_segment_ends_when_an_index_is_full() -> None:
    log = open_log(config=LogConfig(index_interval_bytes=0, segment_index_bytes=40))
    fill(log, 20)
    assert len(log.segments) > 3
    assert all(len(segment.times) <= 3 for segment in log.segments)


@pytest.mark.parametrize(("offset", "base"), [(OFFSETS_MAX + 1, 1), (OFFSETS_MAX + 2, OFFSETS_MAX + 2)])
def test_a_segment_ends_when_offsets_no_longer_fit_its_index(offset: int, base: int) -> None:
    log = open_log(config=LogConfig())
    append(log)
    far = build_batch([(b"k", b"v")], base_offset=offset, leader_epoch=0, timestamp_ms=NOW_MS)
    log.append_as_follower(memoryview(far), NOW_MS)
    assert bases(log) == [0, base]


def test_a_change_of_config_counts_from_the_next_append() -> None:
    log = open_log(config=LogConfig())
    fill(log, 11)
    assert len(log.segments) == 1
    log.config = config()
    fill(log, 1)
    assert bases(log) == [0, 11]


def test_retention_by_time_deletes_whole_segments_that_are_over() -> None:
    log = open_log(config=config(retention_ms=1000))
    fill(log, 11)  # segments end at NOW_MS + 4, + 9, + 10
    assert delete_expired(log, NOW_MS + 1004, 11) == 0
    assert delete_expired(log, NOW_MS + 1005, 11) == 1
    assert (bases(log), log.log_start_offset) == ([5, 10], 5)


def test_retention_takes_the_active_segment_too() -> None:
    log = open_log(config=config(retention_ms=1000))
    fill(log, 3)
    assert delete_expired(log, NOW_MS + 5000, 3) == 1
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([3], 3, 3)
    assert delete_expired(log, NOW_MS + 5000, 3) == 0
    append(log, b"next")
    assert values(log) == [b"next"]


def test_retention_by_size_keeps_that_much() -> None:
    log = open_log(config=config(retention_bytes=1100, retention_ms=-1))
    fill(log, 16)
    size = log.size_bytes
    assert size > 2600
    assert delete_expired(log, NOW_MS, 16) == 1
    assert 1100 <= log.size_bytes < size


def test_nothing_above_the_high_watermark_goes() -> None:
    log = open_log(config=config(retention_ms=0))
    fill(log, 11)
    assert delete_expired(log, NOW_MS + 5000, 9) == 1
    assert bases(log) == [5, 10]


def test_a_compacted_log_loses_only_what_lies_below_its_start() -> None:
    log = open_log(config=config(retention_ms=0, cleanup_policy=("compact",)))
    fill(log, 11)
    assert delete_expired(log, NOW_MS + 5000, 11) == 0
    log.advance_start(7)
    assert delete_expired(log, NOW_MS + 5000, 11) == 1
    assert (bases(log), log.log_start_offset) == ([5, 10], 7)


def test_without_timestamps_the_file_says_how_old_it_is() -> None:
    disk = new_disk()
    log = open_log(disk, config=config(retention_ms=1000))
    append(log, timestamp_ms=NO_TIMESTAMP)
    assert delete_expired(log, NOW_MS + 1000, 1) == 0
    assert delete_expired(log, NOW_MS + 1001, 1) == 1


DAY_MS = 86_400_000


def last_entry_flipped(disk: SimDisk, bit: int) -> None:
    """Of the first segment's time index, in its timestamp."""
    path = f"{DIRECTORY}/{0:020d}.timeindex"
    disk.flip_bit(path, disk.size(path) - 12 + 7 - bit // 8, bit % 8)


@pytest.mark.parametrize("bit", range(34))
def test_a_damaged_time_index_neither_deletes_what_is_young_nor_keeps_what_is_old(bit: int) -> None:
    disk = new_disk()
    disk.now_ms = NOW_MS + 10
    log = open_log(disk, config=config(retention_ms=DAY_MS))
    fill(log, 11)
    log.close()
    last_entry_flipped(disk, bit)
    log = open_log(disk, config=config(retention_ms=DAY_MS), recover=False)
    assert log.segments[0].largest.timestamp_ms != NOW_MS + 4
    assert delete_expired(log, NOW_MS + DAY_MS, 11) == 0
    assert delete_expired(log, NOW_MS + DAY_MS + 100, 11) == 3


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_time_index_that_was_cut_deletes_nothing_that_is_young(kept: int) -> None:
    disk = new_disk()
    disk.now_ms = NOW_MS + 10 * DAY_MS
    log = open_log(disk, config=config(retention_ms=DAY_MS))
    for day in range(11):
        append(log, b"x" * 100, timestamp_ms=NOW_MS + day * DAY_MS, now_ms=disk.now_ms)
    log.close()
    path = f"{DIRECTORY}/{0:020d}.timeindex"
    disk.overwrite(path, disk.read_file(path)[: 12 * kept])
    log = open_log(disk, config=config(retention_ms=DAY_MS), recover=False)
    assert delete_expired(log, NOW_MS + 4 * DAY_MS, 11) == 0
    assert bases(log) == [0, 5, 10]


def test_a_segment_that_cannot_be_read_is_as_old_as_its_file() -> None:
    disk = new_disk()
    log = open_log(disk, config=config(retention_ms=1000))
    fill(log, 6)
    disk.errors.append(DiskError(frozenset({"read"}), DIRECTORY))
    assert delete_expired(log, NOW_MS + 1000, 6) == 0
    assert delete_expired(log, NOW_MS + 1001, 6) == 2


def test_how_old_a_segment_is_costs_one_look() -> None:
    disk = new_disk()
    log = open_log(disk, config=config(retention_ms=1000))
    fill(log, 6)
    assert delete_expired(log, NOW_MS, 5) == 0
    disk.errors.append(DiskError(frozenset({"read"}), DIRECTORY))
    assert delete_expired(log, NOW_MS + 1004, 5) == 0
    assert delete_expired(log, NOW_MS + 1005, 5) == 1


def test_deleted_files_are_renamed_first_and_removed_later() -> None:
    disk = new_disk()
    log = open_log(disk, config=config(retention_ms=0))
    fill(log, 6)
    delete_expired(log, NOW_MS + 5000, 6)
    left = [name for name in disk.names(log.directory) if name.endswith(".deleted")]
    assert f"{0:020d}.log.deleted" in left
    log.segments.discarded.remove()
    assert not [name for name in disk.names(log.directory) if name.endswith(".deleted")]


def test_the_producers_of_deleted_segments_stay_known() -> None:
    disk = new_disk()
    log = open_log(disk, config=config(retention_ms=0))
    append(log, producer_id=4, producer_epoch=0, base_sequence=0)
    delete_expired(log, NOW_MS + 5000, 1)
    log.close()
    log = open_log(disk, config=config(retention_ms=0), recover=False)
    assert append(log, producer_id=4, producer_epoch=0, base_sequence=0).duplicate
