"""The ids of new logs' topics are synced for many logs at once."""

import threading
from random import Random

import pytest

from kavka_broker.storage import partition_metadata
from kavka_broker.storage.open_logs import SECURING_THREADS_MAX
from tests.unit.storage.support import SMALL, append
from tests.unit.storage.test_log_manager import ID, OTHER_ID, formatted, start


def test_ids_are_synced_together_and_once() -> None:
    disk = formatted()
    manager = start(disk)
    synced = list[str]()
    sync_file = disk.sync_file

    def sync(path: str) -> None:
        synced.append(path)
        sync_file(path)

    disk.sync_file = sync  # type: ignore[method-assign] # a spy
    logs = [manager.create("t", partition, ID, SMALL) for partition in range(5)]
    assert synced == []
    manager.secure()
    for log in logs:
        append(log, b"record")
        append(log, b"record")
    assert sorted(synced) == [f"/data/t-{partition}/partition.metadata" for partition in range(5)]


def test_the_ids_of_many_logs_are_synced_at_the_same_time() -> None:
    """A filesystem with a journal writes them in one commit then."""
    disk = formatted()
    manager = start(disk)
    manager._threads_max = 4
    for partition in range(SECURING_THREADS_MAX):
        manager.create("t", partition, ID, SMALL)
    sync_file, all_wait = disk.sync_file, threading.Barrier(SECURING_THREADS_MAX, timeout=60)
    disk.sync_file = lambda path: (all_wait.wait(), sync_file(path))[1]  # type: ignore[method-assign]
    manager.secure()
    assert not manager.has_unsecured
    assert all(log.durability.is_secured for log in manager)


def test_after_a_crash_only_logs_are_waited_for_that_no_checkpoint_names() -> None:
    """Followers do not fetch before, and to sync very many logs without records takes a second or more."""
    disk = formatted()
    manager = start(disk)
    for partition in range(3):
        manager.create("t", partition, ID, SMALL)
    manager.write_checkpoints()
    disk.kill()
    manager = start(disk)
    assert manager.has_unsecured  # what was not synced when the checkpoint was written it does not name
    manager.secure()
    manager.create("t", 3, ID, SMALL)
    manager.write_checkpoints()
    manager.create("t", 4, ID, SMALL)
    disk.kill()
    manager = start(disk)
    assert [log.durability.is_secured for log in manager] == [True, True, True, False, False]


def test_a_log_that_a_checkpoint_names_is_synced_all_the_same() -> None:
    """The process may have been killed between a change of names and the sync of them. The stop of very many logs is
    not the time for that.
    """
    disk = formatted()
    manager = start(disk)
    manager.create("t", 0, ID, SMALL)
    manager.secure()
    manager.write_checkpoints()
    disk.kill()
    manager = start(disk)
    synced = list[str]()
    sync_directory = disk.sync_directory

    def sync(path: str) -> None:
        synced.append(path)
        sync_directory(path)

    disk.sync_directory = sync  # type: ignore[method-assign] # a spy
    assert manager.has_unsecured
    manager.secure()
    assert "/data/t-0" in synced
    synced.clear()
    manager.close()
    assert "/data/t-0" not in synced


@pytest.mark.parametrize("seed", range(20))
def test_a_checkpoint_speaks_for_no_later_log_of_the_name(seed: int) -> None:
    disk = formatted()
    manager = start(disk)
    manager.create("t", 0, ID, SMALL)
    manager.secure()
    manager.write_checkpoints()
    manager.delete("t", 0)
    manager.create("t", 0, OTHER_ID, SMALL)
    disk.kill()
    manager = start(disk, topic_id=OTHER_ID)
    log = manager.get("t", 0)
    assert log is not None
    append(log, b"record")
    disk.crash(Random(seed))
    assert partition_metadata.read(disk, "/data/t-0") == OTHER_ID


def test_nor_for_one_whose_id_was_lost() -> None:
    disk = formatted()
    manager = start(disk)
    manager.create("t", 0, ID, SMALL)
    manager.secure()
    manager.write_checkpoints()
    disk.remove("/data/t-0/partition.metadata")
    disk.kill()
    manager = start(disk, topic_id=ID)
    assert [log.durability.is_secured for log in manager] == [False]
