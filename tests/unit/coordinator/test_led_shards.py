"""The shards of a coordinator's topic: what all coordinators have of them."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from kavka_broker.coordinator.led_shards import LedShards, Steps
from kavka_broker.loop.timers import Timers
from tests.support.waiting import until
from tests.unit.coordinator.fakes import Clock, FakePartition, pacing


class Kept:
    """A shard that notes what becomes of it."""

    def __init__(self, partition: Any) -> None:
        self.partition = partition
        self.is_loading = True
        self.is_unreadable = False
        self.is_closed = False

    def open(self) -> None:
        self.is_loading = False

    def close(self) -> None:
        self.is_closed = True


def test_whoever_gives_up_a_new_partition_leaves_the_syncing_of_others_alone() -> None:
    async def load(_: Kept, __: object) -> dict[str, int]:
        raise AssertionError("a new log has nothing to read")

    async def scenario() -> None:
        syncing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        openings = SimpleNamespace(when_secured=lambda _: syncing)
        replicas: Any = SimpleNamespace(leadership_listeners=[], partitions=[], openings=openings)
        clock = Clock()
        steps = Steps(cast(Any, Kept), load, Kept.open, Kept.close)
        pace = pacing(clock, Timers(clock, asyncio.get_running_loop()))
        led: LedShards[Kept] = LedShards("__consumer_offsets", steps, cast(Any, None), replicas, pace)
        led.follow()
        (tell,) = replicas.leadership_listeners
        given_up: Any = FakePartition()
        stays: Any = FakePartition()
        stays.index = 1
        tell(given_up, True)
        tell(stays, True)
        await asyncio.sleep(0)
        first, second = led.by_partition[0], led.by_partition[1]
        tell(given_up, False)
        await asyncio.sleep(0)
        assert first.is_closed
        assert not syncing.cancelled()
        assert led.is_loading
        syncing.set_result(None)
        await until(lambda: led.loaded == [second])

    asyncio.run(scenario())
