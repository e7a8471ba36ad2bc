"""A log is its topic's id: whatever fails, no record of a topic is ever served under another one of its name."""

import errno
import threading
from dataclasses import replace
from random import Random

import pytest

from kavka_broker.protocol.errors import BrokerError
from kavka_broker.storage import partition_metadata
from kavka_broker.storage.file_names import DELETE_DIRECTORY, SINCE, STRAY_DIRECTORY
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.log_manager import LogManager
from tests.support.sim_disk import DiskError, SimDisk
from tests.unit.storage.support import NOW_MS, SMALL, append, fill, free, values
from tests.unit.storage.test_log_manager import ID, OTHER_ID, formatted, names, start

DAY_MS = 24 * 3600 * 1000


def with_records(disk: SimDisk, *paths: str) -> LogManager:
    manager = start(disk, *paths)
    fill(manager.create("t", 0, ID, SMALL), 12)
    return manager


def entries(disk: SimDisk, suffix: str, path: str = "/data") -> list[str]:
    return [name for name in disk.names(path) if name.endswith(suffix)]


def no_room(*operations: str, under: str = "/data", times: int | None = None) -> DiskError:
    return DiskError(frozenset(operations), under, errno.ENOSPC, times)  # type: ignore[arg-type]


# --- a rename that fails ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deleted", [True, False])
def test_a_log_that_a_full_disk_does_not_let_go_keeps_its_name_from_the_next_topic(deleted: bool) -> None:
    disk = formatted()
    manager = with_records(disk)
    disk.errors.append(no_room("rename"))
    if deleted:
        manager.delete("t", 0)
    with pytest.raises(BrokerError, match="could not be set aside") as caught:
        manager.create("t", 0, OTHER_ID, SMALL)
    assert isinstance(caught.value.__cause__, OSError)  # so it is tried again
    assert manager.online
    disk.errors.clear()
    free(manager)
    log = manager.create("t", 0, OTHER_ID, SMALL)
    assert (log.log_end_offset, log.topic_id) == (0, OTHER_ID)


def test_a_deleted_log_is_freed_where_it_is_if_its_name_cannot_be_changed() -> None:
    disk = formatted()
    manager = with_records(disk)
    disk.errors.append(no_room("rename"))
    manager.delete("t", 0)
    manager.remove_deleted(NOW_MS)
    assert not [name for name in disk.names("/data") if name.startswith("t-0")]
    assert manager.create("t", 0, OTHER_ID, SMALL).log_end_offset == 0


def test_a_stray_is_not_freed_because_its_name_cannot_be_changed() -> None:
    disk = formatted()
    manager = with_records(disk)
    disk.errors.append(no_room("rename"))
    manager.set_aside("t", 0)
    manager.remove_deleted(NOW_MS)
    assert "00000000000000000000.log" in disk.names("/data/t-0")
    disk.errors.clear()
    manager.remove_deleted(NOW_MS)
    assert len(entries(disk, STRAY_DIRECTORY)) == 1


@pytest.mark.parametrize("removed_files", range(12))
def test_half_of_a_removed_log_is_never_taken_for_the_log(removed_files: int) -> None:
    """Its topic goes on elsewhere, and its replica comes back here: a piece of it would pass for all of it."""
    disk = formatted()
    manager = with_records(disk)
    disk.errors = [no_room("rename"), DiskError(frozenset({"remove"}), "/data/t-0/", errno.EBUSY)]
    manager.delete("t", 0)
    manager.remove_deleted(NOW_MS)  # ends at the first removal, behind the mark
    disk.errors.clear()
    for name in [one for one in disk.names("/data/t-0") if one != "partition.metadata"][:removed_files]:
        disk.remove(f"/data/t-0/{name}")
    disk.crash(Random(removed_files))
    manager = start(disk)
    assert names(manager) == []
    assert manager.create("t", 0, ID, SMALL).log_end_offset == 0


def test_a_rename_that_fails_otherwise_is_a_failed_directory() -> None:
    disk = formatted("/data", "/more")
    manager = with_records(disk, "/data", "/more")
    disk.errors.append(DiskError(frozenset({"rename"}), "/data"))
    manager.delete("t", 0)
    assert [one.path for one in manager.online] == ["/more"]
    assert manager.create("t", 0, OTHER_ID, SMALL).directory == "/more/t-0"


def test_while_a_log_is_in_the_way_the_next_topic_goes_to_another_directory() -> None:
    disk = formatted("/data", "/more")
    manager = with_records(disk, "/data", "/more")
    disk.errors.append(no_room("rename"))
    manager.delete("t", 0)
    assert manager.create("t", 0, OTHER_ID, SMALL).directory == "/more/t-0"
    disk.kill()
    disk.errors.clear()
    manager = start(disk, "/data", "/more", topic_id=OTHER_ID)
    assert [one.directory for one in manager] == ["/more/t-0"]


