"""Opening a log after a crash, and one whose files are damaged."""

from random import Random

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.storage import recovery
from kavka_broker.storage.log import Log
from tests.support.sim_disk import SimDisk
from tests.unit.storage.support import DIRECTORY, NOW_MS, append, config, fill, found_at, new_disk, open_log, values


def path(base_offset: int, suffix: str) -> str:
    return f"{DIRECTORY}/{base_offset:020d}{suffix}"


def written(count: int = 12) -> tuple[SimDisk, list[bytes | None]]:
    """A disk with segments 0, 5 and 10, whose process was killed."""
    disk = new_disk()
    log = open_log(disk)
    fill(log, count)
    found = values(log)
    disk.kill()
    return disk, found


def largest(log: Log) -> list[int]:
    return [segment.largest.timestamp_ms - NOW_MS for segment in log.segments]


def test_a_torn_append_is_cut_away() -> None:
    disk, found = written()
    disk.open(path(10, ".log")).append(b"\0" * 70)
    log = open_log(disk)
    assert values(log) == found
    append(log, b"next")
    assert values(log) == [*found, b"next"]


@pytest.mark.parametrize("position", [8, 16, 17, 23, 61, 100])
def test_from_the_first_broken_batch_on_everything_goes(position: int) -> None:
    disk, found = written()
    disk.flip_bit(path(5, ".log"), 172 * 2 + position, 6)
    log = open_log(disk)
    assert values(log) == found[:7]
    assert [segment.base_offset for segment in log.segments] == [0, 5]
    assert not disk.exists(path(10, ".log"))


def test_a_base_offset_beyond_the_next_segment_is_broken_too() -> None:
    disk, found = written()
    disk.flip_bit(path(0, ".log"), 172 * 2 + 5, 3)
    log = open_log(disk)
    assert (log.log_end_offset, values(log)) == (2, found[:2])


def test_so_is_one_that_no_index_could_name() -> None:
    disk, found = written()
    disk.flip_bit(path(10, ".log"), 172 + 2, 3)
    assert values(open_log(disk)) == found[:11]


def test_what_lies_below_the_recovery_point_is_believed() -> None:
    disk, _ = written()
    disk.flip_bit(path(0, ".log"), 172 + 100)
    assert open_log(disk, recovery_point=6).log_end_offset == 12
    disk.kill()
    looked_at = open_log(disk, recovery_point=5)  # a roll may have followed
    assert looked_at.log_end_offset == 12  # what was synced once is not cut off
    assert "offset 1" in looked_at.damage


def test_a_lost_segment_cuts_the_log_where_it_was() -> None:
    disk, found = written()
    disk.open(path(5, ".log")).truncate(0)
    assert values(open_log(disk)) == found[:5]


@pytest.mark.parametrize("cleaned_offset", [0, 9, 10])
def test_a_compacted_log_may_have_holes_where_it_was_cleaned(cleaned_offset: int) -> None:
    disk, found = written()
    disk.open(path(5, ".log")).truncate(172 * 2)
    log = open_log(disk, config=config(cleanup_policy=("compact",)), cleaned_offset=cleaned_offset)
    assert values(log) == found[:7] + (found[10:] if cleaned_offset == 10 else [])


@pytest.mark.parametrize("recover", [True, False])
@pytest.mark.parametrize("damage", ["missing", "cut", "zeros", "wild"])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_indexes_are_rebuilt(recover: bool, damage: str, suffix: str) -> None:
    disk = new_disk()
    log = open_log(disk)
    fill(log, 12)
    found, entries = values(log), [(list(one.offsets), list(one.times)) for one in log.segments]
    log.close()
    for base_offset in (0, 5, 10):
        index = disk.open(path(base_offset, suffix))
        match damage:
            case "missing":
                disk.remove(path(base_offset, suffix))
            case "cut":
                index.append(b"\0" * 3)
            case "zeros":
                index.append(bytes(24 * 4))
            case "wild":
                index.append(b"\x7f" * 8 if suffix == ".index" else b"\xff" * 12)
    log = open_log(disk, recover=recover, recovery_point=12)
    assert values(log) == found
    assert [found_at(log, NOW_MS + at) for at in range(12)] == [(at, NOW_MS + at, 0) for at in range(12)]
    if damage != "missing":
        assert [list(one.offsets) for one in log.segments] == [offsets for offsets, _ in entries]
        assert largest(log) == [4, 9, 11]


def test_an_index_without_its_log_is_removed() -> None:
    disk, _ = written()
    disk.open(path(99, ".index"))
    disk.open(path(98, ".timeindex"))
    disk.open(path(10, ".log.deleted"))
    disk.open(path(10, ".log.cleaned"))
    open_log(disk)
    left = disk.names(DIRECTORY)
    assert not [name for name in left if "99" in name or "98" in name or "deleted" in name or "cleaned" in name]


