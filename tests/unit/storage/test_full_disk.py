"""A full disk refuses appends and loses nothing; with room again, the log goes on."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.errors import BrokerError, ErrorCode
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
    log.assign_epoch(1, 0)
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
def test_a_real_full_disk(small_disk: Path) -> None:
    directory = small_disk / "t-0"
    log = Log.open(RealDisk(), str(directory), LogConfig(), now_ms=NOW_MS)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(100_000))
    count = append_until_full(log)
    size = log.size_bytes
    assert (directory / f"{0:020d}.log").stat().st_size == size  # the torn append is cut away at once
    assert len(log.read(0, size).parts[0]) == size
    os.unlink(ballast)
    append(log, b"room again")
    log.close()
    log = Log.open(RealDisk(), str(directory), LogConfig(), recover=False, now_ms=NOW_MS)
    assert log.log_end_offset == count + 1
    log.abandon()
