"""All logs of a broker: loading, creating, deleting, upkeep, a failing directory, a clean stop."""

import errno
from typing import TypeVar

import pytest

from kavka_broker.core.config.topic import LONG_MAX, LogConfig
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.storage import partition_metadata
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.log_directory import LogDirectory, MetaProperties, write_meta_properties
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.storage.producer_expiry import expire_producers
from tests.support.sim_disk import DiskError, SimDisk
from tests.unit.storage.support import NOW_MS, SMALL, append, config, fill, free, new_disk, values

ID, OTHER_ID = b"\1" * 16, b"\2" * 16
D = TypeVar("D", bound=SimDisk)


def formatted(*paths: str) -> SimDisk:
    return format_all(new_disk(), *paths)


def format_all(disk: D, *paths: str) -> D:
    """Format these directories of a disk, or the only one."""
    for path in paths or ("/data",):
        disk.make_directory(path)
        write_meta_properties(disk, path, MetaProperties("cluster", 1, path.encode().ljust(16)))
    return disk


def start(
    disk: SimDisk, *paths: str, log_config: LogConfig = SMALL, load: bool = True, topic_id: bytes | None = None
) -> LogManager:
    """`topic_id` is that of every topic, as far as the cluster knows."""
    manager = LogManager.open(disk, paths or ("/data",), node_id=1)
    if load:
        manager.load(lambda topic: log_config, NOW_MS, known_id=None if topic_id is None else lambda name: topic_id)
    return manager


def names(manager: LogManager) -> list[str]:
    return sorted(str(one.name) for one in manager)


def test_a_created_log_is_found_and_loaded_by_the_next_start() -> None:
    disk = formatted()
    manager = start(disk)
    log = manager.create("orders", 0, ID, SMALL)
    fill(log, 7)
    assert manager.get("orders", 0) is log
    assert manager.get("orders", 1) is None
    assert manager.create("orders", 0, ID, SMALL) is log
    manager.close()
    disk.kill()
    manager = start(disk)
    found = manager.get("orders", 0)
    assert found is not None
    assert (found.topic_id, found.log_end_offset, found.recovery_point) == (ID, 7, 7)
    assert manager.cluster_id == "cluster"


def test_the_progress_of_loading_is_told() -> None:
    disk = formatted()
    manager = start(disk)
    for partition in range(5):
        manager.create("t", partition, ID, SMALL)
    disk.kill()
    told = list[tuple[int, int, str]]()
    manager = start(disk, load=False)
    manager.load(lambda topic: SMALL, NOW_MS, progress=lambda *step: told.append(step))
    assert [step[:2] for step in told] == [(count, 5) for count in range(1, 6)]
    assert sorted(step[2] for step in told) == names(manager)


def test_a_topic_of_the_same_name_gets_a_log_of_its_own() -> None:
    disk = formatted()
    manager = start(disk)
    append(manager.create("t", 0, ID, SMALL), b"old")
    log = manager.create("t", 0, OTHER_ID, SMALL)
    assert (log.log_end_offset, log.topic_id) == (0, OTHER_ID)
    assert len([name for name in disk.names("/data") if name.endswith("-stray")]) == 1


def test_a_new_log_goes_where_the_fewest_are() -> None:
    disk = formatted("/data", "/more")
    manager = start(disk, "/data", "/more")
    for partition in range(4):
        manager.create("t", partition, ID, SMALL)
    homes = [manager.directory_of("t", partition) for partition in range(4)]
    assert [home.path for home in homes if home is not None] == ["/data", "/more", "/data", "/more"]


def twins(copied: int, lost: int) -> tuple[SimDisk, LogManager]:
    """What a crash in the last step of a move leaves: a log whose end was lost, and its copy under the same name."""
    disk = formatted("/data", "/more")
    manager = start(disk, "/data", "/more")
    log, copy = manager.create("t", 0, ID, SMALL), manager.create("t", 1, ID, SMALL)
    assert (log.directory, copy.directory) == ("/data/t-0", "/more/t-1")
    for one, count in ((log, 12 - lost), (copy, copied)):
        fill(one, count)
        one.flush()
    disk.rename("/more/t-1", "/more/t-0")
    disk.kill()
    return disk, start(disk, "/data", "/more")


