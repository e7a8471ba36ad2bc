"""The epoch file of another partition in the place of a log's own: the batches say which epochs there are."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.storage import batch_walk, epoch_check
from kavka_broker.storage.checkpoints import write_epochs
from kavka_broker.storage.file_names import LEADER_EPOCHS
from kavka_broker.storage.log import Log
from tests.support.sim_disk import SimDisk
from tests.unit.storage.cleaning import COMPACTED, clean, put, roll
from tests.unit.storage.support import DIRECTORY, append, headers, new_disk, open_log

FILE = f"{DIRECTORY}/{LEADER_EPOCHS}"

#: Epochs that grow, each with its number of batches.
Reigns = list[tuple[int, int]]

reigns = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 7)), min_size=1, max_size=6).map(
    lambda steps: [(sum(step for step, _ in steps[: index + 1]) - 1, steps[index][1]) for index in range(len(steps))]
)


def write(log: Log, history: Reigns) -> None:
    for epoch, count in history:
        for _ in range(count):
            append(log, bytes(100), epoch=epoch)


def starts_of(history: Reigns) -> list[tuple[int, int]]:
    """Return what the epoch file of a log with these batches says."""
    return [(epoch, sum(count for _, count in history[:index])) for index, (epoch, _) in enumerate(history)]


def epochs_by_file(starts: list[tuple[int, int]], offsets: range) -> list[int]:
    at = [bisect_right([start for _, start in starts], offset) for offset in offsets]
    return [starts[index - 1][0] if index else -1 for index in at]


def open_again(disk: SimDisk, log: Log, starts: list[tuple[int, int]], *, is_clean: bool, synced_offset: int) -> Log:
    """Stop, exchange the file, and start."""
    end_offset = log.log_end_offset
    if is_clean:
        log.close()
    else:
        log.flush()
        disk.kill()
    write_epochs(disk, FILE, starts, durable=True)
    return open_log(
        disk, log.config, recover=not is_clean, recovery_point=end_offset if is_clean else synced_offset,
        log_start_offset=log.log_start_offset,
    )  # fmt: skip


def assert_epochs_are_those_of_the_batches(log: Log) -> None:
    for header in headers(log):
        if header.base_offset >= log.log_start_offset:
            assert log.epochs.epoch_at(header.base_offset) == header.leader_epoch, (log.epochs.entries, header)
    last = headers(log)[-1]
    if last.base_offset >= log.log_start_offset:
        assert log.epochs.latest == last.leader_epoch, "a follower names this one to its leader"


@given(own=reigns, other=reigns, is_clean=st.booleans(), data=st.data())
def test_epochs_are_those_of_the_batches_whatever_log_the_file_is_of(
    own: Reigns, other: Reigns, is_clean: bool, data: st.DataObject
) -> None:
    disk = new_disk()
    log = open_log(disk)
    write(log, own)
    log.advance_start(data.draw(st.integers(0, log.log_end_offset), "start"))
    synced_offset = data.draw(st.integers(0, log.log_end_offset), "recovery point")
    starts, end_offset = starts_of(other), log.log_end_offset
    log = open_again(disk, log, starts, is_clean=is_clean, synced_offset=synced_offset)
    assert log.log_end_offset == end_offset
    if not log.damage:
        assert_epochs_are_those_of_the_batches(log)
        append(log, epoch=log.epochs.latest)
        log.close()
        assert_epochs_are_those_of_the_batches(open_log(disk, recover=False, recovery_point=end_offset + 1))
        return
    # It may be the last batch that has changed, or the file may tell of a segment that is gone.
    assert is_clean


@pytest.mark.parametrize("is_clean", [True, False])
def test_the_file_of_a_busier_log_is_not_believed(is_clean: bool) -> None:
    """All of its epochs but the first begin behind the end of this log, as in seed 524 of the simulation."""
    disk = new_disk()
    log = open_log(disk)
    write(log, [(0, 9), (2, 3), (4, 9), (5, 1), (6, 11)])
    foreign = [(0, 0), (1, 116), (2, 154), (5, 172), (6, 249), (8, 284), (9, 393)]
    log = open_again(disk, log, foreign, is_clean=is_clean, synced_offset=33)
    assert not log.damage
    assert log.epochs.entries == ((0, 0), (2, 9), (4, 12), (5, 21), (6, 22))


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_epoch_of_which_cleaning_has_left_nothing_is_kept(is_clean: bool) -> None:
    disk = new_disk()
    log = open_log(disk, COMPACTED)
    for number in range(30):
        put(log, ("often", "x" * 90), epoch=number // 10)
    roll(log)
    put(log, ("last", "1"), epoch=4)
    clean(log)
    assert len(headers(log)) < 30
    before = log.epochs.entries
    assert before == ((0, 0), (1, 10), (2, 20), (4, 30))
    log = open_again(disk, log, list(before), is_clean=is_clean, synced_offset=31)
    assert (log.epochs.entries, log.damage) == (before, "")


def test_an_opening_reads_few_headers_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker opens very many logs, and some have millions of batches."""
    disk = new_disk()
    log = open_log(disk)
    write(log, [(0, 200), (3, 200)])
    log.close()
    read = list[int]()

    def counted(*where: Any) -> Iterator[tuple[int, BatchHeader]]:
        for position, header in batch_walk.headers(*where):
            read.append(header.base_offset)
            yield position, header

    monkeypatch.setattr(epoch_check, "headers", counted)
    assert not open_log(disk, recover=False, recovery_point=400).damage
    assert {199, 399} <= set(read)
    assert len(read) <= 8
