"""A follower whose leader does not know what it fetches, though the leader's log spans it."""

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.core.partition.follower import Resume
from kavka_broker.core.partition.leader_epochs import EpochStart, LeaderEpochs
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.messages.fetch_response import EpochEndOffset, PartitionData
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.following.fetched_batches import Next, resume_between, take
from kavka_broker.replica.following.truncation import restart_at
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.storage import recovery
from tests.support.alone import Alone
from tests.support.sim_disk import SimDisk


def test_one_whose_epochs_are_another_logs_gets_on() -> None:
    """The epoch file was exchanged while the broker was down: its leader has never heard of such an epoch."""
    log = recovery.open_log(SimDisk(), "/data/t-0", LogConfig(), now_ms=0)
    partition = Partition("t", 0, log, PartitionState((1, 2), (1, 2), 1, 3), 2, SystemClock(), Alone())
    for offset in (0, 1):
        log.append_as_follower(memoryview(build_batch([(None, b"v")], base_offset=offset, leader_epoch=3)))
    log.epochs.take_over(LeaderEpochs([EpochStart(9, 0)]))
    assert resume_between(partition, 0, 5) is Resume.GO_ON
    at_once(log.reader.doubt_epochs())
    assert (log.log_end_offset, list(log.epochs.entries)) == (2, [EpochStart(3, 0)])


@pytest.mark.parametrize("space_bytes", range(0, 600, 50))
def test_a_full_disk_leaves_no_high_watermark_beyond_a_log_that_begins_anew(space_bytes: int) -> None:
    """DeleteRecords put the leader's start into the middle of a batch, so an empty log begins again in front of it."""
    disk = SimDisk()
    log = recovery.open_log(disk, "/data/t-0", LogConfig(), now_ms=0)
    partition = Partition("t", 0, log, PartitionState((1, 2), (1, 2), 1, 3), 2, SystemClock(), Alone())
    restart_at(partition, 81)
    records = build_batch([(None, b"v" * 100)] * 6, base_offset=78, leader_epoch=3)
    disk.space_bytes = space_bytes
    assert take(partition, PartitionData(0, 0, 84, log_start_offset=81, records=memoryview(records)), 0) is Next.LATER
    assert partition.high_watermark <= log.log_end_offset
    disk.space_bytes = None
    assert take(partition, PartitionData(0, 0, 84, log_start_offset=81, records=memoryview(records)), 0) is Next.FETCH
    assert (log.log_start_offset, partition.high_watermark, log.log_end_offset) == (81, 84, 84)


@pytest.mark.parametrize("epoch", [-1, 0, 3, 9])
def test_a_leader_that_names_an_impossible_offset_has_nothing_cut(epoch: int) -> None:
    log = recovery.open_log(SimDisk(), "/data/t-0", LogConfig(), now_ms=0)
    partition = Partition("t", 0, log, PartitionState((1, 2), (1, 2), 1, 3), 2, SystemClock(), Alone())
    log.append_as_follower(memoryview(build_batch([(None, b"v")], base_offset=0, leader_epoch=3)))
    told = PartitionData(0, diverging_epoch=EpochEndOffset(epoch, -5))
    assert take(partition, told, 0) is (Next.FETCH if epoch < 0 else Next.LATER)
    for leader_start, leader_end in ((-1, 5), (0, -1)):
        with pytest.raises(BrokerError, match="names the offset -1"):
            resume_between(partition, leader_start, leader_end)
    assert (log.log_end_offset, log.durability.is_being_cut) == (1, False)
