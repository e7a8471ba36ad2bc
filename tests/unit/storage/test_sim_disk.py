"""The faults of the simulated disk: full, lying, dropping what it could not write, without a volume, out of order."""

from collections.abc import Callable
from random import Random

import pytest

from tests.support.sim_disk import NAME_BYTES, SimDisk


def simulated() -> SimDisk:
    disk = SimDisk()
    disk.make_directory("/d")
    disk.sync_directory("/d")
    return disk


def test_names_take_room_and_give_it_back() -> None:
    disk = simulated()
    disk.space_bytes = NAME_BYTES + 1
    with pytest.raises(OSError, match="No space left"):
        disk.make_directory("/d/long")
    disk.open("/d/f")
    assert disk.space_bytes == 0
    with pytest.raises(OSError, match="No space left"):
        disk.rename("/d/f", "/d/longer")
    disk.rename("/d/f", "/d/g")
    disk.remove("/d/g")
    assert disk.space_bytes == NAME_BYTES + 1


def test_a_file_that_is_replaced_gives_its_room_back() -> None:
    disk = simulated()
    disk.write_file("/d/f", b"12345")
    disk.space_bytes = 7
    disk.write_file("/d/f", b"1234567")
    assert disk.space_bytes == 5
    with pytest.raises(OSError, match="No space left"):
        disk.write_file("/d/f", b"123456")  # the new bytes are there before the old ones go
    assert disk.read_file("/d/f") == b"1234567"


def test_a_directory_that_is_removed_gives_its_room_back() -> None:
    disk = simulated()
    disk.make_directory("/d/t-0")
    disk.write_file("/d/t-0/f", b"12345")
    disk.space_bytes = 0
    disk.remove("/d/t-0/f")
    disk.remove_directory("/d/t-0")
    assert disk.space_bytes == 5 + len("ft-0") + 2 * NAME_BYTES


def test_a_sync_that_lies_keeps_nothing() -> None:
    disk = simulated()
    file = disk.open("/d/f")
    disk.sync_directory("/d")
    disk.lies_about = lambda path: path.endswith("f")
    file.append(b"lost")
    file.sync()
    assert disk.has_lost_pages
    disk.crash(Random(1))
    assert disk.read_file("/d/f") == b"\0\0\0\0"
    disk.lies_about = lambda path: False
    again = disk.open("/d/f")
    again.append(b"kept")
    again.sync()
    disk.crash(Random(1))
    assert disk.read_file("/d/f") == b"\0\0\0\0kept"


def test_a_sync_that_fails_may_drop_what_it_should_have_written() -> None:
    """As Linux does it: the bytes are read, the next sync says that all is well, and a loss of power takes them."""
    disk = simulated()
    file = disk.open("/d/f")
    disk.sync_directory("/d")
    disk.drops, disk.fail_syncs = (lambda path: True), True
    file.append(b"lost")
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    disk.fail_syncs = False
    file.append(b"kept")
    file.sync()
    assert disk.read_file("/d/f") == b"lostkept"
    assert disk.has_lost_pages
    disk.crash(Random(1))
    assert disk.read_file("/d/f") == b"\0\0\0\0kept"
    assert not disk.has_lost_pages


def test_what_is_cut_off_is_not_missed() -> None:
    disk = simulated()
    file = disk.open("/d/f")
    disk.drops, disk.fail_syncs = (lambda path: True), True
    file.append(b"lost")
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    file.truncate(0)
    assert not disk.has_lost_pages


def test_a_journal_of_each_directory_keeps_no_order_with_the_others() -> None:
    found = set()
    for seed in range(60):
        disk = simulated()
        disk.make_directory("/d/t-0")
        disk.sync_directory("/d")
        disk.has_journal_by_directory = True
        disk.make_directory("/d/u-0")
        disk.open("/d/t-0/f")
        disk.crash(Random(seed))
        found.add((disk.exists("/d/u-0"), disk.exists("/d/t-0/f")))
    assert found == {(False, False), (False, True), (True, False), (True, True)}


def test_a_sync_of_one_directory_leaves_the_others_where_each_has_a_journal() -> None:
    found = set()
    for seed in range(20):
        disk = simulated()
        disk.has_journal_by_directory = True
        disk.make_directory("/d/u-0")
        disk.write_file("/d/u-0/f", b"durable")
        disk.crash(Random(seed))
        found.add(disk.exists("/d/u-0/f"))
    assert found == {False, True}  # its own directory was never synced


def test_a_volume_goes_and_comes_back_as_it_was() -> None:
    disk = simulated()
    disk.write_file("/d/f", b"there")
    volume = disk.detach("/d")
    assert disk.names("/d") == []
    disk.write_file("/d/g", b"beneath")
    disk.attach("/d", volume)
    disk.crash(Random(1))
    assert disk.names("/d") == ["f"]


def test_a_medium_that_has_something_else_has_it_for_good() -> None:
    disk = simulated()
    disk.write_file("/d/f", b"right")
    disk.write_file("/d/g", b"right")
    disk.overwrite("/d/f", b"wrong")
    disk.overwrite("/d/g", None)
    disk.crash(Random(1))
    assert disk.read_file("/d/f") == b"wrong"
    assert disk.names("/d") == ["f"]


def test_what_the_medium_forgets_is_remembered_by_those_who_only_look() -> None:
    disk = simulated()
    disk.write_file("/d/f", b"0123456789")
    disk.flip_bit("/d/f", 2)
    disk.wipe("/d/f", 4, 2)
    inode = disk.peek("/d")["f"]
    assert disk.read_file("/d/f") == b"0133\0\x006789"
    assert inode.forgotten == {2: ord("2"), 4: ord("4"), 5: ord("5")}
    cuts = inode.cuts
    disk.cut_short("/d/f", 4)
    assert (inode.forgotten, inode.cuts) == ({2: ord("2")}, cuts + 1)
    disk.crash(Random(1))
    assert disk.read_file("/d/f") == b"0133"


def test_each_change_is_counted() -> None:
    disk = simulated()
    before = disk.changes
    file = disk.open("/d/f")
    changes: tuple[Callable[[], object], ...] = (
        lambda: file.append(b"x"),
        lambda: file.truncate(0),
        lambda: disk.rename("/d/f", "/d/g"),
    )
    for change in changes:
        before = disk.changes
        change()
        assert disk.changes > before
