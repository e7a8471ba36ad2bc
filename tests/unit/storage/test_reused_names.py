"""A topic that is deleted and made again under its name: what was known of the old one must not touch the new one."""

from random import Random

from kavka_broker.storage import checkpoints
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.log_manager import LogManager
from tests.unit.storage.support import SMALL, append, fill, values
from tests.unit.storage.test_log_manager import ID, OTHER_ID, formatted, start


def with_an_old_log(manager: LogManager) -> None:
    """A log that has been flushed and whose start has moved, both written down; then its topic is deleted."""
    old = manager.create("t", 0, ID, SMALL)
    fill(old, 20)
    old.flush()
    old.advance_start(18)
    manager.write_checkpoints()
    manager.delete("t", 0)


def test_the_start_of_the_old_log_does_not_cut_the_new_one() -> None:
    disk = formatted()
    manager = start(disk)
    with_an_old_log(manager)
    append(manager.create("t", 0, OTHER_ID, SMALL), b"acknowledged")
    disk.kill()
    found = start(disk).get("t", 0)
    assert found is not None
    assert values(found) == [b"acknowledged"]


def test_the_recovery_point_of_the_old_log_vouches_for_nothing_in_the_new_one() -> None:
    disk = formatted()
    manager = start(disk)
    with_an_old_log(manager)
    new = manager.create("t", 0, OTHER_ID, SMALL)
    fill(new, 12)
    path = new.segments[0].file.path
    disk.kill()
    disk.flip_bit(path, 300)
    found = start(disk).get("t", 0)
    assert found is not None
    assert found.log_end_offset < 5


def test_a_cut_log_keeps_no_snapshot_of_what_was_cut() -> None:
    """Its producers would come back as they were in another history, once the log is as long again."""
    disk = formatted()
    manager = start(disk)
    log = manager.create("t", 0, ID, SMALL)
    for sequence in range(12):
        append(log, b"x" * 100, producer_id=9, producer_epoch=0, base_sequence=sequence)
    snapshot = log.segments[-1].base_offset
    path = log.segments[0].file.path
    disk.kill()
    disk.flip_bit(path, 300)
    cut = start(disk).get("t", 0)
    assert cut is not None
    assert cut.log_end_offset < snapshot
    assert not disk.exists(f"{cut.directory}/{snapshot:020d}.snapshot")


def test_names_that_were_never_written_down_cost_no_checkpoint() -> None:
    disk = formatted()
    manager = start(disk)
    disk.fail_writes = True
    assert manager.online[0].recovery_points == {}
    disk.fail_writes = False
    manager.create("t", 0, ID, SMALL)
    assert not disk.exists(f"/data/{checkpoints.RECOVERY_POINTS}")


def test_checkpoints_say_what_was_written_last() -> None:
    disk = formatted()
    manager = start(disk)
    with_an_old_log(manager)
    manager.create("t", 0, OTHER_ID, SMALL)
    manager.create("t", 1, OTHER_ID, SMALL)
    disk.crash(Random(1))
    manager = start(disk)
    name = PartitionName("t", 0)
    assert manager.online[0].recovery_points.get(name, 0) == 0
    assert manager.online[0].log_starts.get(name, 0) == 0
