"""`flush.messages`: an append says that it wants a sync, and a sync of the records is all that an answer waits for."""

import os
import threading
from pathlib import Path
from random import Random

import pytest

from kavka_broker.storage import disk as disks
from kavka_broker.storage.disk import RealDisk
from tests.unit.storage.support import append, config, descriptors_of, fill, new_disk, open_log, values

SYNCED = config(flush_messages=1)


def test_an_append_wants_a_sync_and_does_none() -> None:
    log = open_log(config=config(flush_messages=3))
    append(log, b"a", b"b")
    assert (log.durability.awaits_sync, log.durability.answerable_end) == (False, 2)
    append(log, b"c")
    assert (log.recovery_point, log.durability.awaits_sync, log.durability.answerable_end) == (0, True, 0)
    append(log, b"d", b"e")
    assert log.durability.sync_wanted_offset == 3  # it counts again from there
    log.durability.sync_records()
    assert (log.recovery_point, log.durability.awaits_sync, log.durability.answerable_end) == (5, False, 5)


def test_nothing_waits_for_a_sync_without_flush_messages() -> None:
    log = open_log()
    fill(log, 3)
    assert (log.recovery_point, log.durability.awaits_sync, log.durability.answerable_end) == (0, False, 3)


def test_what_is_answerable_survives_a_loss_of_power() -> None:
    for seed in range(20):
        disk, random = new_disk(), Random(seed)
        log = open_log(disk, SYNCED)
        for _ in range(random.randint(1, 12)):  # over several segments
            fill(log, random.randint(1, 3))
            if random.random() < 0.5:
                log.durability.sync_records()
        answerable = values(log)[: log.durability.answerable_end]
        disk.crash(random)
        assert values(open_log(disk, SYNCED))[: len(answerable)] == answerable


def test_the_indexes_follow_before_the_log_is_left_as_clean() -> None:
    """A start trusts what it finds in a log that was closed: recovery would build them again, but does not look."""
    for seed in range(20):
        disk = new_disk()
        log = open_log(disk, SYNCED)
        fill(log, 4)
        log.durability.sync_records()
        log.close()
        disk.crash(Random(seed))
        again = open_log(disk, SYNCED, recover=False, recovery_point=4)
        assert len(again.segments[0].offsets) == len(log.segments[0].offsets) > 0


def test_a_cut_log_waits_for_no_sync_of_what_is_gone() -> None:
    log = open_log(config=SYNCED)
    fill(log, 2)
    log.durability.sync_records()
    fill(log, 4)
    log.truncate_to(2)
    assert (log.durability.awaits_sync, log.durability.answerable_end) == (False, 2)
    fill(log, 1)
    assert (log.durability.awaits_sync, log.durability.answerable_end) == (True, 2)


@pytest.mark.parametrize("offset", [2, 0])
def test_a_sync_while_the_log_is_cut_counts_nothing_that_goes(offset: int) -> None:
    """As durable it would count records that are appended later at the same offsets."""
    log = open_log(config=SYNCED)
    fill(log, 4)
    log.durability.sync_records()
    log.durability.on_recovery_point_lowered = log.flush  # a thread, while the loop writes the checkpoint
    if offset:
        log.truncate_to(offset)
    else:
        log.start_at(offset)
    fill(log, 1)
    assert (log.recovery_point, log.durability.awaits_sync, log.durability.answerable_end) == (offset, True, offset)


def test_a_log_starts_anew_while_a_thread_syncs_it() -> None:
    """The loop does it, and would stand still until the disk has everything."""
    log = open_log(config=SYNCED)
    fill(log, 2)
    assert log.durability.is_secured
    assert log.durability._sync_lock.acquire(timeout=60), "a sync is under way"
    starting = threading.Thread(target=log.start_at, args=(5,), daemon=True)
    starting.start()
    starting.join(60)
    assert not starting.is_alive()
    assert log.log_end_offset == 5


def test_a_sync_has_its_descriptor_to_the_end_though_the_loop_lets_go(tmp_path: Path) -> None:
    """As the descriptor of another file it would sync that one, and this one never."""
    file = RealDisk().open(str(tmp_path / "f"))
    file.append(b"x")
    has_begun, is_released, synced = threading.Event(), threading.Event(), list[int]()

    def slow(descriptor: int) -> None:
        has_begun.set()
        assert is_released.wait(60)
        synced.append(os.fstat(descriptor).st_ino)

    held, disks._sync_data = disks._sync_data, slow  # type: ignore[misc]
    try:
        thread = threading.Thread(target=file.sync)
        thread.start()
        assert has_begun.wait(60)
        file.release()
        other = RealDisk().open(str(tmp_path / "other"))
        is_released.set()
        thread.join()
    finally:
        disks._sync_data = held  # type: ignore[misc]
    assert synced == [os.stat(file.path).st_ino]
    assert sorted(os.readlink(f"/proc/self/fd/{one}") for one in descriptors_of(tmp_path)) == [other.path]


def test_a_file_that_holds_no_descriptor_is_synced_too(tmp_path: Path) -> None:
    file = RealDisk().open(str(tmp_path / "f"))
    file.append(b"x")
    file.release()
    file.sync()
    assert descriptors_of(tmp_path) == []
