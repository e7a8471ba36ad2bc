"""Copies on their way into another directory: compared with their log, and put in its place."""

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.storage.future_logs import beyond_common
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_manager import LogManager
from tests.support.sim_disk import DiskError, SimDisk
from tests.unit.storage.support import NOW_MS, SMALL, append, fill, free, open_log, values
from tests.unit.storage.test_log_manager import ID, format_all, names, start


class DyingDisk(SimDisk):
    """A disk whose process is killed behind the rename of a path."""

    dies_behind = ""

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        if self.dies_behind in (source, target):
            raise RuntimeError("kill -9")


def two() -> tuple[DyingDisk, LogManager]:
    disk = DyingDisk(now_ms=NOW_MS)
    disk.make_directory("/data")
    disk.sync_directory("/data")
    format_all(disk, "/data", "/more")
    return disk, start(disk, "/data", "/more")


def copied(manager: LogManager, log: Log) -> Log:
    future = manager.futures.make(log, manager.directories[1], NOW_MS)
    for part in log.read(log.log_start_offset, 1 << 20).parts:
        future.append_as_follower(part)
    return future


def written(*epochs: tuple[int, int]) -> Log:
    """A log with so many records of each epoch."""
    log = open_log()
    for epoch, count in epochs:
        for _ in range(count):
            append(log, b"%d" % epoch, epoch=epoch)
    return log


@pytest.mark.parametrize(
    ("of_log", "of_copy", "left"),
    [
        ([(0, 9)], [(0, 4)], 4),  # the copy is behind
        ([(0, 4)], [(0, 9)], 4),  # the end of the log was lost
        ([(0, 4), (2, 9)], [(0, 9)], 4),  # and others were written there
        ([(0, 4), (3, 5)], [(0, 4), (1, 2), (2, 2)], 4),
        ([(0, 4), (1, 2)], [(0, 4), (1, 5), (2, 2)], 6),
        ([(5, 3)], [(0, 9)], 0),  # nothing of it is left
        ([], [(0, 9)], 0),
        ([(0, 9)], [], 0),
    ],
)
def test_a_copy_is_cut_where_it_parts_from_its_log(
    of_log: list[tuple[int, int]], of_copy: list[tuple[int, int]], left: int
) -> None:
    log, copy = written(*of_log), written(*of_copy)
    while (offset := beyond_common(copy, log)) is not None:
        copy.truncate_to(offset)
    assert copy.log_end_offset == left
    assert all(log.epochs.epoch_at(offset) == copy.epochs.epoch_at(offset) for offset in range(left))


def test_a_batch_that_was_sent_before_the_move_and_again_after_it_is_known() -> None:
    _, manager = two()
    log = manager.create("t", 0, ID, SMALL)
    batches = [
        build_batch([(None, b"v")], timestamp_ms=NOW_MS, producer_id=7, producer_epoch=0, base_sequence=sequence)
        for sequence in range(4)
    ]
    for batch in batches:
        log.append_as_leader(memoryview(bytearray(batch)), 0, NOW_MS)

    moved = manager.replace(copied(manager, log), manager.directories[1], NOW_MS)

    for offset, batch in enumerate(batches):
        again = moved.append_as_leader(memoryview(bytearray(batch)), 0, NOW_MS)
        assert (again.duplicate, again.base_offset) == (True, offset)


def test_what_a_moved_log_is_sent_as_a_follower_is_known_too() -> None:
    _, manager = two()
    log = manager.create("t", 0, ID, SMALL)
    first, second = (
        build_batch(
            [(None, b"v")],
            base_offset=offset,
            timestamp_ms=NOW_MS,
            producer_id=7,
            producer_epoch=0,
            base_sequence=offset,
        )
        for offset in range(2)
    )
    log.append_as_follower(memoryview(first))

    moved = manager.replace(copied(manager, log), manager.directories[1], NOW_MS)

    moved.append_as_follower(memoryview(second))
    again = bytearray(second)
    again[:8] = bytes(8)
    assert moved.append_as_leader(memoryview(again), 0, NOW_MS).duplicate


