"""A log with gaps between its batches: a cleaned one, and the replica of one that has never been cleaned itself."""

from dataclasses import replace

import pytest

from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.storage.log import Log
from tests.unit.storage.cleaning import COMPACTED, clean, disk_of, put, roll
from tests.unit.storage.support import NOW_MS, SMALL, everything, found_at, new_disk, open_log

EPOCHS = 4


def cleaned() -> Log:
    """Of 4 epochs with 10 records each, mostly of one key: gaps within its segments. It ends at 42."""
    log = open_log(config=replace(COMPACTED, internal_segment_bytes=16_000))
    for number in range(10 * EPOCHS):
        key = "often" if number % 10 else f"once {number}"
        put(log, (key, "x" * 90), epoch=number // 10, timestamp_ms=NOW_MS + number)
    roll(log)
    put(log, ("last", "1"), epoch=EPOCHS, timestamp_ms=NOW_MS + 40)
    clean(log)
    put(log, ("last", "2"), epoch=EPOCHS, timestamp_ms=NOW_MS + 41)
    return log


OFFSETS = [0, 10, 20, 30, 39, 40, 41]


def replica_of(leader: Log, segment_bytes: int) -> Log:
    """A follower that has fetched one batch after the other."""
    follower = open_log(new_disk(), replace(SMALL, internal_segment_bytes=segment_bytes))
    while follower.log_end_offset < leader.log_end_offset:
        for part in leader.read(follower.log_end_offset, 1).parts:
            follower.append_as_follower(part, NOW_MS)
    return follower


def offsets(log: Log) -> list[int]:
    return [record.offset for record in everything(log)]


def test_the_log_has_gaps() -> None:
    assert offsets(cleaned()) == OFFSETS


@pytest.mark.parametrize("segment_bytes", [200, 350, 500, 4000])
@pytest.mark.parametrize("recover", [False, True])
def test_a_replica_of_a_cleaned_log_is_not_damaged_when_it_opens(segment_bytes: int, recover: bool) -> None:
    """It never was cleaned itself, and its topic deletes by now: nothing says that it has gaps."""
    follower = replica_of(cleaned(), segment_bytes)
    assert offsets(follower) == OFFSETS
    count = len(follower.segments)
    if not recover:
        follower.close()
    opened = open_log(disk_of(follower), follower.config, recover=recover, recovery_point=42 * (not recover))
    assert (opened.damage, offsets(opened), opened.log_end_offset) == ("", OFFSETS, 42)
    assert len(opened.segments) == count


@pytest.mark.parametrize("segment_bytes", [200, 500, 4000])
@pytest.mark.parametrize("is_replica", [False, True])
def test_what_is_read_in_a_gap_is_the_next_record(segment_bytes: int, is_replica: bool) -> None:
    log = replica_of(cleaned(), segment_bytes) if is_replica else cleaned()
    for offset in range(log.log_end_offset):
        expected = next(one for one in OFFSETS if one >= offset)
        first = next(split_batches(log.read(offset, 1).parts[0]))[0]
        assert first.last_offset == expected, offset
        found = found_at(log, NOW_MS + offset)
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (expected, NOW_MS + expected)


@pytest.mark.parametrize("is_replica", [False, True])
def test_an_epoch_ends_where_the_next_one_began_whatever_of_it_is_left(is_replica: bool) -> None:
    """As the leader says it, the replica does: where nothing of an epoch's beginning is left, it is the same there."""
    leader = cleaned()
    log = replica_of(leader, 350) if is_replica else leader
    ends = [log.epoch_end_offset(epoch) for epoch in range(EPOCHS + 1)]
    assert [(one.epoch, one.end_offset) for one in ends] == [(0, 10), (1, 20), (2, 30), (3, 40), (4, 42)]


@pytest.mark.parametrize("segment_bytes", [200, 350, 500, 4000])
def test_a_follower_that_is_cut_in_a_gap_takes_the_rest_again(segment_bytes: int) -> None:
    leader = cleaned()
    for offset in range(leader.log_end_offset):
        follower = replica_of(leader, segment_bytes)
        follower.flush()
        follower.truncate_to(offset)
        assert follower.recovery_point == follower.log_end_offset <= offset
        assert offsets(follower) == [one for one in OFFSETS if one < follower.log_end_offset]
        while follower.log_end_offset < leader.log_end_offset:
            for part in leader.read(follower.log_end_offset, 1).parts:
                follower.append_as_follower(part, NOW_MS)
        assert offsets(follower) == OFFSETS
        end, disk = follower.log_end_offset, disk_of(follower)
        follower.close()
        opened = open_log(disk, follower.config, recover=False, recovery_point=end)
        assert (opened.damage, offsets(opened)) == ("", OFFSETS)


def test_a_gap_wider_than_an_index_can_say_is_between_two_segments() -> None:
    leader = cleaned()
    follower = replica_of(leader, 4000)
    far = follower.log_end_offset + 2**31 + 5
    other = open_log(new_disk(), SMALL, recovery_point=0)
    other.start_at(far)
    put(other, ("far", "1"), epoch=EPOCHS)
    follower.append_as_follower(other.read(far, 1).parts[0], NOW_MS)
    assert follower.segments[-1].base_offset == far
    assert offsets(follower) == [*OFFSETS, far]


@pytest.mark.parametrize("size_bytes", [0, None])
def test_what_a_crash_takes_between_two_segments_is_no_gap(size_bytes: int | None) -> None:
    """Of a segment that was never synced all is gone, or all behind its first batch; the next one is whole."""
    log = open_log(config=replace(COMPACTED, internal_segment_bytes=400))
    for number in range(12):
        put(log, (f"key {number}", "x" * 90), timestamp_ms=NOW_MS + number)
    lost, disk = log.segments[1], disk_of(log)
    first = next(lost.sound_batches())[1]
    kept_bytes = first.size_bytes if size_bytes is None else size_bytes
    disk.cut_short(lost.file.path, kept_bytes)
    opened = open_log(disk, log.config, recover=True)
    end_offset = lost.base_offset + (first.last_offset_delta + 1 if kept_bytes else 0)
    assert (opened.damage, opened.log_end_offset) == ("", end_offset)
    assert offsets(opened) == list(range(end_offset))
