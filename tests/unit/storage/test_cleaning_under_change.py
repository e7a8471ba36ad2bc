"""What happens to a log while it is cleaned: retention, DeleteRecords, a cut, an end, between any two slices."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kavka_broker.protocol.records.record import Record
from kavka_broker.storage.cleaning.run import Cleaning, Outdated, Replacement, Uncleanable
from kavka_broker.storage.cleaning.segment_swap import put_in_place
from kavka_broker.storage.file_names import CLEANED, SWAP
from kavka_broker.storage.log import Log
from kavka_broker.storage.retention import delete_expired
from tests.unit.storage.cleaning import AMPLE, COMPACTED, begin, clean, disk_of, put, roll
from tests.unit.storage.support import DIRECTORY, NOW_MS, everything, open_log
from tests.unit.storage.test_log_manager import ID, formatted, start

BOTH = replace(COMPACTED, cleanup_policy=("compact", "delete"), retention_ms=-1)
ENDS_AT = 17
STEPS = 60  # there are fewer: slices of a batch, and replacements
Change = Callable[[Log], None]


def written() -> Log:
    """Segments of two records, in three groups; the first half is older."""
    log = open_log(config=BOTH)
    for number in range(8):
        timestamp_ms = NOW_MS - (50 if number < 4 else 0)
        put(log, (f"k{number % 4}", "x" * 180), timestamp_ms=timestamp_ms)
        put(log, (f"once{number}", "y" * 180), timestamp_ms=timestamp_ms)
        roll(log)
    put(log, ("k0", "last"))
    log.flush()
    return log


def by_time(log: Log) -> None:
    log.config = replace(log.config, retention_ms=10)
    delete_expired(log, NOW_MS, log.log_end_offset)


def by_size(log: Log) -> None:
    log.config = replace(log.config, retention_bytes=log.size_bytes // 2)
    delete_expired(log, NOW_MS, log.log_end_offset)


def by_request(log: Log) -> None:
    log.advance_start(7)
    delete_expired(log, NOW_MS, log.log_end_offset)


def by_request_of_all(log: Log) -> None:
    log.advance_start(log.log_end_offset)
    delete_expired(log, NOW_MS, log.log_end_offset)


def by_a_cut(log: Log) -> None:
    log.truncate_to(11)


def by_an_append(log: Log) -> None:
    put(log, ("once3", "again"))
    roll(log)


def run_with(cleaning: Cleaning, step: int, change: Change) -> bool:
    """Whether it came to its end, with the change before so many steps; as the log cleaner looks and carries out."""
    log, work = cleaning.log, cleaning.work()
    try:
        for number in range(10**6):
            if number == step:
                change(log)
            found = next(work, None)
            if cleaning.is_outdated:
                return False
            if found is None:
                break
            if isinstance(found, Replacement) and not put_in_place(log, found.old, found.cleaned):
                return False
    except (Outdated, Uncleanable, OSError):
        assert cleaning.is_outdated or change is not by_an_append
        return False
    finally:
        work.close()
    log.state.cleaned_offset = cleaning.figures.end_offset
    return True


def newest(records: list[Record]) -> dict[bytes | None, Record]:
    return {record.key: record for record in records}


@pytest.mark.parametrize("change", [by_time, by_size, by_request, by_request_of_all, by_a_cut, by_an_append])
def test_what_changes_under_a_cleaning_comes_to_the_same(change: Change) -> None:
    ends = set()
    for step in range(0, STEPS, 2):
        log = written()
        before = everything(log)
        ends.add(run_with(begin(log, bounds=replace(AMPLE, slice_bytes=1)), step, change))
        after = everything(log)
        added = [record for record in after if record not in before]
        assert len(added) == log.log_end_offset - ENDS_AT if change is by_an_append else not added
        there = range(log.log_start_offset, log.log_end_offset)
        wanted = [record for record in newest([*before, *added]).values() if record.offset in there]
        assert [record for record in wanted if record not in after] == [], step
        assert not [name for name in log.disk.names(DIRECTORY) if name.endswith((CLEANED, SWAP))]
        assert log.log_start_offset >= log.segments[0].base_offset
        log.close()
        opened = open_log(
            disk_of(log),
            log.config,
            recover=False,
            recovery_point=log.log_end_offset,
            log_start_offset=log.log_start_offset,
        )
        assert (opened.damage, everything(opened)) == ("", after)
        clean(opened)
        assert newest(everything(opened)) == newest(after)
    assert True in ends, "it was over before the change, at the latest"


def test_a_cut_lowers_the_cleaned_offset_on_disk_too() -> None:
    disk = formatted()
    manager = start(disk, log_config=COMPACTED)
    log = manager.create("t", 0, ID, COMPACTED)
    for number in range(6):
        put(log, (f"k{number}", "x"))
    roll(log)
    clean(log)
    manager.note_cleaned(log)
    assert disk.read_file("/data/cleaner-offset-checkpoint") == b"0\n1\nt 0 6\n"
    put(log, ("b", "x"))
    log.truncate_to(5)
    for _ in range(4):
        put(log, ("c", "x"))
    log.flush()
    disk.kill()
    (opened,) = start(disk, log_config=COMPACTED)
    assert opened.state.cleaned_offset <= 5
    assert opened.log_end_offset == 9


def test_a_move_takes_the_cleaned_offset_along() -> None:
    disk = formatted("/data", "/more")
    manager = start(disk, "/data", "/more", log_config=COMPACTED)
    log = manager.create("t", 0, ID, COMPACTED)
    for number in range(12):
        put(log, ("a" if number % 5 else f"k{number}", "x" * 300))
    roll(log)
    clean(log)
    put(log, ("b", "x"))
    expected = everything(log)
    future = manager.futures.make(log, manager.directories[1], NOW_MS)
    while future.log_end_offset < log.log_end_offset:
        for part in log.read(future.log_end_offset, 1).parts:
            future.append_as_follower(part, NOW_MS)
    moved = manager.replace(future, manager.directories[1], NOW_MS)
    assert (moved.damage, moved.state.cleaned_offset, everything(moved)) == ("", 12, expected)
    manager.write_checkpoints()
    assert disk.read_file("/more/cleaner-offset-checkpoint") == b"0\n1\nt 0 12\n"
    manager.close()
    (again,) = start(disk, "/data", "/more", log_config=replace(COMPACTED, cleanup_policy=("delete",)))
    assert (again.damage, again.state.cleaned_offset, everything(again)) == ("", 12, expected)
