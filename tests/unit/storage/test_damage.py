"""A bit that turns over on the disk while nobody looks is found before it is served."""

import errno
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kavka_broker.core.partition.producer_state import BATCHES_KEPT_MAX, WrittenBatch
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.storage import recovery
from kavka_broker.storage.file_names import LOG, SEGMENT_FILES
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.storage.offset_index import OffsetIndex
from kavka_broker.storage.producer_walk import ProducerWalk
from kavka_broker.storage.retention import delete_expired
from tests.support.sim_disk import DiskError, SimDisk
from tests.unit.storage.support import NOW_MS, SMALL, append, everything, fill, found_at, headers, new_disk, open_log
from tests.unit.storage.test_log_manager import ID, formatted, start

RECORDS = 12
LAST_OFFSET_DELTA_AT = 23 + 2  # in a batch's header; of its four bytes the third


def damaged(disk: SimDisk, offset: int) -> None:
    """Flip the last bit of the batch at `offset`, as a disk does it: nobody hears of it."""
    for path, inode in disk.files():
        position = 0
        for header, batch in split_batches(bytes(inode.data)) if path.endswith(LOG) else ():
            position += len(batch)
            if header.base_offset == offset:
                inode.data[position - 1] ^= 1


def closed(disk: SimDisk) -> None:
    log = open_log(disk)
    fill(log, RECORDS)
    log.close()


def reopened(disk: SimDisk, *, recover: bool = False) -> Log:
    return recovery.open_log(disk, "/data/orders-0", SMALL, recover=recover, now_ms=NOW_MS)


def test_it_is_not_served_and_what_is_sound_is() -> None:
    disk = new_disk()
    closed(disk)
    damaged(disk, 3)
    log = reopened(disk)
    assert log.read(2, 10).size_bytes
    with pytest.raises(BrokerError) as caught:
        log.read(3, 10)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert "offset 3" in str(caught.value)
    assert log.read(2, 10_000).size_bytes == log.read(2, 10).size_bytes
    assert log.read(4, 10).size_bytes


def test_each_batch_is_looked_at_once() -> None:
    disk = new_disk()
    closed(disk)
    log = reopened(disk)
    read_all(log)
    damaged(disk, 3)
    read_all(log)


def test_what_this_process_wrote_is_not_looked_at_again() -> None:
    disk = new_disk()
    log = open_log(disk)
    fill(log, RECORDS)
    assert all(segment.unchecked_end == 0 for segment in log.segments)
    closed(disk)
    assert all(segment.unchecked_end == 0 for segment in reopened(disk, recover=True).segments)
    assert any(segment.unchecked_end > 0 for segment in reopened(disk).segments)


def read_all(log: Log) -> None:
    offset = 0
    while offset < log.log_end_offset:
        assert log.read(offset, 10).size_bytes
        offset += 1


FIELDS = {
    "base offset": range(8),
    "length": range(8, 12),
    "leader epoch": range(12, 16),
    "magic": [16],
    "crc": [17, 20],
}


@pytest.mark.parametrize("at", [9, RECORDS - 1], ids=["in the middle", "the last batch"])
@pytest.mark.parametrize("field", FIELDS)
def test_any_bit_of_a_header_is_damage_of_that_batch(field: str, at: int) -> None:
    """What stands before the CRC too. The log keeps its end, and what comes before is served."""
    for byte in FIELDS[field]:
        for bit in (0, 3, 6, 7):
            disk = new_disk()
            closed(disk)
            flip_header(disk, at, byte, bit)
            log = clean_start(disk)
            assert log.log_end_offset == RECORDS
            with pytest.raises(BrokerError) as caught:
                log.read(at, 10)
            assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
            assert log.read(at - 1, 10_000).end_offset == at


def flip_header(disk: SimDisk, offset: int, byte: int, bit: int) -> None:
    for path, _ in disk.files():
        position = 0
        for header, batch in split_batches(disk.read_file(path)) if path.endswith(LOG) else ():
            if header.base_offset == offset:
                disk.flip_bit(path, position + byte, bit)
                return
            position += len(batch)


def clean_start(disk: SimDisk) -> Log:
    return recovery.open_log(disk, "/data/orders-0", SMALL, recover=False, recovery_point=RECORDS, now_ms=NOW_MS)


