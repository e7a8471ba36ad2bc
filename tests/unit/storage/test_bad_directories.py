"""One bad log directory costs its replicas and nothing else: at a start, whatever its disk says, and in the end too."""

import errno
from collections.abc import Callable

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage import recovery
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import MetaProperties, UnusableDirectory, write_meta_properties
from kavka_broker.storage.log_manager import LogManager
from tests.support.sim_disk import DiskError, Operation, SimDisk
from tests.unit.storage.support import SMALL, append, fill, values
from tests.unit.storage.test_log_manager import ID, formatted, names, start

BOTH = ("/good", "/bad")


def with_a_log_in_each() -> SimDisk:
    disk = formatted(*BOTH)
    manager = start(disk, *BOTH)
    for partition in range(2):
        fill(manager.create("t", partition, ID, SMALL), 12)
    assert [one.directory for one in manager] == ["/good/t-0", "/bad/t-1"]
    manager.close(broker_epoch=5)
    disk.kill()
    return disk


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ELOOP, errno.ENOTDIR, errno.EROFS])
@pytest.mark.parametrize(
    ("operation", "path", "is_id_known"),
    [
        ("read", "/bad/meta.properties", False),
        ("lock", "/bad/.lock", True),
        ("read", "/bad/.kafka_cleanshutdown", True),
        ("remove", "/bad/.kafka_cleanshutdown", True),
        ("sync", "/bad/", True),
        ("read", "/bad/recovery-point-offset-checkpoint", True),
        ("read", "/bad/log-start-offset-checkpoint", True),
        ("read", "/bad/replication-offset-checkpoint", True),
        ("names", "/bad/", True),
        ("read", "/bad/t-1/partition.metadata", True),
        ("names", "/bad/t-1/", True),
        ("open", "/bad/t-1/", True),
    ],
)
def test_a_start_goes_on_without_it(number: int, operation: Operation, path: str, is_id_known: bool) -> None:
    disk = with_a_log_in_each()
    disk.errors.append(DiskError(frozenset({operation}), path, number))
    manager = start(disk, *BOTH)
    assert [one.path for one in manager.online] == ["/good"]
    assert (manager.directories[1].directory_id != ZERO) == is_id_known
    (log,) = [one for one in manager if not one.is_failed]
    assert (log.directory, len(values(log))) == ("/good/t-0", 12)
    with pytest.raises(BrokerError):
        append_to(manager, "t", 1)
    append(log, b"more")
    manager.close(broker_epoch=6)
    assert not disk.exists("/bad/.kafka_cleanshutdown") or operation in ("read", "lock", "remove")
    disk.kill()
    disk.errors.clear()
    manager = start(disk, *BOTH)
    assert names(manager) == ["t-0", "t-1"]
    assert [len(values(one)) for one in manager] == [13, 12]


def append_to(manager: LogManager, topic: str, partition: int) -> None:
    log = manager.get(topic, partition)
    if log is None:
        manager.create(topic, partition, ID, SMALL, directory_id=manager.directories[1].directory_id)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "it is a new log, in another directory")
    append(log, b"refused")


def test_a_volume_that_is_not_mounted_is_a_new_directory() -> None:
    """As in Apache Kafka. What was on it has another directory id, so that nothing here is taken for it."""
    disk = with_a_log_in_each()
    former = start(disk, *BOTH).directories[1].directory_id
    disk.kill()
    volume = disk.detach("/bad")
    manager = start(disk, *BOTH)
    assert [one.path for one in manager.online] == list(BOTH)
    assert manager.directories[1].directory_id != former
    disk.kill()
    disk.attach("/bad", volume)
    assert names(start(disk, *BOTH)) == ["t-0", "t-1"]


def test_one_that_cannot_be_claimed_is_left_out() -> None:
    disk = formatted("/good")
    disk.errors.append(DiskError(frozenset({"make_directory", "write"}), "/bad", errno.EROFS))
    manager = start(disk, *BOTH)
    assert [one.is_online for one in manager.directories] == [True, False]


def test_without_any_directory_there_is_no_start() -> None:
    disk = with_a_log_in_each()
    disk.errors.append(DiskError(frozenset({"read"}), "/", errno.EIO))
    with pytest.raises(UnusableDirectory, match=r"no log directory can be used \(/good: .*; /bad: "):
        start(disk, *BOTH)


@pytest.mark.parametrize("meta", [MetaProperties("other", 1, b"x" * 16), MetaProperties("cluster", 2, b"x" * 16)])
def test_one_that_belongs_to_others_is_refused_beside_one_that_cannot_be_read(meta: MetaProperties) -> None:
    disk = formatted("/a", "/b")
    write_meta_properties(disk, "/b", meta)
    disk.errors.append(DiskError(frozenset({"read"}), "/c", errno.EIO))
    with pytest.raises(UnusableDirectory, match="/b belongs to"):
        start(disk, "/a", "/b", "/c")
    assert disk.locks == {}


def test_one_that_is_locked_is_refused() -> None:
    disk = formatted(*BOTH)
    start(disk, "/bad", load=False)
    with pytest.raises(UnusableDirectory, match="locked"):
        start(disk, *BOTH)


# --- a log that cannot be opened --------------------------------------------------------------------------------------


def newer_metadata(disk: SimDisk) -> None:
    disk.write_file("/data/bad-0/partition.metadata", b"version: 9\n")


def binary_metadata(disk: SimDisk) -> None:
    disk.write_file("/data/bad-0/partition.metadata", b"\xff\xfe\x00")


@pytest.mark.parametrize("harm", [newer_metadata, binary_metadata])
def test_a_log_that_cannot_be_read_takes_no_other_along(harm: Callable[[SimDisk], None]) -> None:
    disk = formatted()
    manager = start(disk)
    for topic in ("bad", "good"):
        fill(manager.create(topic, 0, ID, SMALL), 12)
    harm(disk)
    disk.kill()
    manager = start(disk)
    assert (names(manager), len(manager.online)) == (["good-0"], 1)
    assert manager.unusable("bad", 0) is not None


@pytest.mark.parametrize(
    "problem", [ValueError("no such position"), BrokerError(ErrorCode.CORRUPT_MESSAGE), ProtocolViolation("torn")]
)
def test_a_log_that_cannot_be_read_is_left_out_whatever_the_error_is(
    problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = formatted()
    manager = start(disk)
    for topic in ("bad", "good"):
        fill(manager.create(topic, 0, ID, SMALL), 12)
    disk.kill()
    raise_for(monkeypatch, problem)
    assert names(start(disk)) == ["good-0"]


def test_a_defect_of_ours_is_not_hidden_as_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = formatted()
    start(disk).create("bad", 0, ID, SMALL)
    disk.kill()
    raise_for(monkeypatch, KeyError("a defect"))
    with pytest.raises(KeyError):
        start(disk)


def raise_for(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    opened = recovery.open_log

    def refuse(disk: SimDisk, directory: str, *rest: object, **how: object) -> Log:
        if "bad" in directory:
            raise problem
        return opened(disk, directory, *rest, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(recovery, "open_log", refuse)


def test_a_log_that_found_no_room_is_opened_when_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = formatted()
    fill(start(disk).create("bad", 0, ID, SMALL), 12)
    disk.kill()
    with monkeypatch.context() as patch:
        raise_for(patch, OSError(errno.ENOSPC, "No space left on device"))
        manager = start(disk)
        with pytest.raises(BrokerError) as caught:
            manager.create("bad", 0, ID, SMALL)
        assert isinstance(caught.value.__cause__, OSError)
    assert len(manager.online) == 1
    assert len(values(manager.create("bad", 0, ID, SMALL))) == 12