def test_epochs_are_read_from_the_batches_where_the_file_is_lost() -> None:
    disk = new_disk()
    log = open_log(disk)
    for epoch in (1, 1, 4, 6):
        append(log, bytes(300), epoch=epoch)
    entries = log.epochs.entries
    log.close()
    disk.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    log = open_log(disk, recover=False)
    assert log.epochs.entries == entries == ((1, 0), (4, 2), (6, 3))
    log.close()
    disk.flip_bit(f"{DIRECTORY}/leader-epoch-checkpoint", 0, 5)
    assert open_log(disk, recover=False).epochs.entries == entries


@pytest.mark.parametrize("start_offset", [0, 2])
@pytest.mark.parametrize("is_clean", [False, True])
def test_epochs_in_front_of_a_start_that_a_crash_brings_back_are_read_from_the_batches(
    start_offset: int, is_clean: bool
) -> None:
    disk = new_disk()
    log = open_log(disk)
    for epoch in (1, 1, 4, 4, 6, 6, 8):
        append(log, bytes(300), epoch=epoch)
    log.advance_start(5)
    log.flush()
    assert log.epochs.entries == ((6, 5), (8, 6))
    if is_clean:
        log.close()
    disk.kill()
    log = open_log(disk, log_start_offset=start_offset, recovery_point=7, recover=not is_clean)
    assert log.epochs.entries == ((1, 0), (4, 2), (6, 4), (8, 6))[start_offset > 0 :]
    assert log.epochs.end_offset(4, 7).end_offset == 4, (
        "or a follower with others in 4 would be told that they are the same"
    )


def test_epochs_beyond_the_end_are_forgotten() -> None:
    disk = new_disk()
    log = open_log(disk)
    append(log, epoch=1)
    log.epochs.assign(5, 1)
    log.close()
    assert open_log(disk, recover=False).epochs.latest == 1


def test_a_log_that_ends_below_its_start_starts_anew() -> None:
    disk, _ = written()
    log = open_log(disk, log_start_offset=50)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)


def test_the_log_start_offset_is_kept_over_a_restart() -> None:
    disk, found = written()
    log = open_log(disk, log_start_offset=7)
    assert values(log) == found[7:]


def test_a_clean_start_reads_no_batch_but_behind_the_last_index_entry() -> None:
    disk = new_disk()
    log = open_log(disk)
    fill(log, 12)
    log.close()
    disk.flip_bit(path(0, ".log"), 100)
    disk.flip_bit(path(5, ".log"), 100)
    assert open_log(disk, recover=False).log_end_offset == 12


def test_only_a_directory_named_after_a_partition_is_a_log() -> None:
    with pytest.raises(ValueError, match="<topic>-<partition>"):
        recovery.open_log(new_disk(), "/data/orders", config(), now_ms=NOW_MS)


def test_a_failed_sync_ends_the_logs_life() -> None:
    disk = new_disk()
    log = open_log(disk)
    append(log)
    disk.fail_syncs = True
    with pytest.raises(BrokerError) as caught:
        log.flush()
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.fail_syncs = False
    with pytest.raises(BrokerError, match="an earlier sync failed"):
        append(log)
    assert log.recovery_point == 0


def test_what_flush_messages_would_have_synced_is_synced_by_recovery() -> None:
    """Else a record that was killed before its sync is read by consumers after the start, and gone with the power."""
    for seed in range(20):
        disk = new_disk()
        log = open_log(disk, config=config(flush_messages=1))
        append(log, b"synced")
        log.durability.sync_records()
        append(log, b"unsure")
        disk.fail_syncs = True
        with pytest.raises(BrokerError):
            log.durability.sync_records()
        disk.fail_syncs = False
        disk.kill()
        assert values(open_log(disk, config=config(flush_messages=1))) == [b"synced", b"unsure"]
        disk.crash(Random(seed))
        assert values(open_log(disk, config=config(flush_messages=1))) == [b"synced", b"unsure"]


def test_what_was_cut_stays_cut_when_power_is_lost_again() -> None:
    """Else the old bytes could come back, whole, into the place of what was appended after the first crash."""
    for seed in range(20):
        disk = new_disk()
        log = open_log(disk)
        fill(log, 3)
        log.flush()
        disk.flip_bit(log.segments[0].file.path, 300)
        disk.kill()
        kept = open_log(disk)
        assert kept.log_end_offset == 1
        disk.crash(Random(seed))
        assert disk.size(kept.segments[0].file.path) == kept.size_bytes
