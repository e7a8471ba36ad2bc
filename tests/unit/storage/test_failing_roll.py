"""A roll that fails half way, and a log whose disk has failed."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.storage import recovery
from kavka_broker.storage.disk import RealDisk
from kavka_broker.storage.log_directory import CLEAN_SHUTDOWN
from tests.support.sim_disk import SimDisk, SimFile
from tests.unit.storage.support import NOW_MS, SMALL, append, config, fill, free, open_log, values
from tests.unit.storage.test_log_manager import ID, formatted, start


class CrowdedDisk(SimDisk):
    """As when the process has no descriptors left: the files that end so cannot be opened."""

    refused_suffix = "none"

    def open(self, path: str) -> SimFile:
        if path.endswith(self.refused_suffix):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return super().open(path)


def crowded(**faults: Any) -> CrowdedDisk:
    disk = CrowdedDisk(now_ms=NOW_MS, **faults)
    disk.make_directory("/data")
    return disk


def test_a_roll_without_any_room_is_a_storage_error() -> None:
    disk = crowded()
    log = open_log(disk)
    fill(log, 5)
    disk.space_bytes = 0
    with pytest.raises(BrokerError) as caught:
        append(log, bytes(500))
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.space_bytes = None
    append(log, b"later")
    assert log.log_end_offset == 6


def test_a_roll_that_fails_half_way_leaves_no_segment() -> None:
    """Its name would be read as the end of the log, and hide what the segment before it still took."""
    disk = crowded()
    log = open_log(disk)
    fill(log, 5)
    disk.refused_suffix = ".timeindex"
    with pytest.raises(BrokerError) as caught:
        append(log, bytes(500))
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    append(log, b"small")
    log.close()
    disk.refused_suffix = "none"
    disk.kill()
    again = open_log(disk, recover=False, recovery_point=6)
    assert (again.log_end_offset, values(again)[-1]) == (6, b"small")


def test_a_log_that_could_not_be_synced_is_not_left_as_clean() -> None:
    disk = formatted()
    manager = start(disk)
    log = manager.create("t", 0, ID, config(flush_messages=1))
    append(log, b"unsure")
    disk.fail_syncs = True
    with pytest.raises(BrokerError):
        log.durability.sync_records()
    disk.fail_syncs = False
    manager.close()
    assert not disk.exists(f"/data/{CLEAN_SHUTDOWN}")


def test_a_sync_that_fails_takes_the_directory_offline() -> None:
    """Else its leader would refuse every record forever, and nobody would elect another."""
    disk = formatted()
    manager = start(disk)
    lost: list[str] = []
    manager.on_offline = lambda directory: lost.append(directory.path)
    log = manager.create("t", 0, ID, config(flush_messages=1))
    other = manager.create("other", 0, ID, config())
    append(log, b"unsure")
    disk.fail_syncs = True
    with pytest.raises(BrokerError):
        log.durability.sync_records()
    assert lost == ["/data"]
    assert other.is_failed
    assert manager.online == []


def test_a_sync_that_fails_while_a_log_is_recovered_takes_the_directory_offline() -> None:
    """Else the broker would serve without the log, and nobody would know that it is to be started again."""
    disk = formatted()
    append(start(disk).create("t", 0, ID, config(flush_messages=1)), b"read by others")
    disk.kill()
    disk.fail_syncs = True
    assert start(disk, log_config=config(flush_messages=1)).online == []


def test_one_log_that_cannot_be_rolled_does_not_keep_the_others_from_retention() -> None:
    disk = formatted()
    manager = start(disk)
    for topic in ("a", "b", "c"):
        fill(manager.create(topic, 0, ID, config(retention_ms=1000)), 3)
    first = manager.get("a", 0)
    assert first is not None

    def fail(*_: object) -> None:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")

    first.roll = fail  # type: ignore[method-assign, assignment]
    assert at_once(manager.retain(NOW_MS + 10_000)) == 2
    assert [one.log_start_offset for one in manager] == [0, 3, 3]


def test_one_directory_that_cannot_be_removed_is_tried_again() -> None:
    disk = formatted()
    manager = start(disk)
    for topic in ("a", "b"):
        fill(manager.create(topic, 0, ID, SMALL), 1)
        manager.delete(topic, 0)
    removed = list[str]()

    def remove_directory(path: str) -> None:
        if not removed and "/a-0" in path:
            removed.append("refused")
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        SimDisk.remove_directory(disk, path)

    disk.remove_directory = remove_directory  # type: ignore[method-assign]
    free(manager)
    assert any(name.startswith("a-0") for name in disk.names("/data"))
    free(manager)
    assert not any(name.endswith("-delete") for name in disk.names("/data"))


def test_a_flush_that_meets_a_deleted_log_does_nothing(tmp_path: Path) -> None:
    """The thread that flushes has chosen its logs; meanwhile the loop deletes one, its index still in memory."""
    log = recovery.open_log(RealDisk(), str(tmp_path / "t-0"), config(internal_segment_bytes=100_000), now_ms=NOW_MS)
    fill(log, 20)
    segment = log.segments[0]
    assert len(segment.offsets)
    log.abandon()
    log.flush()
    assert not log.is_failed