# --- what is on the disk counts --------------------------------------------------------------------------------------


def test_a_directory_that_nobody_knows_of_is_never_opened_for_a_new_log() -> None:
    disk = formatted()
    manager = start(disk)
    foreign = with_records(formatted())
    assert foreign.get("t", 0) is not None
    partition_metadata_of(disk, ID)
    disk.write_file("/data/t-0/00000000000000000000.log", b"records of somebody")
    log = manager.create("t", 0, ID, SMALL)
    assert log.log_end_offset == 0
    assert len(entries(disk, STRAY_DIRECTORY)) == 1


def partition_metadata_of(disk: SimDisk, topic_id: bytes) -> None:
    disk.make_directory("/data/t-0")
    partition_metadata.write(disk, "/data/t-0", topic_id)


@pytest.mark.parametrize("content", [None, b"", b"version: 0\ntopic", bytes(44)])
def test_records_without_an_id_belong_to_nobody(content: bytes | None) -> None:
    disk = formatted()
    with_records(disk)
    disk.remove("/data/t-0/partition.metadata")
    if content is not None:
        disk.write_file("/data/t-0/partition.metadata", content)
    disk.kill()
    manager = start(disk, topic_id=ID)
    assert names(manager) == []
    with pytest.raises(BrokerError, match="has records and no topic id"):
        manager.create("t", 0, ID, SMALL)
    assert manager.create("t", 0, OTHER_ID, SMALL).log_end_offset == 0
    assert len(entries(disk, STRAY_DIRECTORY)) == 1


def test_one_that_was_replaced_elsewhere_can_begin_anew() -> None:
    disk = formatted()
    with_records(disk)
    disk.remove("/data/t-0/partition.metadata")
    disk.kill()
    manager = start(disk, topic_id=ID)
    assert manager.unusable("t", 0) is not None
    manager.set_aside("t", 0)
    assert manager.create("t", 0, ID, SMALL).log_end_offset == 0


def test_a_log_without_an_id_that_never_held_a_record_goes() -> None:
    disk = formatted()
    manager = start(disk)
    manager.create("t", 0, ID, SMALL).epochs.assign(7, 0)
    disk.write_file("/data/t-0/partition.metadata", b"")
    disk.kill()
    manager = start(disk, topic_id=OTHER_ID)
    log = manager.create("t", 0, OTHER_ID, SMALL)
    assert (log.topic_id, log.log_end_offset, log.epochs.latest) == (OTHER_ID, 0, -1)


# --- a loss of power -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("in_thread", [True, False])
def test_no_record_survives_a_loss_of_power_without_the_id_of_its_topic(seed: int, in_thread: bool) -> None:
    disk = formatted()
    manager = start(disk)
    log = manager.create("t", 0, ID, SMALL)
    if in_thread:
        manager.secure()
        assert not manager.has_unsecured
    append(log, b"record")
    disk.crash(Random(seed))
    assert partition_metadata.read(disk, "/data/t-0") == ID


@pytest.mark.parametrize("seed", range(20))
def test_nor_does_one_that_a_follower_has_fetched_behind_the_start_of_its_leader(seed: int) -> None:
    disk = formatted()
    manager = start(disk)
    manager.create("t", 0, ID, SMALL).start_at(500)
    disk.crash(Random(seed))
    assert partition_metadata.read(disk, "/data/t-0") == ID


def test_a_process_that_was_killed_in_between_leaves_it_to_the_next() -> None:
    disk = formatted()
    start(disk).create("t", 0, ID, SMALL)
    disk.kill()
    manager = start(disk)
    assert manager.has_unsecured
    log = manager.get("t", 0)
    assert log is not None
    append(log, b"record")
    for seed in range(20):
        disk.crash(Random(seed))
        assert partition_metadata.read(disk, "/data/t-0") == ID


def test_an_id_that_cannot_be_synced_lets_no_record_in() -> None:
    disk = formatted()
    manager = start(disk)
    log = manager.create("t", 0, ID, SMALL)
    disk.errors.append(DiskError(frozenset({"sync"}), "/data"))
    with pytest.raises(BrokerError):
        append(log, b"record")
    assert (log.log_end_offset, log.is_failed, manager.online) == (0, True, [])


