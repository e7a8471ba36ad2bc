"""The share coordinator's partition of the log: what is pruned, and when."""

import asyncio

import pytest

from kavka_broker.coordinator.share_shard import ShareShard
from kavka_broker.core.share.share_states import SharePartitionKey, ShareStates
from kavka_broker.loop.slices import at_once
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from tests.unit.coordinator.fakes import Clock, FakePartition

KEY = SharePartitionKey("g", bytes(16), 0)


class Prunable(FakePartition):
    """A partition whose start moves at once."""

    def trim(self, offset: int) -> None:
        self.log.log_start_offset = offset


def shard_of(partition: Prunable) -> ShareShard:
    clock = Clock()
    timers = Timers(clock, asyncio.get_running_loop())
    shard = ShareShard(partition, ShareStates(500), clock, timers, write_timeout_ms=5_000)
    shard.open()
    return shard


@pytest.mark.parametrize(
    ("problem", "start_offset"), [(None, 1), (BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "deposed"), 0)]
)
def test_a_snapshot_is_kept_until_the_next_one_is_committed(problem: BrokerError | None, start_offset: int) -> None:
    async def scenario() -> None:
        partition = Prunable()
        shard = shard_of(partition)
        assert shard.initialize(KEY, 1, 5) is None
        partition.committed, partition.holds = 1, True
        assert shard.initialize(KEY, 1, 7) is not None
        at_once(shard.prune())
        assert partition.log.log_start_offset == 0, "the snapshot at 1 may be lost, and that at 0 is the only one then"
        await partition.commit(problem)
        await asyncio.sleep(0)
        assert partition.log.log_start_offset == start_offset

    asyncio.run(scenario())


def test_a_shard_that_was_given_up_prunes_nothing() -> None:
    async def scenario() -> None:
        partition = Prunable()
        shard = shard_of(partition)
        shard.initialize(KEY, 1, 5)
        partition.committed, partition.holds = 1, True
        shard.initialize(KEY, 1, 7)
        at_once(shard.prune())
        shard.close()
        await partition.commit()
        await asyncio.sleep(0)
        assert partition.log.log_start_offset == 0

    asyncio.run(scenario())
