"""A process that has no descriptor free has a disk that is well."""

import errno
from random import Random

import pytest

from kavka_broker.protocol.errors import BrokerError
from kavka_broker.storage import partition_metadata
from tests.support.sim_disk import DiskError, Operation
from tests.unit.storage.support import NOW_MS, SMALL, append, fill, values
from tests.unit.storage.test_log_manager import ID, formatted, start


@pytest.mark.parametrize("in_thread", [True, False])
def test_a_process_without_a_free_descriptor_keeps_its_directories(in_thread: bool) -> None:
    disk = formatted()
    manager = start(disk)
    log = manager.create("t", 0, ID, SMALL)
    disk.errors.append(DiskError(frozenset({"sync"}), "/data", errno.EMFILE))
    if in_thread:
        manager.secure()
    with pytest.raises(BrokerError):
        append(log, b"record")
    assert (log.log_end_offset, log.is_failed, len(manager.online)) == (0, False, 1)
    disk.errors.clear()
    append(log, b"record")
    disk.crash(Random(1))
    assert partition_metadata.read(disk, "/data/t-0") == ID


@pytest.mark.parametrize("synced", range(18))
def test_a_flush_without_a_free_descriptor_is_made_again(synced: int) -> None:
    """Wherever in the flush it was: what the second one returns from survives a loss of power."""
    disk = formatted()
    manager = start(disk)
    log = manager.create("t", 0, ID, SMALL)
    fill(log, 12, epoch=3)
    meet, left = disk.meet, [synced]

    def scarce(operation: Operation, *paths: str) -> None:
        left[0] -= operation == "sync"
        if left[0] == -1:
            left[0] -= 1
            raise OSError(errno.EMFILE, "Too many open files", paths[0])
        meet(operation, *paths)

    disk.meet = scarce  # type: ignore[method-assign]
    manager.flush_due(NOW_MS + SMALL.flush_ms)
    assert (log.is_failed, len(manager.online)) == (False, 1)
    assert (log.recovery_point == 12) == (left[0] >= 0)
    log.flush()
    disk.crash(Random(synced))
    again = start(disk).get("t", 0)
    assert again is not None
    assert (again.log_end_offset, again.epochs.latest, len(values(again))) == (12, 3, 12)
    assert "leader-epoch-checkpoint" in disk.names("/data/t-0")
