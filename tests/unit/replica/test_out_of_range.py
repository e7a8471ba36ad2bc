"""A follower whose leader does not know what it fetches, though the leader's log spans it."""

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.metadata.topics import PartitionState
from kavka_broker.core.partition.follower import Resume
from kavka_broker.core.partition.leader_epochs import EpochStart, LeaderEpochs
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.following import resume_between
from kavka_broker.replica.partition import Partition
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.storage.log import Log
from tests.support.sim_disk import SimDisk


def test_one_whose_epochs_are_another_logs_gets_on() -> None:
    """The epoch file was exchanged while the broker was down: its leader has never heard of such an epoch."""
    log = Log.open(SimDisk(), "/data/t-0", LogConfig(), now_ms=0)
    partition = Partition("t", 0, log, PartitionState((1, 2), (1, 2), 1, 3), 2, SystemClock())
    for offset in (0, 1):
        log.append_as_follower(memoryview(build_batch([(None, b"v")], base_offset=offset, leader_epoch=3)))
    log.epochs = LeaderEpochs([EpochStart(9, 0)])
    assert resume_between(partition, 0, 5) is Resume.GO_ON
    assert (log.log_end_offset, list(log.epochs.entries)) == (2, [EpochStart(3, 0)])