def test_what_came_into_the_place_of_a_log_that_has_vanished_is_not_freed() -> None:
    disk = formatted()
    manager = start(disk)
    manager.create("t", 0, ID, replace(SMALL, file_delete_delay_ms=0))
    disk.errors.append(no_room("rename"))
    manager.delete("t", 0)
    disk.errors.clear()
    disk.overwrite("/data/t-0", None)  # a user removes it
    names_of = disk.names

    def made_first(path: str) -> list[str]:
        # The loop makes the next log while the thread frees.
        disk.names = names_of  # type: ignore[method-assign]
        fill(manager.create("t", 0, OTHER_ID, SMALL), 3)
        return names_of(path)

    disk.names = made_first  # type: ignore[method-assign]
    manager.remove_deleted(NOW_MS)
    disk.names = names_of  # type: ignore[method-assign]
    log = manager.create("t", 0, OTHER_ID, SMALL)
    fill(log, 3 - log.log_end_offset)
    assert (len(values(log)), disk.exists("/data/t-0"), manager.has_deleted) == (3, True, False)


# --- a former topic whose directory is away ---------------------------------------------------------------------------


def test_the_next_topic_of_the_name_comes_while_the_directory_of_the_former_is_offline() -> None:
    disk = formatted("/data", "/more")
    manager = with_records(disk, "/data", "/more")
    disk.fail_syncs, disk.fail_under = True, "/data"
    manager.flush_due(NOW_MS)
    disk.fail_syncs = False
    with pytest.raises(BrokerError, match="offline"):
        manager.create("t", 0, ID, SMALL)
    assert manager.create("t", 0, OTHER_ID, SMALL).directory == "/more/t-0"
    manager.close()
    disk.kill()
    manager = start(disk, "/data", "/more", topic_id=OTHER_ID)
    assert [one.directory for one in manager] == ["/more/t-0"]
    assert len(entries(disk, STRAY_DIRECTORY)) == 1


def test_the_next_topic_of_the_name_comes_while_the_former_log_is_unusable() -> None:
    disk = formatted()
    with_records(disk)
    disk.errors = [DiskError(frozenset({"read"}), "/data/t-0/leader-epoch-checkpoint", errno.EMFILE, times=2)]
    disk.kill()
    manager = start(disk)
    with pytest.raises(BrokerError, match="Too many open files"):
        manager.create("t", 0, ID, SMALL)
    assert manager.create("t", 0, OTHER_ID, SMALL).log_end_offset == 0


# --- half made, and twins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("can_undo", [True, False])
@pytest.mark.parametrize("operation", ["make_directory", "write", "open"])
def test_a_log_that_was_only_begun_is_undone_or_known_for_it(number: int, can_undo: bool, operation: str) -> None:
    disk = formatted("/data", "/more")
    manager = start(disk, "/data", "/more")
    manager.create("x", 0, ID, SMALL)
    undo = [] if can_undo else [DiskError(frozenset({"remove"}), "/more/")]
    disk.errors = [DiskError(frozenset({operation}), "/more/t-0", number), *undo]  # type: ignore[arg-type]
    with pytest.raises(BrokerError):
        manager.create("t", 0, OTHER_ID, SMALL)
    assert not can_undo or "t-0" not in disk.names("/more")
    manager.create("y", 0, ID, SMALL, directory_id=manager.directories[0].directory_id)
    manager.delete("x", 0)
    manager.delete("y", 0)
    log = manager.create("t", 0, OTHER_ID, SMALL, directory_id=manager.directories[0].directory_id)
    fill(log, 3)
    manager.close()
    disk.errors.clear()
    disk.kill()
    manager = start(disk, "/data", "/more", topic_id=OTHER_ID)
    assert [(one.directory, one.log_end_offset) for one in manager] == [("/data/t-0", 3)]


def test_of_two_logs_the_one_of_the_topic_that_the_cluster_knows_is_kept() -> None:
    """A directory was away while the topic was deleted and made again."""
    disk = formatted("/data", "/more")
    with_records(disk, "/data")
    disk.kill()
    fill(start(disk, "/more").create("t", 0, OTHER_ID, SMALL), 3)
    disk.kill()
    for _ in range(2):
        manager = start(disk, "/data", "/more", topic_id=OTHER_ID)
        assert [(one.directory, one.log_end_offset) for one in manager] == [("/more/t-0", 3)]
        disk.kill()
    assert len(entries(disk, STRAY_DIRECTORY)) == 1


def test_two_logs_that_the_cluster_does_not_know_are_no_reason_not_to_start() -> None:
    disk = formatted("/data", "/more")
    with_records(disk, "/data")
    disk.kill()
    fill(start(disk, "/more").create("t", 0, OTHER_ID, SMALL), 3)
    disk.kill()
    manager = start(disk, "/data", "/more", topic_id=b"\3" * 16)
    manager.remove_strays([])
    assert names(manager) == []
    assert [len(entries(disk, STRAY_DIRECTORY, path)) for path in ("/data", "/more")] == [1, 1]


# --- freed in time ----------------------------------------------------------------------------------------------------