@pytest.mark.parametrize(("copied", "lost", "kept", "aside"), [(12, 3, "/more", "/data"), (12, 0, "/data", "/more")])
def test_of_two_that_a_move_left_the_one_that_reaches_further_is_kept(
    copied: int, lost: int, kept: str, aside: str
) -> None:
    disk, manager = twins(copied, lost)
    (log,) = manager
    assert (log.directory, log.log_end_offset) == (f"{kept}/t-0", 12)
    assert [name for name in disk.names(aside) if name.endswith("-stray")]
    append(log, b"more")
    manager.close()
    disk.kill()
    (log,) = start(disk, "/data", "/more")
    assert log.log_end_offset == 13


def test_a_later_epoch_counts_for_more_than_a_longer_log() -> None:
    disk = formatted("/data", "/more")
    manager = start(disk, "/data", "/more")
    fill(manager.create("t", 0, ID, SMALL), 12, epoch=4)
    fill(manager.create("t", 1, ID, SMALL), 5, epoch=6)
    disk.rename("/more/t-1", "/more/t-0")
    disk.kill()
    (log,) = start(disk, "/data", "/more")
    assert (log.directory, log.log_end_offset) == ("/more/t-0", 5)


def test_delete_renames_at_once_and_removes_later() -> None:
    disk = formatted()
    manager = start(disk)
    fill(manager.create("t", 0, ID, SMALL), 3)
    manager.delete("t", 0)
    assert manager.get("t", 0) is None
    (left,) = [name for name in disk.names("/data") if name.startswith("t-0")]
    assert left.endswith("-delete")
    free(manager)
    assert not [name for name in disk.names("/data") if name.startswith("t-0")]
    manager.delete("t", 0)


def test_what_a_stop_left_undeleted_goes_after_the_next_start() -> None:
    disk = formatted()
    manager = start(disk)
    manager.create("t", 0, ID, SMALL)
    manager.delete("t", 0)
    disk.kill()
    manager = start(disk)
    assert names(manager) == []
    free(manager)
    assert not [name for name in disk.names("/data") if name.startswith("t-0")]


def test_strays_are_moved_aside() -> None:
    disk = formatted()
    manager = start(disk)
    for partition in range(3):
        manager.create("t", partition, ID, SMALL)
    assert manager.remove_strays([("t", 1)]) == ["t-0", "t-2"]
    assert names(manager) == ["t-1"]
    free(manager)
    disk.kill()
    assert names(start(disk)) == ["t-1"]
    assert len([name for name in disk.names("/data") if name.endswith("-stray")]) == 2


def test_directories_that_are_no_logs_are_left_alone() -> None:
    disk = formatted()
    for name in ("__cluster_metadata-0", "lost+found", "t-0.00-future"):
        disk.make_directory(f"/data/{name}")
    assert names(start(disk)) == []
    assert {"__cluster_metadata-0", "lost+found", "t-0.00-future"} < set(disk.names("/data"))


def test_an_unusable_log_takes_no_other_with_it_and_is_not_overwritten() -> None:
    disk = formatted()
    manager = start(disk)
    manager.create("bad", 0, ID, SMALL)
    manager.create("good", 0, ID, SMALL)
    disk.write_file("/data/bad-0/partition.metadata", b"version: 9\n")
    disk.kill()
    manager = start(disk)
    assert names(manager) == ["good-0"]
    with pytest.raises(BrokerError, match="version 9"):
        manager.create("bad", 0, ID, SMALL)
    assert disk.read_file("/data/bad-0/partition.metadata") == b"version: 9\n"


def test_checkpoints_are_written_and_used() -> None:
    disk = formatted()
    manager = start(disk)
    log = manager.create("t", 0, ID, SMALL)
    fill(log, 12)
    log.flush()
    log.advance_start(7)
    manager.write_checkpoints(lambda one: one.log_end_offset - 1)
    assert disk.read_file("/data/recovery-point-offset-checkpoint") == b"0\n1\nt 0 12\n"
    assert disk.read_file("/data/log-start-offset-checkpoint") == b"0\n1\nt 0 7\n"
    assert disk.read_file("/data/replication-offset-checkpoint") == b"0\n1\nt 0 11\n"
    disk.kill()
    manager = start(disk)
    found = manager.get("t", 0)
    assert found is not None
    assert (found.log_start_offset, found.recovery_point) == (7, 12)
    assert manager.high_watermark("t", 0) == 11


