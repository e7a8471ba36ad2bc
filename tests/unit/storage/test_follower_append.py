"""What a follower takes from its leader, and what it does not: the log grows by whole, sound batches or not at all."""

import pytest

from kavka_broker.core.partition.leader_epochs import EpochStart, LeaderEpochs
from kavka_broker.loop.slices import COST_PER_YIELD, at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.storage.epoch_check import HEADER_COST
from kavka_broker.storage.log import Log
from kavka_broker.storage.retention import delete_expired
from tests.support.sim_disk import DiskError
from tests.unit.storage.support import append, new_disk, open_log, values


def fetched(*values: bytes, base_offset: int = 0, epoch: int = 0) -> memoryview:
    return memoryview(build_batch([(None, value) for value in values], base_offset=base_offset, leader_epoch=epoch))


def refusal(log: Log, batches: bytes | memoryview) -> ErrorCode:
    before = (log.log_start_offset, log.log_end_offset, log.size_bytes)
    with pytest.raises(BrokerError) as caught:
        log.append_as_follower(memoryview(bytes(batches)))
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == before
    return caught.value.code


def test_a_leader_may_begin_in_the_middle_of_a_batch() -> None:
    """DeleteRecords puts it there; a follower that begins again at that offset gets the whole batch."""
    disk = new_disk()
    log = open_log(disk)
    log.start_at(2)
    log.append_as_follower(fetched(b"a", b"b", b"c", b"d", epoch=3))
    assert (log.log_start_offset, log.log_end_offset, log.epochs.entries) == (2, 4, ((3, 2),))
    assert values(log) == [b"c", b"d"]
    log.append_as_follower(fetched(b"e", base_offset=4, epoch=3))
    log.close()
    assert values(open_log(disk, recover=False, log_start_offset=2)) == [b"c", b"d", b"e"]


def test_a_log_that_begins_in_the_middle_of_a_batch_does_so_where_the_next_finds_no_room() -> None:
    disk = new_disk()
    log = open_log(disk)
    log.start_at(2)
    first, second = fetched(b"a", b"b", b"c", b"d"), fetched(bytes(1_000), base_offset=4)
    disk.space_bytes = len(first) + 500
    with pytest.raises(BrokerError, match="No space left"):
        log.append_as_follower(memoryview(bytes(first) + bytes(second)))
    assert (log.log_start_offset, log.log_end_offset) == (2, 4)


@pytest.mark.parametrize("base_offset", [1, 5])
def test_a_log_that_has_records_takes_none_again(base_offset: int) -> None:
    log = open_log()
    log.start_at(2)
    append(log, b"x")
    log.append_as_follower(fetched(b"y", base_offset=7))
    assert refusal(log, fetched(b"a", b"b", b"c", base_offset=base_offset)) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_nor_does_an_empty_one_that_ends_elsewhere() -> None:
    log = open_log()
    log.start_at(7)
    assert refusal(log, fetched(b"a", b"b")) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_batch_of_a_wrong_length_is_corrupt() -> None:
    """Its CRC does not cover it, and nothing can be found behind it."""
    log = open_log()
    batch = bytearray(fetched(b"a"))
    for length in (0, 40, 2**31 - 1, -1):
        batch[8:12] = length.to_bytes(4, "big", signed=True)
        assert refusal(log, bytes(batch)) == ErrorCode.CORRUPT_MESSAGE
    assert refusal(log, b"\0" * 10) == ErrorCode.CORRUPT_MESSAGE


def test_one_behind_a_sound_one_takes_it_along() -> None:
    log = open_log()
    torn = bytearray(fetched(b"b", base_offset=1))
    torn[8:12] = bytes(4)
    assert refusal(log, bytes(fetched(b"a")) + torn) == ErrorCode.CORRUPT_MESSAGE


def test_what_is_cut_at_the_end_is_left_out() -> None:
    log = open_log()
    log.append_as_follower(memoryview(bytes(fetched(b"a")) + bytes(fetched(b"b", base_offset=1))[:-1]))
    assert values(log) == [b"a"]