def test_a_clean_start_says_that_the_end_is_gone_and_gives_no_offset_out_again() -> None:
    disk = new_disk()
    closed(disk)
    path = max(name for name, _ in disk.files() if name.endswith(LOG))
    disk.cut_short(path, disk.size(path) - 150)
    log = clean_start(disk)
    assert "offset 11" in log.damage
    assert log.log_end_offset == RECORDS
    assert append(log, b"new").base_offset == RECORDS
    with pytest.raises(BrokerError):
        log.read(RECORDS - 1, 10)


def test_a_clean_start_says_that_nothing_is_wrong_where_nothing_is() -> None:
    disk = new_disk()
    closed(disk)
    assert not clean_start(disk).damage


@pytest.mark.parametrize("harm", ["missing", "empty"])
@pytest.mark.parametrize("which", [min, max], ids=["first", "last"])
def test_after_a_crash_too_no_offset_that_was_synced_is_given_out_again(
    which: Callable[[Iterable[str]], str], harm: str
) -> None:
    """A log says that it has lost a segment, and goes on where it ended."""
    disk = new_disk()
    closed(disk)
    spoil(disk, which(name for name, _ in disk.files() if name.endswith(LOG)), harm)
    log = recovery.open_log(disk, "/data/orders-0", SMALL, recovery_point=RECORDS, now_ms=NOW_MS)
    assert log.damage
    assert append(log, b"new").base_offset == RECORDS


HARMS = ["log", "log and indexes", "everything"]


@pytest.mark.parametrize(("recover", "harm"), [(False, harm) for harm in HARMS] + [(True, "log")])
@pytest.mark.parametrize("start_offset", [0, 7])
def test_where_a_log_begins_is_not_moved_by_the_loss_of_its_first_segment(
    recover: bool, harm: str, start_offset: int
) -> None:
    """Nor by that of all. Its followers would let go of what only they still have."""
    disk = new_disk()
    log = open_log(disk)
    fill(log, RECORDS)
    log.advance_start(start_offset)
    delete_expired(log, NOW_MS, RECORDS)
    log.close()
    lose(disk, harm)
    how: dict[str, Any] = {
        "recover": recover,
        "recovery_point": RECORDS,
        "log_start_offset": start_offset if harm == "log" else 0,
    }
    for _ in range(2):
        log = open_log(disk, **how)
        assert log.damage
        assert (log.log_start_offset, log.log_end_offset) == (start_offset, RECORDS)
        assert log.epochs.epoch_at(start_offset) == 0
        if harm == "everything":
            with pytest.raises(BrokerError):
                log.read(start_offset, 10)
        else:
            assert [one.offset for one in everything(log)] == [10, 11]
        log.close()


def lose(disk: SimDisk, harm: str) -> None:
    """As many segments as there have to be, so that only the last one is left, or none."""
    for name in disk.names("/data/orders-0"):
        is_gone = harm == "everything" or int(name[:20]) < 10 if name[0] == "0" else False
        if is_gone and name.endswith(LOG if harm == "log" else SEGMENT_FILES):
            disk.remove(f"/data/orders-0/{name}")
    disk.sync_directory("/data/orders-0")


def spoil(disk: SimDisk, path: str, harm: str) -> None:
    if harm == "missing":
        disk.remove(path)
        disk.sync_directory("/data/orders-0")
    else:
        disk.cut_short(path, 0)


@pytest.mark.parametrize("seed", range(60))
def test_no_crash_makes_a_sound_log_look_damaged(seed: int) -> None:
    random, disk = Random(seed), formatted()
    config = replace(SMALL, retention_bytes=1000)
    for _ in range(3):
        manager = start(disk)
        log = manager.create("t", 0, ID, config)
        assert not log.damage
        for _ in range(random.randint(1, 30)):
            play(random, manager, log)
        disk.kill() if random.random() < 0.5 else disk.crash(random)


def play(random: Random, manager: LogManager, log: Log) -> None:
    match random.choice(["append"] * 5 + ["flush", "retain", "cut", "restart", "checkpoint", "remove"]):
        case "append":
            append(log, bytes(random.randint(1, 200)))
        case "flush":
            log.flush()
        case "retain":
            at_once(manager.retain(NOW_MS))
        case "cut":
            log.truncate_to(random.randint(max(0, log.log_start_offset - 3), log.log_end_offset))
        case "restart":
            log.start_at(max(0, log.log_end_offset + random.randint(-8, 20)))
        case "checkpoint":
            manager.write_checkpoints()
        case "remove":
            manager.remove_deleted(NOW_MS)