def test_a_truncation_lowers_the_recovery_point_on_disk_first() -> None:
    disk = formatted()
    manager = start(disk)
    log = manager.create("t", 0, ID, SMALL)
    fill(log, 12)
    log.flush()
    manager.write_checkpoints()
    log.truncate_to(3)
    assert disk.read_file("/data/recovery-point-offset-checkpoint") == b"0\n1\nt 0 3\n"


def test_rolled_segments_are_flushed_and_what_is_older_than_flush_ms() -> None:
    manager = start(formatted())
    rolled = manager.create("rolled", 0, ID, SMALL, NOW_MS)
    late = manager.create("late", 0, ID, config(flush_ms=50), NOW_MS)
    idle = manager.create("idle", 0, ID, config(flush_ms=LONG_MAX), NOW_MS)
    fill(rolled, 6)
    append(late)
    append(idle)
    manager.flush_due(NOW_MS + 49)
    assert [one.recovery_point for one in (rolled, late, idle)] == [6, 0, 0]
    manager.flush_due(NOW_MS + 50)
    assert [one.recovery_point for one in (rolled, late, idle)] == [6, 1, 0]


def test_retention_deletes_segments_and_forgets_silent_producers() -> None:
    manager = start(formatted())
    old = manager.create("old", 0, ID, config(retention_ms=10))
    fill(old, 6)
    append(old, producer_id=1, producer_epoch=0, base_sequence=0)
    assert at_once(manager.retain(NOW_MS + 100, lambda one: 5)) == 1
    assert (old.log_start_offset, len(old.producers)) == (5, 1)
    assert at_once(expire_producers(manager, NOW_MS + 100, 101)) == 0
    assert at_once(expire_producers(manager, NOW_MS + 100, 100)) == 1
    assert len(old.producers) == 0


def test_a_failed_sync_takes_the_directory_offline_and_the_other_goes_on() -> None:
    disk = formatted("/data", "/more")
    manager = start(disk, "/data", "/more")
    broken, sound = manager.create("t", 0, ID, SMALL), manager.create("t", 1, ID, SMALL)
    told = list[str]()
    manager.on_offline = lambda directory: told.append(directory.path)
    fill(broken, 6)
    disk.fail_syncs = True
    manager.flush_due(NOW_MS)
    disk.fail_syncs = False
    assert told == ["/data"]
    with pytest.raises(BrokerError) as caught:
        append(broken)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    append(sound)
    assert [directory.path for directory in manager.online] == ["/more"]
    home = manager.create("t", 2, ID, SMALL)
    assert home.directory == "/more/t-2"
    manager.close()
    assert not disk.exists("/data/.kafka_cleanshutdown")
    assert disk.exists("/more/.kafka_cleanshutdown")


def test_with_every_directory_offline_nothing_can_be_created() -> None:
    disk = formatted()
    manager = start(disk)
    fill(manager.create("t", 0, ID, SMALL), 6)
    disk.fail_syncs = True
    manager.flush_due(NOW_MS)
    with pytest.raises(BrokerError, match="every log directory is offline"):
        manager.create("t", 1, ID, SMALL)


def test_a_clean_stop_needs_no_recovery() -> None:
    disk = formatted()
    manager = start(disk)
    log = manager.create("t", 0, ID, SMALL)
    fill(log, 12)
    manager.close(broker_epoch=5)
    assert b'"version": 0, "brokerEpoch": 5' in disk.read_file("/data/.kafka_cleanshutdown")
    disk.kill()
    manager = start(disk)
    assert manager.directories[0].broker_epoch == 5
    found = manager.get("t", 0)
    assert found is not None
    assert values(found) == [b"%d" % index + b"x" * 100 for index in range(12)]
    assert not disk.exists("/data/.kafka_cleanshutdown")


