"""Very many logs: what is done to each of them is counted, and nothing is done for nothing."""

import os
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.loop.slices import at_once
from kavka_broker.storage.disk import RealDisk, RealFile
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import MetaProperties, write_meta_properties
from kavka_broker.storage.log_manager import SMALL_BYTES_MAX, LogManager
from tests.support.sim_disk import Operation, SimDisk
from tests.unit.storage.support import NOW_MS, SMALL, append, descriptors_of, fill, open_log

LOGS = 50
ID = b"\1" * 16


class CountingDisk(SimDisk):
    """Counts what is asked of it below the directories of logs."""

    def __init__(self) -> None:
        super().__init__(now_ms=NOW_MS)
        self.asked: Counter[Operation] = Counter()

    def meet(self, operation: Operation, *paths: str) -> None:
        self.asked[operation] += paths[0].startswith("/data/t-")
        super().meet(operation, *paths)


def formatted(disk: SimDisk) -> LogManager:
    disk.make_directory("/data")
    write_meta_properties(disk, "/data", MetaProperties("cluster", 1, b"d" * 16))
    return started(disk)


def started(disk: SimDisk) -> LogManager:
    manager = LogManager.open(disk, ["/data"], node_id=1, threads_max=1)
    manager.load(lambda topic: SMALL, NOW_MS)
    return manager


def many(manager: LogManager) -> list[Log]:
    made = [manager.create("t", index, ID, SMALL) for index in range(LOGS)]
    manager.secure()
    return made


def test_to_lead_very_many_logs_writes_nothing() -> None:
    """A broker's death makes others leaders of all that it led, in one turn of their loops."""
    disk = CountingDisk()
    logs = many(formatted(disk))
    disk.asked.clear()
    for log in logs:
        log.epochs.assign(7, log.log_end_offset)
    assert not +disk.asked
    append(logs[0], epoch=7)
    assert disk.asked["write"] == 1
    assert logs[0].epochs.entries == ((7, 0),)


def test_a_stop_syncs_only_the_logs_that_have_something_new() -> None:
    disk = CountingDisk()
    manager = formatted(disk)
    for log in many(manager):
        log.epochs.assign(7, 0)
    written = manager.get("t", 3)
    assert written is not None
    append(written, epoch=7)
    disk.asked.clear()
    manager.close()
    alone = disk.asked["sync"]
    assert 0 < alone < LOGS / 4
    assert disk.asked["names"] < LOGS / 4
    disk.kill()
    manager = started(disk)
    disk.asked.clear()
    manager.close()
    assert (disk.asked["sync"], disk.asked["write"]) == (0, 0)


def test_an_epoch_that_has_written_something_survives_a_clean_stop_and_a_loss_of_power() -> None:
    disk = CountingDisk()
    manager = formatted(disk)
    log = many(manager)[0]
    for epoch in (3, 5):
        log.epochs.assign(epoch, log.log_end_offset)
        append(log, epoch=epoch)
    log.epochs.assign(9, log.log_end_offset)
    manager.close()
    disk.kill()
    found = started(disk).get("t", 0)
    assert found is not None
    assert found.epochs.entries == ((3, 0), (5, 1))
    assert not found.damage


def test_an_epoch_whose_records_were_cut_off_is_written_again_with_the_next() -> None:
    log = open_log()
    fill(log, 2, epoch=1)
    fill(log, 2, epoch=4)
    log.truncate_to(2)
    append(log, epoch=4)
    log.close()
    assert open_log(log.disk, recover=False).epochs.entries == ((1, 0), (4, 2))  # type: ignore[arg-type]


def test_logs_that_nobody_uses_hold_no_descriptor(tmp_path: Path) -> None:
    disk = RealDisk()
    write_meta_properties(disk, str(tmp_path), MetaProperties("cluster", 1, b"d" * 16))
    manager = LogManager.open(disk, [str(tmp_path)], node_id=1)
    manager.load(lambda topic: LogConfig(), NOW_MS)
    before = len(descriptors_of(tmp_path))
    for index in range(LOGS):
        manager.create("t", index, ID, LogConfig(), NOW_MS)
    assert len(descriptors_of(tmp_path)) == before
    for log in manager:
        append(log)
    assert len(descriptors_of(tmp_path)) == before + LOGS
    at_once(manager.retain(NOW_MS))
    at_once(manager.retain(NOW_MS))
    assert len(descriptors_of(tmp_path)) == before
    manager.close()


