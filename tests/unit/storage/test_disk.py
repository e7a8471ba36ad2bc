"""The seam to the operating system, and the disk that loses power."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from kavka_broker.storage.disk import PREAD_BYTES_MAX, RealDisk
from tests.support.sim_disk import SECTOR_BYTES, DiskError, SimDisk

DISK = RealDisk()
LARGE = PREAD_BYTES_MAX + 1


def test_a_file_grows_and_is_read(tmp_path: Path) -> None:
    file = DISK.open(str(tmp_path / "f"))
    file.append(b"hello ")
    file.append(memoryview(bytearray(b"world")))
    assert file.size == 11
    assert bytes(file.read(0, 11)) == b"hello world"
    assert bytes(file.read(6, 3)) == b"wor"
    assert bytes(file.read(4, 0)) == b""
    with pytest.raises(ValueError, match="11 bytes"):
        file.read(5, 7)
    file.close()
    assert DISK.open(str(tmp_path / "f")).size == 11
    with pytest.raises(ValueError, match="closed"):
        file.append(b"x")


def test_what_is_written_is_not_for_every_user_of_the_machine(tmp_path: Path) -> None:
    """The metadata log has the salted keys of SCRAM users."""
    before = os.umask(0o022)
    try:
        top = tmp_path / "logs"
        DISK.make_directory(str(top / "orders-0"))
        DISK.make_directory(str(top / "orders-1"))
        DISK.open(str(top / "orders-0" / "00000000000000000000.log")).append(b"x")
        DISK.write_file(str(top / "meta.properties"), b"version=1")
        DISK.lock(str(top / ".lock"))
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in top.rglob("*")}
    assert modes == {
        "orders-0": 0o750,
        "orders-1": 0o750,
        "00000000000000000000.log": 0o640,
        "meta.properties": 0o640,
        ".lock": 0o640,
    }


def test_a_map_grows_with_the_file(tmp_path: Path) -> None:
    file = DISK.open(str(tmp_path / "f"))
    file.append(bytes(LARGE))
    mapped = file.read(0, LARGE)
    file.append(b"tail")
    assert bytes(file.read(LARGE, 4)) == b"tail"
    file.append(bytes(LARGE))
    assert bytes(file.read(0, 2 * LARGE + 4)[LARGE : LARGE + 4]) == b"tail"
    assert len(mapped) == LARGE


def test_views_survive_release_close_and_removal(tmp_path: Path) -> None:
    path = tmp_path / "f"
    file = DISK.open(str(path))
    file.append(b"x" * LARGE)
    view = file.read(0, LARGE)
    file.release()
    assert bytes(file.read(0, 3)) == b"xxx"
    file.close()
    path.unlink()
    assert bytes(view) == b"x" * LARGE


def test_truncate_in_place_where_nobody_reads(tmp_path: Path) -> None:
    path = tmp_path / "f"
    file = DISK.open(str(path))
    file.append(b"x" * LARGE)
    assert len(file.read(0, LARGE)) == LARGE
    inode = path.stat().st_ino
    file.truncate(3)
    assert (path.stat().st_size, path.stat().st_ino, file.size) == (3, inode, 3)
    file.truncate(99)
    assert file.size == 3


@pytest.mark.parametrize("cuts", [(5,), (4096,), (70_000, 50_000, 5), (5, 5)])
def test_truncate_beside_a_reader_leaves_its_bytes_alone(tmp_path: Path, cuts: tuple[int, ...]) -> None:
    """Not a page of what the reader holds may go: touching it would end the process."""
    path = tmp_path / "f"
    file = DISK.open(str(path))
    content = bytes(index * 7 % 251 for index in range(3 * LARGE))
    file.append(content)
    inode = path.stat().st_ino
    view = file.read(100, 3 * LARGE - 100)
    for cut in cuts:
        file.truncate(cut)
        file.append(b"new" * 30_000)
        assert bytes(view) == content[100:]
        assert bytes(file.read(0, cut)) == content[:cut]
        assert bytes(file.read(cut, 90_000)) == b"new" * 30_000
    assert path.read_bytes() == content[: cuts[-1]] + b"new" * 30_000
    assert (os.listdir(tmp_path), path.stat().st_ino) == (["f"], inode)


def test_each_of_several_readers_keeps_what_it_was_given(tmp_path: Path) -> None:
    file = DISK.open(str(tmp_path / "f"))
    file.append(b"a" * LARGE)
    first = file.read(0, LARGE)
    file.append(b"b" * LARGE)
    second = file.read(0, 2 * LARGE)
    file.truncate(LARGE // 2)
    del first
    file.append(b"c" * LARGE)
    third = file.read(0, LARGE)
    file.truncate(10)
    assert bytes(second) == b"a" * LARGE + b"b" * LARGE
    assert bytes(third) == b"a" * (LARGE // 2) + b"c" * (LARGE - LARGE // 2)


@contextmanager
def file_bytes_at_most(size: int) -> Iterator[None]:
    """No file of this process may grow beyond it; one up to there takes a part, as on a disk that is nearly full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_append_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = DISK.open(str(tmp_path / "f"))
    file.append(b"kept")
    with file_bytes_at_most(7), pytest.raises(OSError, match="File too large"):
        file.append(b"torn apart")
    assert (tmp_path / "f").read_bytes() == b"kept"
    file.append(b" again")
    assert (tmp_path / "f").read_bytes() == b"kept again"