def test_a_copy_takes_the_place_of_its_log() -> None:
    disk, manager = two()
    log = manager.create("t", 0, ID, SMALL)
    fill(log, 4)
    moved = manager.replace(copied(manager, log), manager.directories[1], NOW_MS)
    assert (moved.directory, names(manager)) == ("/more/t-0", ["t-0"])
    append(moved, b"more")
    assert len(values(moved)) == 5
    disk.kill()
    (log,) = start(disk, "/data", "/more")
    assert (log.directory, len(values(log))) == ("/more/t-0", 5)


@pytest.mark.parametrize("crash_after", ["/more/t-0", "/data/t-0"])
def test_a_crash_in_the_last_step_loses_nothing(crash_after: str) -> None:
    """Whichever of its two renames was the last that happened, a start finds the log, whole."""
    disk, manager = two()
    log = manager.create("t", 0, ID, SMALL)
    fill(log, 4)
    future = copied(manager, log)
    disk.dies_behind = crash_after
    with pytest.raises(RuntimeError):
        manager.replace(future, manager.directories[1], NOW_MS)
    disk.dies_behind = ""
    disk.kill()
    manager = start(disk, "/data", "/more")
    free(manager)
    (log,) = manager
    assert len(values(log)) == 4


def test_a_log_stays_where_it_is_when_its_copy_cannot_take_its_place() -> None:
    disk, manager = two()
    log = manager.create("t", 0, ID, SMALL)
    fill(log, 4)
    future = copied(manager, log)
    disk.errors = [DiskError(frozenset({"rename"}), "/more/t-0", times=1)]
    with pytest.raises(BrokerError) as caught:
        manager.replace(future, manager.directories[1], NOW_MS)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.get("t", 0) is log
    append(log, b"more")
    assert len(values(log)) == 5


def test_checkpoints_of_an_earlier_log_of_the_name_say_nothing_of_the_moved_one() -> None:
    """A start after a crash would begin the log where the earlier one did, and throw away what it has."""
    disk, manager = two()
    manager.create("other", 0, ID, SMALL)
    former = manager.create("t", 0, ID, SMALL)
    assert former.directory == "/more/t-0"
    former.start_at(100)
    fill(former, 4)
    former.advance_start(102)
    former.flush()
    manager.write_checkpoints(lambda one: one.log_end_offset)
    manager.delete("t", 0)
    manager.create("another", 0, ID, SMALL)
    log = manager.create("t", 0, ID, SMALL, directory_id=manager.directories[0].directory_id)
    assert log.directory == "/data/t-0"
    fill(log, 4)
    manager.replace(copied(manager, log), manager.directories[1], NOW_MS)
    disk.kill()
    found = start(disk, "/data", "/more").get("t", 0)
    assert found is not None
    assert (found.log_start_offset, len(values(found))) == (0, 4)


def test_a_name_too_long_for_a_copy_beside_it_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """The answer to AlterReplicaLogDirs has no room for words: the broker's log has them."""
    _, manager = two()
    longest = manager.create("t" * 213, 0, ID, SMALL)
    assert manager.futures.make(longest, manager.directories[1], NOW_MS).name == longest.name
    log = manager.create("t" * 214, 0, ID, SMALL)
    with pytest.raises(BrokerError, match="its name is too long for a copy: with its partition it has more than 215"):
        manager.futures.make(log, manager.directories[1], NOW_MS)
    assert [one.message for one in caplog.records] == ["copy.refused"]


def test_a_sync_that_fails_takes_the_directory_of_the_copy_offline() -> None:
    disk, manager = two()
    log = manager.create("t", 0, ID, SMALL)
    fill(log, 4)
    future = copied(manager, log)
    disk.fail_syncs = True
    with pytest.raises(BrokerError):
        future.flush()
    disk.fail_syncs = False
    assert [one.path for one in manager.online] == ["/data"]
    append(log)