def test_a_sector_that_cannot_be_read_is_damage() -> None:
    disk = new_disk()
    log = open_log(disk)
    fill(log, RECORDS)
    disk.errors.append(DiskError(frozenset({"read"}), "/data/orders-0"))
    with pytest.raises(BrokerError) as caught:
        log.read(3, 10)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    disk.errors.clear()
    assert log.read(3, 10).size_bytes


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
def test_what_is_used_up_just_now_is_no_damage(number: int) -> None:
    """A sole replica that is taken for damaged stays so until the next start."""
    disk = new_disk()
    log = open_log(disk)
    fill(log, RECORDS)
    disk.errors.append(DiskError(frozenset({"read"}), "/data/orders-0", number))
    with pytest.raises(BrokerError) as caught:
        log.read(3, 10)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_what_a_reader_doubts_is_looked_at_again() -> None:
    disk = new_disk()
    log = open_log(disk)
    fill(log, RECORDS)
    damaged(disk, 3)
    assert log.read(3, 10).size_bytes
    with pytest.raises(BrokerError):
        log.read(3, 10, is_doubted=True)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_leads_nowhere_is_passed_over_and_made_anew(suffix: str) -> None:
    disk = new_disk()
    closed(disk)
    for path, _ in disk.files():
        if path.endswith(suffix):
            for entry in range(0, disk.size(path), 12 if suffix == ".timeindex" else 8):
                disk.flip_bit(path, entry + 6, 5)
    log = clean_start(disk)
    read_all(log)
    assert found_at(log, NOW_MS + 7) is not None
    assert found_at(log, NOW_MS + 7).offset == 7  # type: ignore[union-attr]
    log.close()
    assert not any(segment.is_index_wrong for segment in clean_start(disk).segments)


ONE_SEGMENT = replace(SMALL, internal_segment_bytes=10**6)


def with_wrong_entry(disk: SimDisk, position: int) -> tuple[Log, int]:
    """A log of one segment, in whose index an entry in the middle says `position`; and the offset that it is about."""
    log = open_log(disk, ONE_SEGMENT)
    for sequence in range(RECORDS):
        append(log, b"v" * 100, producer_id=7, producer_epoch=0, base_sequence=sequence)
    log.close()
    [path] = [path for path, _ in disk.files() if path.endswith(".index")]
    entries = [list(entry) for entry in OffsetIndex.ENTRY.iter_unpack(disk.read_file(path))]
    wrong = entries[len(entries) // 2]
    wrong[1] = position
    disk.overwrite(path, b"".join(OffsetIndex.ENTRY.pack(*entry) for entry in entries))
    return open_log(disk, ONE_SEGMENT, recover=False), wrong[0]


@pytest.mark.parametrize("position", [-7, 1, 10**6])
def test_a_log_is_cut_where_the_index_leads_nowhere(position: int) -> None:
    """A start looks at an index's last entry; a cut makes another one the last."""
    disk = new_disk()
    log, offset = with_wrong_entry(disk, position)
    assert not log.segments.active.is_index_wrong
    log.truncate_to(offset + 1)
    assert log.log_end_offset == offset + 1
    fill(log, 3)
    assert [header.base_offset for header in headers(log)] == [*range(offset + 4)]
    log.close()
    assert not open_log(disk, ONE_SEGMENT, recover=False).segments.active.is_index_wrong


@pytest.mark.parametrize("position", [-7, 1, 10**6])
def test_no_batch_of_a_producer_is_passed_over_where_the_index_leads_nowhere(position: int) -> None:
    log, offset = with_wrong_entry(new_disk(), position)
    producers = ProducerWalk([], offset, log.segments.from_offset(offset)).take(1)
    known = producers.get(7)
    assert known is not None
    kept = min(RECORDS - offset, BATCHES_KEPT_MAX)
    assert [batch.last_offset for batch in known.batches] == [*range(RECORDS - kept, RECORDS)]


def test_no_producer_is_where_only_a_damaged_batch_says_that_it_is() -> None:
    """The last offset of a batch is covered by its CRC alone."""
    disk = new_disk()
    log, _ = with_wrong_entry(disk, 0)
    [path] = [path for path, _ in disk.files() if path.endswith(LOG)]
    position = log.segments.active.batch_end(0)[0]
    disk.flip_bit(path, position + LAST_OFFSET_DELTA_AT, 7)
    producers = ProducerWalk([], 0, log.segments.from_offset(0)).take(1)
    known = producers.get(7)
    assert known is not None
    assert known.batches[-1].last_offset == RECORDS - 1
    producers.append(7, 0, WrittenBatch(RECORDS, RECORDS, RECORDS, RECORDS, NOW_MS), is_transactional=False)
