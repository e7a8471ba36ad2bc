"""What the batches before a snapshot of producers say of it, where it does not say itself whose it is."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kavka_broker.core.partition.producer_state import Producer
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.storage.file_names import LOG
from kavka_broker.storage.log import Log, Origin
from kavka_broker.storage.snapshot_check import FORGOTTEN_AFTER_MS, OFFSETS_READ_MAX
from tests.support.sim_disk import SimDisk
from tests.unit.storage.support import DIRECTORY, NOW_MS, append, new_disk, open_log

ENDED, OPEN, IDEMPOTENT = 7, 8, 9

Producers = dict[int, Producer]


def write(log: Log, producer_id: int, sequence: int, *, transactional: bool = True) -> None:
    """One record."""
    append(
        log, b"v", producer_id=producer_id, producer_epoch=3, base_sequence=sequence, transactional=transactional
    )  # fmt: skip


def end(log: Log, producer_id: int, coordinator_epoch: int = 4) -> None:
    marker = build_marker(
        ControlType.COMMIT,
        producer_id=producer_id,
        producer_epoch=3,
        coordinator_epoch=coordinator_epoch,
        timestamp_ms=NOW_MS,
    )
    log.append_as_leader(memoryview(marker), 0, NOW_MS, Origin.COORDINATOR)


def written(disk: SimDisk | None = None) -> Log:
    """Two transactions that have ended, around one that is open; the marker of the second comes last."""
    log = open_log(disk)
    write(log, ENDED, 0)
    end(log, ENDED)
    write(log, OPEN, 0)
    write(log, IDEMPOTENT, 0, transactional=False)
    write(log, ENDED, 1)
    end(log, ENDED)
    return log


def snapshot_of(log: Log) -> Producers:
    """The producers as a file has them: one batch of each."""
    return {producer_id: replace(producer, batches=producer.batches[-1:]) for producer_id, producer in log.producers}


def is_borne_out(log: Log, producers: Producers) -> bool:
    return log.producer_files.bears_out(log.log_end_offset, list(producers.items()))


def at(producer: Producer, offset: int) -> Producer:
    """Its last batch is the record there."""
    return replace(producer, batches=[producer.batches[-1]._replace(base_offset=offset, last_offset=offset)])


def test_the_producers_of_the_log_are_borne_out() -> None:
    log = written()
    assert is_borne_out(log, snapshot_of(log))


CHANGES: dict[str, Callable[[Producers], Producers]] = {
    "a later batch is in the log": lambda known: {**known, ENDED: at(known[ENDED], 0)},
    "the batch is another producer's": lambda known: {**known, OPEN: at(known[OPEN], 4)},
    "the batch is a marker": lambda known: {**known, IDEMPOTENT: at(known[IDEMPOTENT], 5)},
    "the batch is behind the snapshot": lambda known: {**known, IDEMPOTENT: at(known[IDEMPOTENT], 6)},
    "a former epoch": lambda known: {**known, OPEN: replace(known[OPEN], epoch=2)},
    "a former coordinator": lambda known: {**known, ENDED: replace(known[ENDED], coordinator_epoch=3)},
    "it is open": lambda known: {**known, ENDED: replace(known[ENDED], transaction_first_offset=4)},
    "it has ended": lambda known: {**known, OPEN: replace(known[OPEN], transaction_first_offset=-1)},
    "it is not known": lambda known: {key: known[key] for key in (ENDED, IDEMPOTENT)},
    "none is known": lambda known: {},
}


@pytest.mark.parametrize("change", CHANGES)
def test_producers_of_another_log_are_not_borne_out(change: str) -> None:
    log = written()
    assert not is_borne_out(log, CHANGES[change](snapshot_of(log)))


def test_a_producer_may_be_forgotten_that_was_silent_for_a_day() -> None:
    log = open_log()
    for age_ms, producer_id in ((FORGOTTEN_AFTER_MS, ENDED), (FORGOTTEN_AFTER_MS - 1, OPEN), (0, IDEMPOTENT)):
        append(
            log, b"v", timestamp_ms=NOW_MS - age_ms, producer_id=producer_id, producer_epoch=3, base_sequence=0
        )  # fmt: skip
    known = snapshot_of(log)
    assert is_borne_out(log, {key: known[key] for key in (OPEN, IDEMPOTENT)})
    assert not is_borne_out(log, {key: known[key] for key in (ENDED, IDEMPOTENT)})


def test_what_lies_far_back_is_not_read() -> None:
    """Nor does a batch that has been cleaned away contradict: the newest one of the snapshot is looked for alone."""
    log = open_log()
    for sequence in range(2):
        write(log, IDEMPOTENT, sequence, transactional=False)
    for sequence in range(OFFSETS_READ_MAX):
        write(log, ENDED, sequence, transactional=False)
    known = snapshot_of(log)
    assert is_borne_out(log, {**known, IDEMPOTENT: at(known[IDEMPOTENT], 0)})
    assert not is_borne_out(log, {**known, ENDED: at(known[ENDED], OFFSETS_READ_MAX)})


def test_damaged_batches_say_nothing() -> None:
    disk = new_disk()
    log = written(disk)
    known = snapshot_of(log)
    (name,) = (name for name in disk.names(DIRECTORY) if name.endswith(LOG))
    disk.flip_bit(f"{DIRECTORY}/{name}", 8, 5)  # of the first batch's length
    assert is_borne_out(log, {ENDED: known[ENDED]})
