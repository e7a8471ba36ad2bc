"""What lies in a log directory and is not Kavka's: nothing of it is removed, changed or followed."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage import recovery
from kavka_broker.storage.disk import RealDisk
from kavka_broker.storage.file_names import DELETE_DIRECTORY, FUTURE_DIRECTORY, STRAY_DIRECTORY, offset_file
from kavka_broker.storage.log_directory import META_PROPERTIES, MetaProperties, write_meta_properties
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.storage.retired_logs import STRAY_RETENTION_MS
from tests.unit.storage.support import NOW_MS, SMALL, fill, free, values
from tests.unit.storage.test_log_manager import ID

NO_DELAY = replace(SMALL, file_delete_delay_ms=0)
MUCH_LATER_MS = NOW_MS + 100 * STRAY_RETENTION_MS

#: Names in a directory that nobody knows, none of which is a log's with records.
FOREIGN = {
    "backup-20261127": ("precious.txt", "dump.sql"),
    "photos-2019": ("summer/a.jpg",),
    "nested-3": ("sub/deep.txt",),
    "mylog-2": ("server.log", "1.log", "00000000000000000000.log.gz"),
    "zero-4": (offset_file(0, ".log"), "notes.txt"),
    "named-5": (f"{offset_file(0, '.log')}/inside.txt",),
    "identity-6": ("partition.metadata/inside.txt",),
    "snapshots-7": ("00000000000000000042-0000000003.checkpoint",),
    "unfinished-8": ("report.tmp", "mail.deleted", "disk.swap", "spot.cleaned"),
}


#: Files of a log and of the directory, which are no part of a comparison.
OWN = frozenset({"set-aside", "partition.metadata", "leader-epoch-checkpoint"})


def start(*paths: Path, topic_id: bytes | None = ZERO, log_config: LogConfig = SMALL) -> LogManager:
    disk = RealDisk()
    for index, path in enumerate(paths, 1):
        if not (path / META_PROPERTIES).exists():
            write_meta_properties(disk, str(path), MetaProperties("cluster", 1, bytes([index]) * 16))
    manager = LogManager.open(disk, map(str, paths), node_id=1)
    manager.load(lambda topic: log_config, NOW_MS, known_id=None if topic_id is None else lambda name: topic_id)
    return manager


def put(root: Path, files: dict[str, tuple[str, ...]]) -> dict[str, bytes]:
    """Make the files; returns their contents by name alone."""
    made = {}
    for directory, names in files.items():
        for name in names:
            path = root / directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            content = b"" if path.name == offset_file(0, ".log") else f"{directory}/{name}".encode()
            path.write_bytes(content)
            made[f"{directory}/{name}"] = content
    return made


def kept(root: Path) -> dict[str, bytes]:
    """The files of unknown directories, by the names that they had before they were set aside."""
    found = {}
    for path in root.rglob("*"):
        first, _, rest = str(path.relative_to(root)).partition("/")
        if rest and path.name not in OWN and path.is_file():
            found[f"{first.split('.')[0]}/{rest}"] = path.read_bytes()
    return found


def entries(root: Path, suffix: str) -> list[str]:
    return sorted(name for name in os.listdir(root) if name.endswith(suffix))


@pytest.mark.parametrize("topic_id", [None, ZERO, ID])
def test_a_start_removes_nothing_of_an_unknown_directory(tmp_path: Path, topic_id: bytes | None) -> None:
    made = put(tmp_path, FOREIGN)
    for _ in range(2):
        manager = start(tmp_path, topic_id=topic_id)
        assert manager.online
        manager.remove_deleted(MUCH_LATER_MS)
        manager.remove_deleted(MUCH_LATER_MS + STRAY_RETENTION_MS)
        assert kept(tmp_path) == made
        manager.close()
    assert len(entries(tmp_path, STRAY_DIRECTORY)) == len(FOREIGN)


def test_an_unknown_directory_is_told_of_once_a_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(tmp_path, {"backup-1": ("f",)})
    manager = start(tmp_path)
    for turn in range(3):
        manager.remove_deleted(MUCH_LATER_MS + turn)
    assert [one.message for one in caplog.records] == ["log.not_recognized", "stray.moved", "log.kept"]
    assert [one.levelname for one in caplog.records] == ["WARNING"] * 3


def test_an_empty_directory_goes(tmp_path: Path) -> None:
    (tmp_path / "left-0").mkdir()
    start(tmp_path)
    assert not list(tmp_path.glob("left-0*"))


@pytest.mark.parametrize("files", [("precious.txt",), ("sub/deep.txt",), (offset_file(0, ".log"), "notes.txt")])
def test_a_topic_that_takes_the_name_of_an_unknown_directory_removes_nothing(
    tmp_path: Path, files: tuple[str, ...]
) -> None:
    manager = start(tmp_path)
    made = put(tmp_path, {"fresh-0": files})
    log = manager.create("fresh", 0, ID, SMALL)
    assert log.log_end_offset == 0
    assert kept(tmp_path).items() >= made.items()
    assert len(entries(tmp_path, STRAY_DIRECTORY)) == 1


def test_a_topic_that_takes_the_name_of_a_file_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / "report-2024").write_bytes(b"figures")
    for _ in range(2):
        manager = start(tmp_path)
        manager.create("report", 2024, ID, SMALL)
        manager.remove_deleted(MUCH_LATER_MS)
        (stray,) = entries(tmp_path, STRAY_DIRECTORY)
        assert (tmp_path / stray).read_bytes() == b"figures"
        manager.close()


@pytest.mark.parametrize("is_living", [True, False])
def test_a_deleted_log_leaves_the_files_that_are_not_its_own(tmp_path: Path, is_living: bool) -> None:
    manager = start(tmp_path)
    fill(manager.create("t", 0, ID, NO_DELAY), 12)
    made = put(tmp_path, {"t-0": ("notes.txt", "old/dump.sql")})
    if not is_living:  # a start finds it
        manager.close()
        manager = start(tmp_path, topic_id=None, log_config=NO_DELAY)
    manager.delete("t", 0)
    for turn in range(3):
        manager.remove_deleted(NOW_MS + turn)
    assert kept(tmp_path) == made
    for name in ("notes.txt", "old/dump.sql"):
        (tmp_path / entries(tmp_path, DELETE_DIRECTORY)[0] / name).unlink()
    (tmp_path / entries(tmp_path, DELETE_DIRECTORY)[0] / "old").rmdir()
    manager.remove_deleted(NOW_MS + 3)
    assert entries(tmp_path, DELETE_DIRECTORY) == []
    assert manager.aside.count(manager.directories[0], DELETE_DIRECTORY) == (0, 0)


def test_a_stray_of_records_alone_goes_and_one_with_other_files_stays(tmp_path: Path) -> None:
    manager = start(tmp_path)
    for topic in ("plain", "noted"):
        fill(manager.create(topic, 0, ID, SMALL), 3)
        manager.set_aside(topic, 0)
    plain, noted = sorted(entries(tmp_path, STRAY_DIRECTORY), reverse=True)
    (tmp_path / noted / "why.txt").write_text("look at offset 2")
    manager.remove_deleted(NOW_MS)
    manager.remove_deleted(MUCH_LATER_MS)
    assert entries(tmp_path, STRAY_DIRECTORY) == [noted]
    assert (tmp_path / noted / offset_file(0, ".log")).stat().st_size > 0
    assert plain.startswith("plain-0.")


def test_unfinished_files_of_others_stay_in_a_log(tmp_path: Path) -> None:
    manager = start(tmp_path)
    fill(manager.create("t", 0, ID, SMALL), 3)
    manager.close()
    made = put(tmp_path, {"t-0": ("report.tmp", "mail.deleted", "disk.swap", "spot.cleaned")})
    own = [offset_file(0, ".log.cleaned"), offset_file(0, ".index.deleted"), "leader-epoch-checkpoint.12.tmp"]
    for name in own:
        (tmp_path / "t-0" / name).write_bytes(b"")
    (log,) = start(tmp_path, topic_id=ID)
    assert len(values(log)) == 3
    assert kept(tmp_path).items() >= made.items()
    assert not [name for name in own if (tmp_path / "t-0" / name).exists()]


# --- symbolic links --------------------------------------------------------------------------------------------------


def outside(tmp_path: Path, *files: str) -> tuple[Path, Path, dict[str, bytes]]:
    """A log directory, a directory beside it, and what is in that."""
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "elsewhere").mkdir()
    return data, tmp_path / "elsewhere", put(tmp_path, {"elsewhere": files})


@pytest.mark.parametrize("files", [(), ("precious.txt",), (offset_file(0, ".log"),), ("sub/deep.txt",)])
@pytest.mark.parametrize("topic_id", [ZERO, ID])
def test_a_link_that_is_no_log_is_set_aside_alone(tmp_path: Path, files: tuple[str, ...], topic_id: bytes) -> None:
    data, elsewhere, made = outside(tmp_path, *files)
    (data / "gone-0").symlink_to("../elsewhere")
    for _ in range(2):
        manager = start(data, topic_id=topic_id)
        assert manager.online
        assert list(manager) == []
        manager.remove_deleted(MUCH_LATER_MS)
        manager.close()
    (stray,) = entries(data, STRAY_DIRECTORY)
    assert (data / stray).readlink() == Path("../elsewhere")
    assert kept(tmp_path).items() >= made.items()
    assert sorted(os.listdir(elsewhere)) == sorted({name.split("/")[0] for name in files})


@pytest.mark.parametrize("target", ["nowhere", "loop-0"])
def test_a_link_that_leads_nowhere_costs_no_directory(tmp_path: Path, target: str) -> None:
    (tmp_path / "loop-0").symlink_to(target)
    manager = start(tmp_path)
    assert manager.online
    manager.create("loop", 0, ID, SMALL)
    assert (tmp_path / entries(tmp_path, STRAY_DIRECTORY)[0]).readlink() == Path(target)


@pytest.mark.parametrize("target", ["nowhere", "t-0"])
def test_a_partition_whose_link_leads_nowhere_is_unusable_and_not_begun_again(tmp_path: Path, target: str) -> None:
    (tmp_path / "t-0").symlink_to(target)
    manager = start(tmp_path, topic_id=ID)
    assert manager.online
    unusable = manager.unusable("t", 0)
    assert unusable is not None
    assert not unusable.has_failed
    with pytest.raises(BrokerError, match=r"t-0 cannot be read: .*; mend that, or remove the entry"):
        manager.create("t", 0, ID, SMALL)


def test_the_log_of_a_topic_may_be_a_link_which_goes_alone(tmp_path: Path) -> None:
    data, elsewhere, _ = outside(tmp_path)
    manager = start(data)
    fill(manager.create("t", 0, ID, SMALL), 3)
    manager.close()
    elsewhere.rmdir()
    (data / "t-0").rename(elsewhere)
    (data / "t-0").symlink_to("../elsewhere")
    manager = start(data, topic_id=ID, log_config=NO_DELAY)
    (log,) = manager
    fill(log, 2)
    assert len(values(log)) == 5
    before = {path.name: path.read_bytes() for path in elsewhere.iterdir()}
    manager.delete("t", 0)
    manager.remove_deleted(NOW_MS)
    assert [name for name in os.listdir(data) if name.startswith("t-0")] == []
    assert {path.name: path.read_bytes() for path in elsewhere.iterdir()} == before
    assert not manager.has_deleted


@pytest.mark.parametrize("target", ["../elsewhere", "nowhere"])
def test_a_link_that_was_left_on_its_way_out_goes_alone(tmp_path: Path, target: str) -> None:
    data, elsewhere, made = outside(tmp_path, "precious.txt")
    (data / f"t-0.{'0' * 32}{DELETE_DIRECTORY}").symlink_to(target)
    manager = start(data)
    manager.remove_deleted(NOW_MS)
    assert entries(data, DELETE_DIRECTORY) == []
    assert kept(tmp_path).items() >= made.items()
    assert os.listdir(elsewhere) == ["precious.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unknown_directory_of_another_user_costs_no_directory(tmp_path: Path) -> None:
    (tmp_path / "backup-1").mkdir(mode=0o000)
    assert start(tmp_path).online


# --- moves between directories ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_a_move_sets_aside_what_has_its_name_in_the_other_directory(tmp_path: Path, kind: str) -> None:
    first, second, elsewhere = (tmp_path / name for name in ("first", "second", "elsewhere"))
    for path in (first, second, elsewhere):
        path.mkdir()
    manager = start(first, second)
    log = manager.create("t", 0, ID, SMALL)
    home, other = (first, second) if log.directory.startswith(str(first)) else (second, first)
    fill(log, 3)
    directory = next(one for one in manager.directories if one.path == str(other))
    future = manager.futures.make(log, directory, NOW_MS)
    fill(future, 3)
    if kind == "link":
        (other / "t-0").symlink_to(elsewhere)
    elif kind == "file":
        (other / "t-0").write_bytes(b"precious")
    else:
        put(other, {"t-0": ("precious.txt",)})
    moved = manager.replace(future, directory, NOW_MS)
    assert (moved.directory, len(values(moved))) == (str(other / "t-0"), 3)
    (stray,) = entries(other, STRAY_DIRECTORY)
    assert (other / stray).is_symlink() == (kind == "link")
    assert (other / stray).is_file() == (kind == "file")
    assert entries(other, FUTURE_DIRECTORY) == []
    free(manager)
    assert entries(home, "t-0") == []


def test_what_an_earlier_start_has_kept_is_not_written_over(tmp_path: Path) -> None:
    """A start sets segments aside that lie below the log's start; another one may do so at the same offset."""
    path = tmp_path / "t-0"
    for _ in range(2):
        log = recovery.open_log(RealDisk(), str(path), SMALL, recover=True, log_start_offset=0, now_ms=NOW_MS)
        fill(log, 3)
        log.close()
        log = recovery.open_log(RealDisk(), str(path), SMALL, recover=True, log_start_offset=10, now_ms=NOW_MS)
        assert log.log_start_offset == 10
        log.close()
        shutil.rmtree(path)
    strays = entries(tmp_path, STRAY_DIRECTORY)
    assert len(strays) == 2
    assert all((tmp_path / stray / offset_file(0, ".log")).stat().st_size for stray in strays)