@pytest.mark.parametrize("is_full", [False, True], ids=["broken", "full"])
def test_a_directory_that_cannot_forget_a_former_log_is_failed_before_a_new_one_is_made_there(is_full: bool) -> None:
    disk = formatted("/data", "/more")
    manager = start(disk, "/data", "/more")
    fill(manager.create("t", 0, ID, SMALL), 3)
    manager.write_checkpoints(lambda opened: opened.log_end_offset)
    manager.delete("t", 0)
    assert manager.remembers_former("t", 0)
    disk.space_bytes, disk.fail_syncs = (0, False) if is_full else (None, True)
    manager.forget_former([PartitionName("t", 0)])
    disk.space_bytes, disk.fail_syncs = None, False
    assert [directory.path for directory in manager.online] == (["/data", "/more"] if is_full else ["/more"])
    assert manager.remembers_former("t", 0) == is_full
    if is_full:
        with pytest.raises(BrokerError, match="t-0: create"):
            manager.create("t", 0, OTHER_ID, SMALL)
        assert manager.remembers_former("t", 0), "a thread has to try first, now that there is room"
        manager.forget_former([PartitionName("t", 0)])
    assert manager.create("t", 0, OTHER_ID, SMALL).log_end_offset == 0


def test_a_stop_on_a_full_disk_is_not_clean_and_fails_no_directory() -> None:
    disk = formatted()
    manager = start(disk)
    log = manager.create("t", 0, ID, SMALL)
    fill(log, 3)
    lost = list[LogDirectory]()
    manager.on_offline = lost.append
    disk.space_bytes = 0
    manager.close(broker_epoch=5)
    assert (lost, disk.exists("/data/.kafka_cleanshutdown")) == ([], False)
    disk.space_bytes = None
    disk.kill()
    found = start(disk).get("t", 0)
    assert found is not None
    assert len(values(found)) == 3


@pytest.mark.parametrize("was_clean", [True, False])
def test_a_start_that_is_broken_off_leaves_everything_as_it_was(was_clean: bool) -> None:
    disk = formatted()
    manager = start(disk)
    fill(manager.create("t", 0, ID, SMALL), 12)
    manager.write_checkpoints()
    if was_clean:
        manager.close(broker_epoch=5)
    disk.kill()
    before = disk.read_file("/data/recovery-point-offset-checkpoint")
    start(disk, load=False).close(broker_epoch=-1)
    disk.kill()
    assert disk.read_file("/data/recovery-point-offset-checkpoint") == before
    (directory,) = start(disk).directories
    assert (directory.is_clean, directory.broker_epoch) == (was_clean, 5 if was_clean else None)


def test_a_log_that_could_not_be_opened_still_needs_its_recovery_and_its_checkpoints() -> None:
    disk = formatted()
    manager = start(disk)
    bad = manager.create("bad", 0, ID, SMALL)
    fill(bad, 12)
    bad.flush()
    bad.advance_start(7)
    manager.write_checkpoints(lambda one: 11)
    disk.write_file("/data/bad-0/partition.metadata", b"version: 9\n")
    disk.kill()
    manager = start(disk)
    manager.create("good", 0, ID, SMALL)
    manager.close(high_watermark_of=lambda one: 0)
    assert not disk.exists("/data/.kafka_cleanshutdown")
    partition_metadata.write(disk, "/data/bad-0", ID)
    disk.kill()
    manager = start(disk)
    found = manager.get("bad", 0)
    assert found is not None
    assert (found.log_start_offset, found.recovery_point, manager.high_watermark("bad", 0)) == (7, 12, 11)


@pytest.mark.parametrize("end", ["taken", "stopped", "aside"])
def test_a_thread_opens_again_a_log_that_found_no_descriptor(end: str) -> None:
    disk = formatted()
    manager = start(disk)
    fill(manager.create("t", 0, ID, SMALL), 7)
    disk.kill()
    disk.errors = [DiskError(frozenset({"read"}), "/data/t-0/00000000000000000000.log", errno.EMFILE, times=1)]
    manager = start(disk)
    assert names(manager) == []
    assert manager.awaits_reopening("t", 0)
    manager.reopen({PartitionName("t", 0): SMALL}, NOW_MS)
    assert not manager.awaits_reopening("t", 0), "once is enough"
    assert names(manager) == [], "the loop takes it"
    disk.errors = [DiskError(frozenset({"read"}), "/data/t-0")]  # nobody reads it again
    if end == "aside":
        manager.set_aside("t", 0)
        assert not disk.exists("/data/t-0")
        assert not manager.reopened
        return
    if end == "taken":
        assert manager.create("t", 0, ID, SMALL).log_end_offset == 7
    manager.close()
    disk.errors = []
    manager = start(disk)
    assert manager.directories[0].is_clean
    found = manager.get("t", 0)
    assert found is not None
    assert (found.log_end_offset, found.recovery_point) == (7, 7)
