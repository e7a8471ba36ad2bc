"""A disk that a test fills: what takes room fails, and what is there stays."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from kavka_pytest.full_disk import FillableDisk

TAKES_ROOM: list[tuple[str, Callable[[FillableDisk, Path], object]]] = [
    ("append", lambda disk, home: disk.open(str(home / "log")).append(b"more")),
    ("a new file", lambda disk, home: disk.open(str(home / "another"))),
    ("a new directory", lambda disk, home: disk.make_directory(str(home / "topic-0"))),
    ("a small file", lambda disk, home: disk.write_file(str(home / "checkpoint"), b"1")),
]


@pytest.fixture
def disk(tmp_path: Path) -> FillableDisk:
    disk = FillableDisk()
    disk.open(str(tmp_path / "log")).append(b"first")
    disk.is_full = True
    return disk


@pytest.mark.parametrize("act", [pytest.param(act, id=name) for name, act in TAKES_ROOM])
def test_what_takes_room_fails_until_there_is_some(
    disk: FillableDisk, tmp_path: Path, act: Callable[[FillableDisk, Path], object]
) -> None:
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(OSError, match="No space left") as caught:
        act(disk, tmp_path)
    assert caught.value.errno == errno.ENOSPC
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    disk.is_full = False
    act(disk, tmp_path)


def test_what_is_there_is_read_cut_and_removed(disk: FillableDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    file = disk.open(path)
    file.make_room(1024 * 1024)
    assert file.room_bytes == 0
    assert bytes(file.read(0, 5)) == b"first"
    file.truncate(2)
    disk.make_directory(str(tmp_path))
    disk.rename(path, path + ".deleted")
    disk.remove(path + ".deleted")
    assert disk.space(str(tmp_path))[1] == 0
    disk.is_full = False
    assert disk.space(str(tmp_path))[1] > 0
