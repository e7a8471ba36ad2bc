"""A full disk refuses appends and loses nothing; with room again, the log goes on."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.storage import recovery
from kavka_broker.storage.disk import RealDisk
from kavka_broker.storage.log import Log
from tests.unit.storage.support import NOW_MS, append, fill, new_disk, open_log, values


def append_until_full(log: Log) -> int:
    for count in range(100_000):
        try:
            append(log, bytes(100))
        except BrokerError as error:
            return count if error.code == ErrorCode.KAFKA_STORAGE_ERROR else -1
    raise AssertionError("the disk did not fill up")


def test_what_was_acknowledged_stays() -> None:
    disk = new_disk(space_bytes=3000)
    log = open_log(disk)
    count = append_until_full(log)
    assert count == log.log_end_offset > 10
    assert len(values(log)) == count
    disk.space_bytes = None
    append(log, b"room again")
    assert values(log)[-1] == b"room again"
    disk.kill()
    assert open_log(disk).log_end_offset == count + 1


def test_a_roll_that_finds_no_room_changes_nothing() -> None:
    disk = new_disk()
    log = open_log(disk)
    fill(log, 5)
    disk.space_bytes = 20  # enough for the last index entry, too little for a batch
    with pytest.raises(BrokerError):
        append(log, bytes(500))
    disk.space_bytes = None
    append(log, b"later")
    assert log.log_end_offset == 6
    disk.kill()
    assert open_log(disk).log_end_offset == 6


def test_a_log_that_cannot_be_cut_for_lack_of_room_is_whole_and_can_be_cut_later() -> None:
    disk = new_disk()
    log = open_log(disk)
    log.epochs.assign(1, 0)
    fill(log, 5)
    log.flush()
    disk.space_bytes = 0
    with pytest.raises(BrokerError):
        log.truncate_to(3)
    assert (log.log_end_offset, log.recovery_point, log.is_failed) == (5, 5, False)
    assert len(values(log)) == 5
    disk.space_bytes = None
    assert log.truncate_to(3)
    assert (log.log_end_offset, log.recovery_point) == (3, 3)


@pytest.mark.parametrize("space_bytes", range(0, 200, 8))
def test_whatever_room_is_left_a_cut_fails_no_log(space_bytes: int) -> None:
    disk = new_disk()
    log = open_log(disk, LogConfig(index_interval_bytes=100))
    fill(log, 40)
    log.flush()
    fill(log, 10)  # the entries of the indexes wait in memory, and are about to be dropped
    disk.space_bytes = space_bytes
    with suppress(BrokerError):
        log.truncate_to(30)
    assert not log.is_failed
    disk.space_bytes = None
    log.truncate_to(30)
    assert values(log) == [b"%d" % index + b"x" * 100 for index in range(30)]
    disk.kill()
    assert len(values(open_log(disk))) == 30


@pytest.mark.parametrize("space_bytes", range(0, 400, 8))
def test_whatever_room_is_left_a_log_that_begins_anew_does_not_fail(space_bytes: int) -> None:
    disk = new_disk()
    log = open_log(disk)
    log.epochs.assign(1, 0)
    fill(log, 12)
    log.flush()
    disk.space_bytes = space_bytes
    with suppress(BrokerError):
        log.start_at(500)
    assert not log.is_failed
    assert (log.log_start_offset, log.log_end_offset) in ((0, 12), (500, 500))
    disk.space_bytes = None
    log.start_at(500)
    append(log, b"later", epoch=1)
    disk.kill()
    log = open_log(disk, log_start_offset=500)
    assert values(log) == [b"later"]


def test_failing_writes_are_refused_too() -> None:
    disk = new_disk()
    log = open_log(disk)
    append(log)
    disk.fail_writes = True
    with pytest.raises(BrokerError) as caught:
        append(log)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.fail_writes = False
    append(log)
    assert log.log_end_offset == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", tmp_path], check=True)
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


@pytest.mark.root
def test_a_log_is_cut_on_a_real_full_disk_while_somebody_is_sent_its_end(small_disk: Path) -> None:
    log = recovery.open_log(RealDisk(), str(small_disk / "t-0"), LogConfig(), now_ms=NOW_MS)
    log.state.on_failed = lambda: pytest.fail("the directory goes offline")
    for _ in range(8):
        append(log, os.urandom(80_000))
    log.flush()
    sent = log.read(0, 600_000)
    before = [bytes(part) for part in sent.parts]
    ballast = small_disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    os.truncate(ballast, ballast.stat().st_size - 3 * 4096)  # the checkpoints find room, a copy does not
    assert log.truncate_to(5)
    assert (log.log_end_offset, len(values(log))) == (5, 5)
    assert [bytes(part) for part in sent.parts] == before
    log.abandon()


@pytest.mark.root
def test_a_log_on_a_real_full_disk_refuses_and_recovers(small_disk: Path) -> None:
    directory = small_disk / "t-0"
    log = recovery.open_log(RealDisk(), str(directory), LogConfig(), now_ms=NOW_MS)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(100_000))
    count = append_until_full(log)
    size = log.size_bytes
    assert (directory / f"{0:020d}.log").stat().st_size == size  # the torn append is cut away at once
    assert len(log.read(0, size).parts[0]) == size
    os.unlink(ballast)
    append(log, b"room again")
    log.close()
    log = recovery.open_log(RealDisk(), str(directory), LogConfig(), recover=False, now_ms=NOW_MS)
    assert log.log_end_offset == count + 1
    log.abandon()