def test_a_batch_from_below_the_first_offset_is_refused() -> None:
    """No leader has one; an empty log would begin at an offset that no file can be named after."""
    log = open_log()
    with pytest.raises(BrokerError, match="spans -1 to 0"):
        log.append_as_follower(fetched(b"a", b"b", base_offset=-1))
    assert (log.log_start_offset, log.log_end_offset, len(log.segments)) == (0, 0, 1)


def test_epochs_that_are_another_logs_hold_up_one_fetch_only() -> None:
    """The file was exchanged while the broker was down. Its leader finds no divergence at such an epoch."""
    log = open_log()
    log.append_as_follower(fetched(b"a", epoch=3))
    log.append_as_follower(fetched(b"b", base_offset=1, epoch=3))
    log.epochs.take_over(LeaderEpochs([EpochStart(4, 1)]))
    with pytest.raises(BrokerError, match="the log is at epoch 4"):
        log.append_as_follower(fetched(b"c", base_offset=2, epoch=3))
    assert list(log.epochs.entries) == [EpochStart(3, 0)]
    log.append_as_follower(fetched(b"c", base_offset=2, epoch=3))
    assert log.log_end_offset == 3


@pytest.mark.parametrize("entries", [[EpochStart(9, 0)], [EpochStart(3, 0), EpochStart(9, 2)], [EpochStart(9, 7)]])
def test_epochs_that_the_leader_does_not_know_are_held_against_the_batches(entries: list[EpochStart]) -> None:
    """They are another log's, or of a reign that has written nothing."""
    log = open_log()
    log.append_as_follower(fetched(b"a", epoch=3))
    log.append_as_follower(fetched(b"b", base_offset=1, epoch=3))
    log.epochs.take_over(LeaderEpochs(entries))
    at_once(log.reader.doubt_epochs())
    assert list(log.epochs.entries) == [EpochStart(3, 0)]


def many_batches(count: int) -> Log:
    """A log of the batches of epoch 3, whose epoch file speaks of epoch 9."""
    log = open_log()
    for offset in range(count):
        log.append_as_follower(fetched(b"a", base_offset=offset, epoch=3))
    log.epochs.take_over(LeaderEpochs([EpochStart(9, 0)]))
    return log


def test_they_are_held_against_very_many_batches_in_pieces() -> None:
    log = many_batches(5 * COST_PER_YIELD // 2 // HEADER_COST)
    pieces = sum(1 for _ in log.reader.doubt_epochs())
    assert pieces == 2
    assert list(log.epochs.entries) == [EpochStart(3, 0)]


@pytest.mark.parametrize("change", ["cut", "closed", "grown", "trimmed"])
def test_what_the_batches_said_does_not_count_for_a_log_that_has_changed_meanwhile(change: str) -> None:
    log = many_batches(2 * COST_PER_YIELD // HEADER_COST)
    doubting = log.reader.doubt_epochs()
    next(doubting)
    match change:
        case "cut":
            log.truncate_to(1)
        case "closed":
            log.close()
        case "grown":
            log.epochs.assign(10, log.log_end_offset)
            append(log, epoch=10)
        case "trimmed":
            log.advance_start(log.log_end_offset)
            delete_expired(log, 0, log.log_end_offset)
    before = list(log.epochs.entries)
    assert list(doubting) == []
    assert list(log.epochs.entries) == before
    if change == "grown":
        at_once(log.reader.doubt_epochs())
        assert next(iter(log.epochs.entries)) == EpochStart(3, 0), "it may be doubted again"


def test_a_log_that_cannot_be_read_keeps_its_epochs_and_says_so() -> None:
    disk = new_disk()
    log = open_log(disk)
    log.append_as_follower(fetched(b"a", epoch=3))
    log.epochs.take_over(LeaderEpochs([EpochStart(9, 0)]))
    disk.errors.append(DiskError(frozenset({"read", "open"}), "/"))
    with pytest.raises(BrokerError) as refused:
        at_once(log.reader.doubt_epochs())
    assert refused.value.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR)