def test_a_start_holds_no_descriptor_for_each_log(tmp_path: Path) -> None:
    disk = RealDisk()
    write_meta_properties(disk, str(tmp_path), MetaProperties("cluster", 1, b"d" * 16))
    for _ in range(2):
        before = len(descriptors_of(tmp_path))
        manager = LogManager.open(disk, [str(tmp_path)], node_id=1)
        manager.load(lambda topic: LogConfig(), NOW_MS)
        assert len(descriptors_of(tmp_path)) == before + 1  # the lock of the directory
        for index in range(LOGS):
            append(manager.create("t", index, ID, LogConfig(), NOW_MS))
        manager.close()


def test_a_new_log_goes_to_the_directory_with_the_fewest() -> None:
    disk = SimDisk(now_ms=NOW_MS)
    for path in ("/a", "/b", "/c"):
        disk.make_directory(path)
        write_meta_properties(disk, path, MetaProperties("cluster", 1, path.encode().ljust(16)))
    manager = LogManager.open(disk, ["/a", "/b", "/c"], node_id=1)
    manager.load(lambda topic: SMALL, NOW_MS)
    for index in range(9):
        manager.create("t", index, ID, SMALL)
    manager.delete("t", 1)
    manager.delete("t", 4)
    manager.create("u", 0, ID, SMALL)
    home = manager.directory_of("u", 0)
    assert home is not None
    assert home.path == "/b"
    assert [one.logs_count for one in manager.directories] == [3, 2, 3]


def test_a_start_lists_each_directory_once_and_reads_one_file_of_each_empty_log() -> None:
    disk = CountingDisk()
    manager = formatted(disk)
    many(manager)
    manager.close()
    disk.kill()
    disk.asked.clear()
    started(disk)
    assert (disk.asked["names"], disk.asked["read"]) == (LOGS, LOGS)
    assert not disk.asked["make_directory"]


class ThreadsDisk(RealDisk):
    """Notes which thread has opened the files of each log."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: dict[str, str] = {}

    def open(self, path: str) -> RealFile:
        self.threads[os.path.basename(os.path.dirname(path))] = threading.current_thread().name
        return super().open(path)


def test_logs_with_little_to_recover_are_opened_by_one_thread(tmp_path: Path) -> None:
    """Two wait for each other at each call of the system, and need twice the time of one."""
    write_meta_properties(RealDisk(), str(tmp_path), MetaProperties("cluster", 1, b"d" * 16))
    first = LogManager.open(RealDisk(), [str(tmp_path)], node_id=1)
    first.load(lambda topic: LogConfig(), NOW_MS)
    for index in range(LOGS):
        append(first.create("t", index, ID, LogConfig(), NOW_MS))
    large = first.create("large", 0, ID, LogConfig(), NOW_MS)
    while large.size_bytes <= SMALL_BYTES_MAX:
        append(large, b"x" * (SMALL_BYTES_MAX // 8))
    for directory in first.directories:
        directory.release()  # killed
    disk = ThreadsDisk()
    LogManager.open(disk, [str(tmp_path)], node_id=1).load(lambda topic: LogConfig(), NOW_MS)
    own = threading.current_thread().name
    assert [name for name, thread in disk.threads.items() if thread != own] == ["large-0"]


def test_a_stop_closes_the_logs_that_have_nothing_to_sync_in_one_thread(tmp_path: Path) -> None:
    write_meta_properties(RealDisk(), str(tmp_path), MetaProperties("cluster", 1, b"d" * 16))
    manager = LogManager.open(RealDisk(), [str(tmp_path)], node_id=1)
    manager.load(lambda topic: LogConfig(), NOW_MS)
    logs = [manager.create("t", index, ID, LogConfig(), NOW_MS) for index in range(LOGS)]
    manager.secure()
    manager.write_checkpoints()
    for log in logs:
        manager.clear_changed(log, lambda _: True)
    append(logs[7])
    closed: dict[str, str] = {}
    for log in logs:
        log.close = partial(note_thread, closed, log, log.close)  # type: ignore[method-assign]
    manager.close()
    own = threading.current_thread().name
    assert [name for name, thread in closed.items() if thread != own] == ["t-7"]
    assert len(closed) == LOGS


def note_thread(closed: dict[str, str], log: Log, close: Callable[[], None]) -> None:
    closed[str(log.name)] = threading.current_thread().name
    close()