def test_a_short_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DISK.open(str(tmp_path / "f"))
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, position: real(fd, data[:3], position))
    file.append(b"in small steps")
    assert (tmp_path / "f").read_bytes() == b"in small steps"


def test_a_sync_beside_a_close_does_no_harm(tmp_path: Path) -> None:
    file = DISK.open(str(tmp_path / "f"))
    file.append(b"x")
    file.sync()
    file.close()
    os.unlink(tmp_path / "f")
    file.sync()


def test_write_file_replaces_as_a_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    DISK.write_file(path, b"one")
    DISK.write_file(path, b"two", durable=False)
    assert DISK.read_file(path) == b"two"
    assert DISK.names(str(tmp_path)) == ["f"]


def test_a_file_of_which_the_disk_takes_only_a_part_replaces_nothing(tmp_path: Path) -> None:
    """As where there is little room left: the first call of the system writes less than it was given."""
    path = str(tmp_path / "f")
    DISK.write_file(path, b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            DISK.write_file(path, bytes(3000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert DISK.read_file(path) == b"old"


def test_a_lock_keeps_another_process_out(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = DISK.lock(path)
    attempt = f"from kavka_broker.storage.disk import RealDisk; RealDisk().lock({path!r})"
    done = subprocess.run([sys.executable, "-c", attempt], capture_output=True, text=True, check=False)
    assert "BlockingIOError" in done.stderr
    lock.release()
    subprocess.run([sys.executable, "-c", attempt], check=True)


# --- the simulated one ----------------------------------------------------------------------------------------------


def simulated() -> SimDisk:
    disk = SimDisk()
    disk.make_directory("/d")
    disk.sync_directory("/d")
    return disk


def outcomes(disk_of: object, path: str) -> set[bytes | None]:
    """What a file may be after a crash, over many seeds."""
    found = set[bytes | None]()
    for seed in range(300):
        disk = disk_of()  # type: ignore[operator]
        disk.crash(Random(seed))
        found.add(disk.read_file(path) if disk.exists(path) else None)
    return found


def test_what_was_synced_survives() -> None:
    def written() -> SimDisk:
        disk = simulated()
        file = disk.open("/d/f")
        file.append(b"synced")
        file.sync()
        disk.sync_directory("/d")
        file.append(b"!")
        return disk

    assert outcomes(written, "/d/f") == {b"synced", b"synced!", b"synced\0"}


def test_what_was_not_synced_may_be_lost_torn_or_there() -> None:
    def written() -> SimDisk:
        disk = simulated()
        disk.open("/d/f").append(b"a" * SECTOR_BYTES + b"b" * SECTOR_BYTES)
        return disk

    found = outcomes(written, "/d/f")
    assert {None, b"", b"a" * SECTOR_BYTES + b"b" * SECTOR_BYTES} < found
    assert bytes(SECTOR_BYTES) + b"b" * SECTOR_BYTES in found  # the second sector came first


def test_a_durable_file_is_old_or_new() -> None:
    def written() -> SimDisk:
        disk = simulated()
        disk.write_file("/d/f", b"old")
        disk.write_file("/d/f", b"new, but its name may not have reached the disk", durable=False)
        return disk

    assert b"old" in outcomes(written, "/d/f")
    disk = simulated()
    disk.write_file("/d/f", b"durable")
    disk.crash(Random(1))
    assert disk.read_file("/d/f") == b"durable"


def test_handles_die_with_their_process() -> None:
    disk = simulated()
    file = disk.open("/d/f")
    lock = disk.lock("/d/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock("/d/.lock")
    disk.kill()
    with pytest.raises(ValueError, match="before the crash"):
        file.append(b"x")
    disk.lock("/d/.lock")
    lock.release()


def test_names_move_and_go() -> None:
    disk = simulated()
    disk.open("/d/sub")
    with pytest.raises(FileNotFoundError):
        disk.open("/none/f")
    disk.make_directory("/d/x/y")
    disk.open("/d/x/y/f").append(b"1")
    disk.rename("/d/x", "/d/z")
    assert disk.names("/d") == ["sub", "z"]
    assert disk.read_file("/d/z/y/f") == b"1"
    with pytest.raises(OSError, match="not empty"):
        disk.remove_directory("/d/z/y")
    disk.remove("/d/z/y/f")
    disk.remove_directory("/d/z/y")
    disk.remove_directory("/d/z")
    disk.remove("/d/sub")
    assert disk.names("/d") == []
    with pytest.raises(FileNotFoundError):
        disk.names("/d/z")


def test_slices_of_an_earlier_map_outlive_a_truncation(tmp_path: Path) -> None:
    """The file is mapped again when it has grown; what a slow reader holds may be of any map before."""
    file = RealDisk().open(str(tmp_path / "file"))
    file.append(b"a" * 200_000)
    early = file.read(0, 100_000)
    file.append(b"a" * 200_000)
    file.read(0, 400_000)
    file.truncate(10)
    file.append(b"b" * 400_000)
    assert early == b"a" * 100_000
    released = file.read(0, 100_000)
    file.release()
    file.truncate(5)
    file.append(b"c" * 400_000)
    assert released == b"a" * 10 + b"b" * 99_990


def test_a_call_fails_as_often_as_it_is_told_to() -> None:
    disk = simulated()
    disk.make_directory("/d/t-0")
    disk.errors = [DiskError(frozenset({"rename"}), under="/d/t-0", number=errno.ENOSPC, times=1)]
    with pytest.raises(OSError, match="No space left"):
        disk.rename("/d/t-0", "/d/t-0-delete")
    disk.rename("/d/t-0", "/d/t-0-delete")
    assert disk.names("/d") == ["t-0-delete"]


def test_an_error_meets_what_lies_under_its_path_alone() -> None:
    disk = simulated()
    disk.make_directory("/e")
    disk.errors = [DiskError(frozenset({"names", "make_directory", "open", "read"}), under="/d/")]
    assert disk.names("/e") == []
    failing = (lambda: disk.names("/d"), lambda: disk.make_directory("/d/t-0"), lambda: disk.open("/d/f"))
    for call in failing:
        with pytest.raises(OSError, match="Input/output"):
            call()


def test_a_map_whose_file_was_cut_by_somebody_else_is_an_error_and_no_signal(tmp_path: Path) -> None:
    """As a sector is that cannot be read: to touch such a page would be SIGBUS, and the end of the process."""
    file = RealDisk().open(str(tmp_path / "f"))
    file.append(bytes(4 * PREAD_BYTES_MAX))
    assert len(file.read(0, 2 * PREAD_BYTES_MAX)) == 2 * PREAD_BYTES_MAX
    os.truncate(tmp_path / "f", 4096)
    for position, size in ((PREAD_BYTES_MAX, 100), (0, 3 * PREAD_BYTES_MAX)):
        with pytest.raises(OSError, match="Input/output error"):
            file.read(position, size)
    assert bytes(file.read(0, 100)) == bytes(100)
