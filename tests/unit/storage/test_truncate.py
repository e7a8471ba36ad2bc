"""Cutting a log off at its end, as a follower, and starting it again."""

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from tests.unit.storage.support import NOW_MS, append, fill, new_disk, open_log, values, youngest


def test_a_cut_inside_the_active_segment_keeps_the_others() -> None:
    log = open_log()
    fill(log, 12)
    assert log.truncate_to(11)
    assert (log.log_end_offset, len(log.segments)) == (11, 3)
    append(log, b"new")
    assert values(log)[10:] == [b"10" + b"x" * 100, b"new"]


def test_a_cut_across_segments_drops_those_behind_it() -> None:
    log = open_log()
    fill(log, 12)
    assert log.truncate_to(7)
    assert [segment.base_offset for segment in log.segments] == [0, 5]
    fill(log, 1)
    assert len(values(log)) == 8


def test_the_whole_batch_goes() -> None:
    log = open_log()
    append(log, b"a")
    append(log, b"b", b"c", b"d")
    assert log.truncate_to(2)
    assert log.log_end_offset == 1


def test_below_the_start_within_its_batch() -> None:
    log = open_log()
    append(log, b"a", b"b", b"c", b"d")
    log.advance_start(2)
    assert log.truncate_to(3)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    append(log, b"new")
    assert values(log) == [b"new"]


def test_a_cut_at_the_end_or_beyond_changes_nothing() -> None:
    log = open_log()
    fill(log, 3)
    assert not log.truncate_to(3)
    assert not log.truncate_to(99)
    assert log.log_end_offset == 3


def test_a_cut_at_0_leaves_an_empty_log() -> None:
    log = open_log()
    fill(log, 12)
    assert log.truncate_to(0)
    assert (log.log_end_offset, log.size_bytes) == (0, 0)
    append(log, b"new")
    assert values(log) == [b"new"]


def test_below_the_first_segment_starts_anew() -> None:
    log = open_log()
    log.start_at(100)
    append(log, b"a")
    assert log.truncate_to(40)
    assert (log.log_start_offset, log.log_end_offset) == (40, 40)
    append(log, b"b")
    assert values(log) == [b"b"]


def test_start_at_forgets_everything() -> None:
    disk = new_disk()
    log = open_log(disk)
    append(log, epoch=3, producer_id=1, producer_epoch=0, base_sequence=0)
    log.start_at(500)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (500, 500, 0)
    assert log.epochs.entries == ()
    assert len(log.producers) == 0
    append(log, b"at 500")
    log.close()
    log = open_log(disk, recover=False, log_start_offset=500)
    assert (log.log_start_offset, log.log_end_offset, values(log)) == (500, 501, [b"at 500"])


def test_epochs_and_producers_follow() -> None:
    log = open_log()
    for epoch in range(6):
        append(log, epoch=epoch, producer_id=1, producer_epoch=0, base_sequence=epoch)
    log.truncate_to(3)
    assert log.epochs.entries == ((0, 0), (1, 1), (2, 2))
    assert append(log, epoch=9, producer_id=1, producer_epoch=0, base_sequence=2).duplicate
    append(log, epoch=9, producer_id=1, producer_epoch=0, base_sequence=3)
    assert log.epochs.entries[-1] == (9, 3)


def test_largest_timestamp_follows() -> None:
    log = open_log()
    fill(log, 12)
    log.truncate_to(8)
    assert youngest(log) == (7, NOW_MS + 7, 0)


def test_the_recovery_point_goes_back_before_anything_is_cut() -> None:
    log = open_log()
    fill(log, 12)
    log.flush()
    seen = []
    log.durability.on_recovery_point_lowered = lambda: seen.append((log.recovery_point, log.log_end_offset))
    log.truncate_to(7)
    assert seen == [(7, 12)]
    assert log.recovery_point == 7


def test_a_flush_that_began_before_a_truncation_promises_nothing() -> None:
    log = open_log()
    fill(log, 4)
    sync = log.segments[0].sync

    def cut_meanwhile() -> None:
        sync()
        log.truncate_to(2)
        fill(log, 5)

    object.__setattr__(log.durability, "_sync", lambda segments, has_indexes: cut_meanwhile())
    log.flush()
    assert log.recovery_point <= 2


def test_the_start_of_a_log_moves_forward_only() -> None:
    log = open_log()
    fill(log, 12)
    assert log.advance_start(6)
    assert not log.advance_start(6)
    assert not log.advance_start(2)
    assert log.log_start_offset == 6
    with pytest.raises(BrokerError) as caught:
        log.read(5, 100)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(6, 100).size_bytes
    with pytest.raises(BrokerError):
        log.advance_start(13)
