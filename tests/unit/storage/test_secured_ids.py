"""The ids of new logs' topics are synced for many logs at once."""

import threading

from kavka_broker.storage.open_logs import SECURING_THREADS_MAX
from tests.unit.storage.support import SMALL, append
from tests.unit.storage.test_log_manager import ID, formatted, start


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
    sync_file, all_wait = disk.sync_file, threading.Barrier(SECURING_THREADS_MAX, timeout=20)
    disk.sync_file = lambda path: (all_wait.wait(), sync_file(path))[1]  # type: ignore[method-assign]
    manager.secure()
    assert not manager.has_unsecured
    assert all(log.is_secured for log in manager)