def test_a_deleted_log_is_freed_after_its_delay_and_at_once_on_a_full_disk() -> None:
    disk = formatted()
    manager = with_records(disk)
    manager.delete("t", 0)
    manager.remove_deleted(NOW_MS)
    manager.remove_deleted(NOW_MS + 59_999)
    assert len(entries(disk, DELETE_DIRECTORY)) == 1
    disk.space_bytes = 0
    manager.remove_deleted(NOW_MS + 59_999)
    assert entries(disk, DELETE_DIRECTORY) == []
    assert not manager.has_deleted


def test_a_stray_is_kept_for_its_time_over_restarts_and_then_freed() -> None:
    disk = formatted()
    manager = with_records(disk)
    manager.remove_strays([])
    for day in range(7):
        manager.remove_deleted(NOW_MS + day * DAY_MS)
        assert len(entries(disk, STRAY_DIRECTORY)) == 1
        disk.kill()
        manager = start(disk)
    assert manager.aside.count(manager.directories[0], STRAY_DIRECTORY)[0] == 1
    manager.remove_deleted(NOW_MS + 7 * DAY_MS)
    assert entries(disk, STRAY_DIRECTORY) == []


def test_a_stray_of_which_nobody_knows_since_when_is_kept_for_all_of_its_time() -> None:
    """One that Apache Kafka, or an earlier release, has left; however old its files are."""
    disk = formatted()
    disk.make_directory("/data/t-0.abc-stray")
    disk.write_file("/data/t-0.abc-stray/00000000000000000000.log", b"x" * 100)
    manager = start(disk)
    manager.remove_deleted(NOW_MS + 100 * DAY_MS)
    assert disk.read_file(f"/data/t-0.abc-stray/{SINCE}") == b"%d\n" % (NOW_MS + 100 * DAY_MS)
    manager.remove_deleted(NOW_MS + 107 * DAY_MS - 1)
    assert manager.aside.count(manager.directories[0], STRAY_DIRECTORY) == (1, 100)
    manager.remove_deleted(NOW_MS + 107 * DAY_MS)
    assert not manager.has_deleted


def test_what_cannot_be_removed_is_tried_again() -> None:
    disk = formatted()
    manager = with_records(disk)
    manager.delete("t", 0)
    disk.errors.append(DiskError(frozenset({"remove"}), "/data/t-0", times=2))
    for seconds in (0, 60, 62):
        manager.remove_deleted(NOW_MS + seconds * 1000)
        assert manager.has_deleted
    manager.remove_deleted(NOW_MS + 64_000)
    assert not manager.has_deleted


# --- names that are used again ----------------------------------------------------------------------------------------


class Watched:
    """A lock that tells when somebody has to wait for it."""

    def __init__(self, awaited: threading.Event) -> None:
        self._lock = threading.Lock()
        self._awaited = awaited

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._awaited.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()


def test_a_checkpoint_that_a_thread_is_writing_says_nothing_of_the_new_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread has looked at the logs; the topic is deleted and made again; only then the thread writes."""
    disk = formatted()
    manager = start(disk)
    old = manager.create("t", 0, ID, SMALL)
    fill(old, 20)
    old.advance_start(18)
    (directory,) = manager.directories
    looked, overtaken = threading.Event(), threading.Event()
    monkeypatch.setattr(directory, "checkpoint_lock", Watched(overtaken))
    logs_in = manager._logs_in

    def look(which: LogDirectory) -> list[Log]:
        logs = logs_in(which)
        if not looked.is_set():
            looked.set()
            overtaken.wait()
        return logs

    monkeypatch.setattr(manager, "_logs_in", look)
    writing = threading.Thread(target=manager.write_checkpoints)
    writing.start()
    looked.wait()
    manager.delete("t", 0)
    new = manager.create("t", 0, OTHER_ID, SMALL)
    overtaken.set()
    writing.join()
    append(new, b"acknowledged")
    disk.kill()
    found = start(disk).get("t", 0)
    assert found is not None
    assert values(found) == [b"acknowledged"]


def test_what_is_only_being_synced_does_not_count_as_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread has begun to sync the names of a new segment; the loop flushes the records in it."""
    disk = formatted()
    log = start(disk).create("t", 0, ID, SMALL)
    append(log, b"first")
    log.flush()
    fill(log, 6)
    begun, overtaken = threading.Event(), threading.Event()
    monkeypatch.setattr(log.durability, "_sync_lock", Watched(overtaken), raising=False)
    sync_directory = disk.sync_directory
    synced = list[str]()

    def sync_slowly(path: str) -> None:
        if not begun.is_set():
            begun.set()
            overtaken.wait()
        sync_directory(path)
        synced.append(path)

    disk.sync_directory = sync_slowly  # type: ignore[method-assign]
    syncing = threading.Thread(target=log.flush)
    syncing.start()
    begun.wait()
    append(log, b"last")
    log.flush()
    assert (log.recovery_point, "/data/t-0" in synced) == (8, True)
    overtaken.set()
    syncing.join()
