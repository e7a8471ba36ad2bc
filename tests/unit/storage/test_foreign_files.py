"""What has the name of a file of ours and is a link or a pipe: it is neither followed nor waited for."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kavka_broker.storage import checkpoints, partition_metadata
from kavka_broker.storage.checkpoints import MalformedCheckpoint
from kavka_broker.storage.disk import RealDisk
from kavka_broker.storage.disk_errors import NotAFile
from kavka_broker.storage.log_directory import META_PROPERTIES, UnusableDirectory, read_meta_properties
from kavka_broker.storage.recovery import open_log
from tests.unit.storage.support import NOW_MS, SMALL, fill
from tests.unit.storage.test_unknown_files import start


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_link_in_the_place_of_a_segment_s_file_leaves_what_it_names(tmp_path: Path, suffix: str) -> None:
    """A start cut the file that it names: the records in it are none of ours."""
    disk, directory = RealDisk(), str(tmp_path / "t-0")
    log = open_log(disk, directory, SMALL, now_ms=NOW_MS)
    fill(log, 3)
    log.close()
    victim = tmp_path / "victim"
    victim.write_bytes(b"x" * 900)
    [file] = Path(directory).glob(f"*{suffix}")
    file.unlink()
    file.symlink_to(victim)
    with pytest.raises(NotAFile, match="remove it"):
        open_log(disk, directory, SMALL, now_ms=NOW_MS)
    assert victim.read_bytes() == b"x" * 900


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: os.symlink("/etc/hostname", path)], ids=["pipe", "link"])
def test_small_files_are_read_as_files_alone(tmp_path: Path, plant: Callable[[str], None]) -> None:
    """A start waited for good for a pipe's writer, without a word."""
    disk = RealDisk()
    metadata, offsets = tmp_path / "mine-1" / "partition.metadata", tmp_path / "recovery-point-offset-checkpoint"
    metadata.parent.mkdir()
    for path in (metadata, offsets, tmp_path / META_PROPERTIES):
        plant(str(path))
    with pytest.raises(NotAFile, match="mine-1"):
        partition_metadata.read(disk, str(metadata.parent))
    with pytest.raises(MalformedCheckpoint):
        checkpoints.read_offsets(disk, str(offsets))
    with pytest.raises(UnusableDirectory):
        read_meta_properties(disk, str(tmp_path))


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: os.symlink("/etc/hostname", path)], ids=["pipe", "link"])
def test_a_start_goes_on_beside_a_directory_with_such_a_thing_in_it(
    tmp_path: Path, plant: Callable[[str], None]
) -> None:
    path = tmp_path / "pipes-1" / "partition.metadata"
    path.parent.mkdir()
    plant(str(path))
    manager = start(tmp_path)
    manager.close()
    assert os.path.lexists(path)
    assert not path.is_file() or path.is_symlink()
