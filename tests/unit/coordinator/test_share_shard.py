"""The share coordinator's partitions of the log: what is pruned, and when."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kavka_broker.coordinator.share.share_coordinator import ShareCoordinator, ShareCoordinatorSettings
from kavka_broker.coordinator.share.share_shard import ShareShard
from kavka_broker.core.metadata.image.topic_names import SHARE_STATE_TOPIC
from kavka_broker.core.share.share_states import SharePartitionKey, ShareStates
from kavka_broker.loop.slices import at_once
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from tests.unit.coordinator.fakes import Clock, FakePartition, pacing

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


class SteppedTimers:
    """Timers that the test lets end, the earliest first."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], object]]] = []

    def after(self, delay_ms: float, callback: Callable[..., object], *arguments: object) -> None:
        self.waiting.append((delay_ms, lambda: callback(*arguments)))

    def step(self) -> None:
        self.waiting.sort(key=lambda timer: timer[0])
        self.waiting.pop(0)[1]()


def test_periodic_work_is_done_for_one_partition_of_the_log_a_turn() -> None:
    async def scenario() -> None:
        partitions = [Prunable() for _ in range(3)]
        for index, partition in enumerate(partitions):
            cast(Any, partition).topic, cast(Any, partition).index = SHARE_STATE_TOPIC, index
        openings = SimpleNamespace(when_secured=lambda _: None)
        replicas = SimpleNamespace(leadership_listeners=[], partitions=partitions, openings=openings)
        timers, settings = SteppedTimers(), ShareCoordinatorSettings(500, 5_000, 300_000, 60_000)
        coordinator = ShareCoordinator(
            settings, cast(Any, None), cast(Any, replicas), pacing(Clock(), cast(Any, timers))
        )
        await asyncio.sleep(0)
        for shard in coordinator.shards:
            for start_offset in range(2):
                shard.initialize(KEY, 1, start_offset)
        coordinator.start()
        for pruned in range(1, 4):
            timers.step()
            assert sum(partition.log.log_start_offset for partition in partitions) == pruned
        timers.step()
        assert [delay_ms for delay_ms, _ in timers.waiting] == [300_000, 60_000], "both come again"

    asyncio.run(scenario())
