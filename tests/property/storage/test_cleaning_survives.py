"""A cleaning that ends at any call of the disk, with the process or with the power, and then a start that may end too.

Whatever was on the way: the log ends where it ended, every record stands at its offset with its value, the last of each
key is there unless it is a tombstone, whose key has then nothing older either; the producers go on where they were. And
a cleaning afterwards comes to the same as one that nothing has disturbed.
"""

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from kavka_broker.protocol.records.control import ControlType
from kavka_broker.protocol.records.record import Record
from kavka_broker.storage.log import Log
from kavka_broker.storage.recovery import open_log
from tests.support.sim_disk import Operation, SimDisk
from tests.unit.storage.cleaning import COMPACTED, clean, end, put, roll
from tests.unit.storage.support import DIRECTORY, NOW_MS, everything, headers

CRASH_SEEDS = 4
LATER_MS = NOW_MS + 86_400_001
PRODUCER_ID, ABORTED_ID = 7, 8
UNFINISHED = (".swap", ".cleaned", ".deleted")


class PowerButton(BaseException):
    """The process ends here."""


class CutDisk(SimDisk):
    """A disk that ends the process before call number `cut_at`."""

    calls = 0
    cut_at = -1

    def meet(self, operation: Operation, *paths: str) -> None:
        self.calls += 1
        if self.calls == self.cut_at:
            raise PowerButton(operation, *paths)
        super().meet(operation, *paths)


def written() -> tuple[CutDisk, Log]:
    """Two groups of segments, tombstones past their horizon and before it, an aborted transaction, a producer's end."""
    disk = CutDisk(now_ms=NOW_MS)
    disk.make_directory("/data")
    disk.sync_directory("/data")
    log = open_log(disk, DIRECTORY, COMPACTED, now_ms=NOW_MS)
    put(log, ("a", "1"), ("gone", "1"), ("b", "x" * 300))
    put(log, ("gone", None), ("c", "1"), producer_id=PRODUCER_ID, producer_epoch=2, base_sequence=10)
    roll(log)
    clean(log)  # it gives the tombstone its horizon
    put(log, ("a", "2"), ("b", "y" * 300))
    roll(log)
    put(log, ("a", "no"), producer_id=ABORTED_ID, producer_epoch=0, base_sequence=0, transactional=True)
    end(log, ABORTED_ID, ControlType.ABORT)
    log.producers.transactions.replicated(log.log_end_offset)
    put(log, ("c", "2"), ("d", "z" * 300))
    roll(log)
    put(log, ("deleted", "1"), ("e", "u" * 300))
    put(log, ("deleted", None))
    roll(log)
    put(log, ("a", "3"))
    log.flush()
    log.segments.discarded.remove()
    return disk, log


def records_of(log: Log) -> list[Record]:
    control = {header.base_offset for header in headers(log) if header.is_control}
    return [record for record in everything(log) if record.offset not in control]


def expect_nothing_lost(log: Log, before: list[Record], expected: list[Record]) -> None:
    known = {record.offset: record for record in before}
    found = records_of(log)
    assert log.damage == ""
    assert all(known[record.offset] == record for record in found), "a record has changed"
    missing = [record for record in expected if record not in found]
    assert missing == [], "what no cleaning may take is gone"
    newest = {record.key: record for record in before}
    tombstones = {key for key, record in newest.items() if record.value is None}
    for key in tombstones - {record.key for record in found if record.value is None}:
        assert key not in {record.key for record in found}, "a value has come back behind its tombstone"
    for producer_id, sequence in ((PRODUCER_ID, 11), (ABORTED_ID, 0)):
        producer = log.producers.get(producer_id)
        assert producer is not None
        assert producer.last_sequence == sequence


def reopen(disk: CutDisk, recovery_point: int) -> Log:
    return open_log(disk, DIRECTORY, COMPACTED, recover=True, recovery_point=recovery_point, now_ms=LATER_MS)


def end_process(disk: CutDisk, random: Random | None) -> None:
    disk.cut_at = -1
    if random is None:
        disk.kill()
    else:
        disk.crash(random)


def cut_in(disk: CutDisk, after: int, work: Callable[[], object]) -> bool:
    """Whether the work was cut before it was done."""
    disk.cut_at = disk.calls + after
    try:
        work()
    except PowerButton:
        return True
    finally:
        disk.cut_at = -1
    return False


def undisturbed() -> tuple[list[Record], list[Record], int]:
    disk, log = written()
    before, calls = records_of(log), disk.calls
    clean(log, now_ms=LATER_MS)
    calls = disk.calls - calls
    return before, records_of(log), calls


def test_what_it_comes_to_undisturbed() -> None:
    before, after, _ = undisturbed()
    assert len(before) == 13
    kept = [(5, b"a"), (6, b"b"), (9, b"c"), (10, b"d"), (12, b"e"), (13, b"deleted"), (14, b"a")]
    assert [(record.offset, record.key) for record in after] == kept


@pytest.mark.parametrize("seed", [None, *range(CRASH_SEEDS)])
def test_a_cleaning_may_end_at_any_call(seed: int | None) -> None:
    before, expected, calls = undisturbed()
    assert calls > 50
    for after in range(1, calls + 1):
        random = None if seed is None else Random(seed * 10_000 + after)
        disk, log = written()
        recovery_point, end_offset = log.recovery_point, log.log_end_offset
        assert cut_in(disk, after, partial(clean, log, now_ms=LATER_MS))
        end_process(disk, random)
        if cut_in(disk, Random(after).randint(1, 40), partial(reopen, disk, recovery_point)):
            end_process(disk, random)
        log = reopen(disk, recovery_point)
        assert log.log_end_offset == end_offset
        expect_nothing_lost(log, before, expected)
        assert not [name for name in disk.names(DIRECTORY) if name.endswith(UNFINISHED)]
        log.producers.transactions.replicated(end_offset)
        clean(log, now_ms=LATER_MS)
        assert records_of(log) == expected
