"""An index that a start has found is compared with the batches before anybody relies on it."""

from collections.abc import Iterator

import pytest

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.storage import transaction_index_proof
from kavka_broker.storage.file_names import SNAPSHOT, TRANSACTION_INDEX
from kavka_broker.storage.log import Log, Origin
from kavka_broker.storage.transaction_index import AbortedTransaction, Trust
from kavka_broker.storage.transaction_index_proof import prove
from tests.support.sim_disk import SimDisk
from tests.unit.storage.support import DIRECTORY, NOW_MS, append, new_disk, open_log

TRANSACTIONS = 12
LAST_OFFSET_DELTA_AT = 23 + 2  # in a batch's header; of its four bytes the third


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_index_proof, "HEADERS_PER_SLICE_MAX", 3)


def write(log: Log, producer: int, *, values: int = 1) -> None:
    append(log, *[b"x" * 100] * values, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)


def end(log: Log, producer: int, kind: ControlType = ControlType.ABORT) -> None:
    marker = build_marker(kind, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp_ms=NOW_MS)
    log.append_as_leader(memoryview(marker), 0, NOW_MS, Origin.COORDINATOR)


def entries(log: Log) -> list[AbortedTransaction]:
    return [entry for segment in log.segments for entry in segment.aborted]


def written() -> tuple[SimDisk, list[AbortedTransaction]]:
    """Several segments of transactions, every second one aborted, closed in good order; and what was aborted."""
    disk = new_disk()
    log = open_log(disk)
    for producer in range(TRANSACTIONS):
        write(log, producer)
        end(log, producer, ControlType(producer % 2))
    assert len(log.segments) > 2
    return disk, closed(log, disk)


def closed(log: Log, disk: SimDisk) -> list[AbortedTransaction]:
    found = entries(log)
    log.close()
    disk.kill()
    return found


def without_indexes(disk: SimDisk) -> Log:
    for name in disk.names(DIRECTORY):
        if name.endswith(TRANSACTION_INDEX):
            disk.remove(f"{DIRECTORY}/{name}")
    return open_log(disk, recover=False)


def read(log: Log, offset: int = 0) -> None:
    while offset < log.log_end_offset:
        offset = log.read(offset, 700).end_offset


def finish(steps: Iterator[None]) -> None:
    for _ in steps:
        pass


def test_what_was_lost_is_made_anew_when_it_is_read() -> None:
    disk, aborted = written()
    log = without_indexes(disk)
    assert not entries(log)
    read(log)
    while log.segments.has_doubted:
        finish(prove(log))
    assert entries(log) == aborted
    assert log.segments.has_aborted
    assert {segment.aborted.trust for segment in log.segments} == {Trust.WHOLE}


def test_only_what_a_reader_needs_is_looked_at() -> None:
    disk, _ = written()
    log = without_indexes(disk)
    log.read(0, 1)
    finish(prove(log))
    assert [segment.aborted.trust for segment in log.segments.all[:2]] == [Trust.WHOLE, Trust.FOUND]


def test_a_transaction_is_followed_to_its_end() -> None:
    """It begins in one segment, and is aborted in another: what the reader gets first has no marker beside it."""
    disk = new_disk()
    log = open_log(disk)
    write(log, 1)
    log.roll(NOW_MS)
    append(log, b"y")
    log.roll(NOW_MS)
    end(log, 1)
    log.roll(NOW_MS)
    aborted = closed(log, disk)
    again = without_indexes(disk)
    again.read(0, 1)
    finish(prove(again))
    assert again.reader.aborted_between(0, 1) == entries(again) == aborted
    assert again.reader.aborted_between(0, -1) == [], "a fetch that had no room for a batch"


def test_what_is_appended_meanwhile_stays() -> None:
    disk, aborted = written()
    log = without_indexes(disk)
    read(log, log.segments[-1].base_offset)
    steps = prove(log)
    next(steps)
    write(log, 99)
    end(log, 99)
    finish(steps)
    assert entries(log)[-1].producer_id == 99
    read(log)
    while log.segments.has_doubted:
        finish(prove(log))
    assert entries(log)[:-1] == aborted


def test_a_log_that_is_cut_meanwhile_is_looked_at_again() -> None:
    disk, aborted = written()
    log = without_indexes(disk)
    read(log)
    steps = prove(log)
    next(steps)
    log.truncate_to(log.segments[1].base_offset)
    finish(steps)
    assert log.segments.has_doubted
    while log.segments.has_doubted:
        finish(prove(log))
    assert entries(log) == [  # type: ignore[unreachable] # the proof takes the doubt away
        entry for entry in aborted if entry.last_offset < log.log_end_offset
    ]


def test_a_doubted_segment_that_retention_takes_is_doubted_no_more() -> None:
    disk, _ = written()
    log = without_indexes(disk)
    read(log)
    assert log.segments.has_doubted
    log.start_at(log.log_end_offset)
    finish(prove(log))
    assert not log.segments.has_doubted


def test_an_index_that_knows_more_than_the_batches_tell_keeps_it() -> None:
    """Its segment is the first that is left, and the producers' state before it is lost."""
    disk = new_disk()
    log = open_log(disk)
    write(log, 1)
    log.roll(NOW_MS)
    end(log, 1)
    write(log, 2)
    end(log, 2)
    log.advance_start(1)
    whole = closed(log, disk)
    for name in disk.names(DIRECTORY):
        if name.endswith(SNAPSHOT) or name.startswith("0" * 20):
            disk.remove(f"{DIRECTORY}/{name}")
    again = open_log(disk, recover=False, log_start_offset=1)
    read(again, 1)
    while again.segments.has_doubted:
        finish(prove(again))
    assert entries(again) == whole


@pytest.mark.parametrize("is_rolled", [False, True])
def test_a_batch_that_reaches_over_the_next_stops_the_proof(is_rolled: bool) -> None:
    """A disk has changed its last offset, which its CRC alone covers."""
    disk = new_disk()
    log = open_log(disk)
    write(log, 1)
    append(log, b"y", producer_id=1, producer_epoch=0, base_sequence=1, transactional=True)
    if is_rolled:
        log.roll(NOW_MS)
    append(log, b"z", producer_id=1, producer_epoch=0, base_sequence=2, transactional=True)
    end(log, 1)
    log.roll(NOW_MS)
    position = log.segments[0].batch_end(0)[0]
    closed(log, disk)
    again = without_indexes(disk)
    again.read(0, 1)
    disk.flip_bit(again.segments[0].file.path, position + LAST_OFFSET_DELTA_AT, 7)
    with pytest.raises(ProtocolViolation, match="begins below"):
        finish(prove(again))
