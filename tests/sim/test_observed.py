"""The observer's own reading of logs: what it sees, what it does not let itself be told, what it does again."""

from typing import Any

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.records import batch as batches_of_the_broker
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.storage.log import Log
from kavka_broker.storage.recovery import open_log
from kavka_broker.storage.retention import delete_expired
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.segments import Segments
from tests.sim.observed import View, written_at
from tests.support.sim_disk import SimDisk

DIRECTORY = "/data/t-0"


def batch_of(*values: str) -> bytearray:
    return bytearray(build_batch([(None, value.encode()) for value in values], timestamp_ms=1_000))


class Followed:
    """A log of three batches in small segments, and a view that has seen it."""

    def __init__(self) -> None:
        self.disk = SimDisk()
        self.disk.make_directory(DIRECTORY)
        config = LogConfig(internal_segment_bytes=200)
        self.log = open_log(self.disk, DIRECTORY, config, now_ms=0)
        self.view = View(1, ("t", 0))
        for value in "abc":
            self.append(value)
        self.view.follow(self.log)

    def append(self, *values: str, epoch: int = 0) -> None:
        self.log.append_as_leader(memoryview(batch_of(*values)), epoch, 0)

    @property
    def last_file(self) -> str:
        return f"{DIRECTORY}/{self.log.segments[-1].base_offset:020}.log"


def places(written: Any) -> list[tuple[int, int, int]]:
    return [(batch.base_offset, batch.end_offset, batch.epoch) for batch in written]


def test_it_reads_on_where_it_stopped() -> None:
    followed = Followed()
    assert places(followed.view.batches) == [(0, 1, 0), (1, 2, 0), (2, 3, 0)]
    assert followed.view.follow(followed.log) == []
    followed.append("d", "e", epoch=4)
    assert places(followed.view.follow(followed.log)) == [(3, 5, 4)]
    assert followed.view.end_offset == 5
    assert places(followed.view.below(3, 1)) == [(1, 2, 0), (2, 3, 0)]


def test_what_is_cut_and_written_again_is_another_batch() -> None:
    followed = Followed()
    for value in "de":
        followed.append(value)
    followed.view.follow(followed.log)
    was = followed.view.batches[:]
    followed.log.truncate_to(3)
    followed.append("x", epoch=1)
    added = followed.view.follow(followed.log)
    assert places(added)[-1] == (3, 4, 1)
    assert followed.view.batches[:3] == was[:3]
    assert followed.view.end_offset == 4
    assert followed.view.at(was[3]) != was[3]


def test_what_retention_has_taken_is_below_the_start() -> None:
    followed = Followed()
    first = followed.view.batches[0]
    for value in "defgh":
        followed.append(value)
    followed.log.advance_start(4)
    delete_expired(followed.log, 0, followed.log.log_end_offset)
    followed.view.follow(followed.log)
    assert followed.view.start_offset == followed.log.log_start_offset == 4
    assert len(followed.view.batches) < 8
    assert followed.view.has(first)
    assert places(followed.view.batches)[-1] == (7, 8, 0)


def test_a_batch_is_synced_once_the_name_of_its_file_is() -> None:
    followed = Followed()
    followed.disk.has_journal_by_directory = True
    followed.disk.sync_directory("/")
    followed.disk.sync_directory("/data")
    followed.disk.sync_file(followed.last_file)
    last = followed.view.batches[-1]
    assert not followed.view.is_synced(last)
    followed.disk.sync_directory(DIRECTORY)
    assert followed.view.is_synced(last)


def test_a_sync_of_names_that_has_lied_is_believed() -> None:
    followed = Followed()
    followed.disk.has_journal_by_directory = True
    followed.disk.sync_directory("/")
    followed.disk.sync_directory("/data")
    followed.disk.sync_file(followed.last_file)
    followed.disk.lies_about = lambda path: path.startswith(DIRECTORY)
    followed.disk.sync_directory(DIRECTORY)
    assert followed.view.is_synced(followed.view.batches[-1])


@pytest.mark.parametrize("position", [2, 9, 13, 18, 24, 63])  # offset, length, epoch, CRC, delta, a record
def test_what_the_medium_forgets_is_read_as_it_was_written(position: int) -> None:
    followed = Followed()
    was = followed.view.batches[:]
    followed.disk.flip_bit(followed.last_file, position)
    anew = View(1, ("t", 0))
    anew.follow(followed.log)
    assert anew.batches == was


def test_other_records_are_another_batch_whatever_the_header_says() -> None:
    data = bytes(batch_of("a"))
    changed = bytearray(data)
    changed[-3] ^= 1
    assert written_at(data, 0) != written_at(changed, 0)
    stamped = bytearray(data)
    stamped[17:21] = bytes(4)  # the CRC of the header, which nobody here believes
    assert written_at(data, 0) == written_at(stamped, 0)


@pytest.mark.parametrize("length", [-1, 0, 48, 2**31 - 1])
def test_a_length_that_cannot_be_ends_the_reading(length: int) -> None:
    data = batch_of("a") + batch_of("b")
    data[8:12] = length.to_bytes(4, "big", signed=True)
    assert written_at(data, 0) is None


def test_no_code_of_the_broker_reads_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(*_: Any, **__: Any) -> Any:
        raise AssertionError("the observer reads by code of its own")

    followed = Followed()
    monkeypatch.setattr(Segment, "batches", blind)
    monkeypatch.setattr(Segments, "from_offset", blind)
    monkeypatch.setattr(Log, "read", blind)
    monkeypatch.setattr(batches_of_the_broker, "split_batches", blind)
    anew = View(2, ("t", 0))
    assert anew.follow(followed.log) == followed.view.batches
