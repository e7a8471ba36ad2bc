"""A log whose making was broken off: it has no topic id, and so never had a record."""

import errno

import pytest

from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.log_manager import LogManager
from tests.support.sim_disk import DiskError, SimDisk
from tests.unit.storage.support import SMALL, fill
from tests.unit.storage.test_log_manager import ID, formatted, start

BOTH = ("/data", "/more")


def half_made() -> SimDisk:
    """Power was lost before anything of the log but its directory was on the medium."""
    disk = formatted(*BOTH)
    disk.make_directory("/more/t-0")
    disk.sync_directory("/more")
    return disk


def found(manager: LogManager) -> list[tuple[str, bytes, int]]:
    return [(one.directory, one.topic_id, one.log_end_offset) for one in manager]


def test_it_becomes_the_topics_log_and_is_empty() -> None:
    """Its broker may have said that it is lost: nobody else would lead, and no process remembers that it is new."""
    disk = half_made()
    for _ in range(2):
        manager = start(disk, *BOTH, topic_id=ID)
        assert found(manager) == [("/more/t-0", ID, 0)]
        disk.kill()


def test_without_a_topic_of_that_name_it_is_removed() -> None:
    disk = half_made()
    assert found(start(disk, *BOTH, topic_id=ZERO)) == []
    assert "t-0" not in disk.names("/more")


def test_beside_a_log_of_that_name_it_is_removed() -> None:
    disk = half_made()
    manager = start(disk, "/data", topic_id=ID)
    fill(manager.create("t", 0, ID, SMALL), 3)
    disk.kill()
    assert found(start(disk, *BOTH, topic_id=ID)) == [("/data/t-0", ID, 3)]
    assert "t-0" not in disk.names("/more")


def test_where_another_directory_is_away_it_is_removed() -> None:
    """The log may be there."""
    disk = half_made()
    disk.errors.append(DiskError(frozenset({"names"}), "/data", errno.EIO))
    assert found(start(disk, *BOTH, topic_id=ID)) == []
    assert "t-0" not in disk.names("/more")


@pytest.mark.parametrize("recovery_point", [0, 5])
def test_one_that_had_records_once_does_not_begin_anew(recovery_point: int) -> None:
    disk = half_made()
    text = f"0\n1\nt 0 {recovery_point}\n"
    disk.write_file("/more/recovery-point-offset-checkpoint", text.encode(), durable=True)
    manager = start(disk, *BOTH, topic_id=ID)
    assert [one.name for one in manager] == ([] if recovery_point else [PartitionName("t", 0)])
