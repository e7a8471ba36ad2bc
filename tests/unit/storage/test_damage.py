"""A bit that turns over on the disk while nobody looks is found before it is served."""

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.storage.log import Log
from kavka_broker.storage.names import LOG
from kavka_broker.storage.sim_disk import SimDisk
from tests.unit.storage.support import NOW_MS, SMALL, fill, new_disk, open_log

RECORDS = 12


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
    return Log.open(disk, "/data/orders-0", SMALL, recover=recover, now_ms=NOW_MS)


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
